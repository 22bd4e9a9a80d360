//! What is known about sizes besides their form.

use super::omega_test::Answer;
use super::purify::Conjunction;
use super::{Atom, Reach, Size, SizeVar, Verdict};
use std::collections::BTreeSet;
use std::sync::Arc;

/// More facts than this are not kept: a question reads them all. What is not kept is not proved.
const FACTS_MAX: usize = 256;
/// A fact that weighs so much is not kept, for the same reason, and no equation that would make others so heavy: where
/// each size of a program is made from the one before it twice, the last one would be longer than any program.
const WEIGHT_MAX: usize = 128;
/// A size that would weigh so much with the equations applied is left as it is.
const REWRITTEN_MAX: usize = 512;
/// More facts than this do not take part in a question: the nearest ones do.
const NEAR_MAX: usize = 64;

/// Equations, divisibility and inequalities that hold at a place of a program, in the order in which they came.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Facts {
    /// Equations with a variable alone on the left. No left side is in a right side.
    rewrites: Vec<(SizeVar, Size)>,
    /// The other equations: these are 0.
    zero: Vec<Size>,
    /// These are at least 0.
    natural: Vec<Size>,
    /// These are not 0.
    nonzero: Vec<Size>,
    /// `divisor` divides `dividend`, and is not 0.
    divides: Vec<(Size, Size)>,
    /// The facts without what only comparisons at run time told in earlier statements, where there are such.
    stated: Option<Arc<Facts>>,
    /// `stated` of the next statement, where this one compares something.
    next: Option<Arc<Facts>>,
}

impl Facts {
    pub fn is_empty(&self) -> bool {
        *self == Facts::default()
    }

    /// Whether there is no room for one more fact. The oldest inequality makes room where there is one: it is the least
    /// likely to matter here, and leaving a fact out only proves less.
    fn full(&mut self) -> bool {
        let Facts { rewrites, zero, natural, nonzero, divides, stated: _, next: _ } = self;
        if rewrites.len() + zero.len() + natural.len() + nonzero.len() + divides.len() < FACTS_MAX {
            return false;
        }
        let inequalities = if nonzero.is_empty() { natural } else { nonzero };
        if !inequalities.is_empty() {
            inequalities.remove(0);
            return false;
        }
        true
    }

    /// What holds whether or not sizes turn out to be equal that earlier statements compare when the program runs: that
    /// proves what comes after them, and refuses nothing, since the program is right up to there.
    pub fn stated(&self) -> &Facts {
        self.stated.as_deref().unwrap_or(self)
    }

    /// A statement ends.
    pub fn settle(&mut self) {
        if let Some(next) = self.next.take() {
            self.stated = Some(next);
        }
    }

    fn also_stated(&mut self, f: impl Fn(&mut Facts)) {
        [&mut self.stated, &mut self.next].into_iter().flatten().for_each(|facts| f(Arc::make_mut(facts)));
    }

    /// A comparison at run time tells what `f` assumes.
    fn compared(&mut self, f: impl Fn(&mut Facts)) {
        let next = match self.next.take() {
            Some(next) => next,
            None => self.stated.clone().unwrap_or_else(|| Arc::new(self.clone())),
        };
        f(self);
        self.next = Some(next);
    }

    /// From here on the two sizes have been compared, and are equal.
    pub fn compared_equal(&mut self, a: &Size, b: &Size) {
        if self.stated.is_none() || !matches!(a.compare(b, self), Verdict::Differ(_)) {
            self.compared(|facts| facts.assume_equal(a, b));
        }
    }

    /// From here on the two sizes have been compared, and `whole` is at least `part`.
    pub fn compared_at_least(&mut self, whole: &Size, part: &Size) {
        if self.stated.is_none() || !matches!(whole.reach(part, self), Reach::Never(_)) {
            self.compared(|facts| facts.assume_at_least(whole, part));
        }
    }

    /// From here on `divisor` divides `dividend`.
    pub fn assume_divides(&mut self, divisor: &Size, dividend: &Size) {
        self.also_stated(|facts| facts.assume_divides(divisor, dividend));
        let fact = (divisor.clone(), dividend.clone());
        if self.divides.contains(&fact) || is_heavy(divisor) || is_heavy(dividend) || self.full() {
            return;
        }
        self.divides.push(fact);
        // Nothing is divided by 0.
        self.assume_differ(divisor, &Size::constant(0));
    }

    /// From here on the two sizes are equal.
    pub fn assume_equal(&mut self, a: &Size, b: &Size) {
        self.also_stated(|facts| facts.assume_equal(a, b));
        let difference = self.rewritten(&a.sub(b));
        if difference.is_zero() || difference.overflowed() || self.full() {
            return;
        }
        if let Some((dividend, divisor)) = as_remainder(&difference) {
            return self.assume_divides(&divisor, &dividend);
        }
        let alone = |s: &Size| self.rewritten(s).as_var().cloned();
        let prefer: Vec<SizeVar> = [a, b].into_iter().filter_map(alone).collect();
        let Some((var, value)) = solved(&difference, &prefer) else {
            if !is_heavy(&difference) && !self.zero.contains(&difference) {
                self.zero.push(difference);
            }
            return;
        };
        let grows = |right: &Size| right.grown(WEIGHT_MAX, &|v| (*v == var).then_some(&value)).1 >= WEIGHT_MAX;
        if is_heavy(&value) || self.rewrites.iter().any(|(_, right)| grows(right)) {
            return;
        }
        for (_, right) in &mut self.rewrites {
            *right = right.substitute(&mut |v| (*v == var).then(|| value.clone()));
        }
        self.rewrites.push((var, value));
    }

    /// From here on `whole` is at least `part`.
    pub fn assume_at_least(&mut self, whole: &Size, part: &Size) {
        self.also_stated(|facts| facts.assume_at_least(whole, part));
        let rest = whole.sub(part);
        if is_heavy(&rest) || rest.reaches(0) || self.natural.contains(&rest) || self.full() {
            return;
        }
        self.natural.push(rest);
    }

    /// From here on the two sizes are not equal.
    pub fn assume_differ(&mut self, a: &Size, b: &Size) {
        self.also_stated(|facts| facts.assume_differ(a, b));
        let rest = a.sub(b);
        let one = Size::constant(1);
        let told = rest.as_const().is_some_and(|n| n != 0);
        if told || is_heavy(&rest) || self.nonzero.contains(&rest) || self.full() {
        } else if rest.is_zero() {
            // Never true.
            self.natural.push(Size::constant(-1));
        } else if self.at_least(&rest, 0) {
            self.assume_at_least(&rest, &one);
        } else if self.at_least(&rest.neg(), 0) {
            self.assume_at_least(&rest.neg(), &one);
        } else {
            self.nonzero.push(rest);
        }
    }

    /// The facts in other variables: those that have some, of which `f` knows all.
    pub fn translate(&self, f: &mut dyn FnMut(&SizeVar) -> Option<Size>) -> Facts {
        let mut size = |s: &Size| {
            let mut known = true;
            let out = s.substitute(&mut |v| {
                let to = f(v);
                known &= to.is_some();
                to
            });
            (known && !s.vars().is_empty()).then_some(out)
        };
        let mut out = Facts {
            zero: self.zero.iter().filter_map(&mut size).collect(),
            natural: self.natural.iter().filter_map(&mut size).collect(),
            nonzero: self.nonzero.iter().filter_map(&mut size).collect(),
            divides: self.divides.iter().filter_map(|(a, b)| Some((size(a)?, size(b)?))).collect(),
            rewrites: vec![],
            stated: None,
            next: None,
        };
        for (i, (var, value)) in self.rewrites.iter().enumerate() {
            let Some(left) = size(&Size::var(var.clone())) else { continue };
            if let Some(right) = size(value) {
                match left.as_var() {
                    Some(v) => out.rewrites.push((v.clone(), right)),
                    None => out.zero.push(left.sub(&right)),
                }
            } else if let Some((first, _)) = self.rewrites[..i].iter().find(|(_, other)| other == value)
                && let Some(first) = size(&Size::var(first.clone()))
            {
                // Both are equal to what is not known here.
                out.zero.push(left.sub(&first));
            }
        }
        out
    }

    /// The size with the equations applied, where that is not too long.
    pub(super) fn rewritten(&self, size: &Size) -> Size {
        if self.rewrites.is_empty() || size.grown(REWRITTEN_MAX, &|v| self.value(v)).1 >= REWRITTEN_MAX {
            return size.clone();
        }
        size.substitute(&mut |v| self.value(v).cloned())
    }

    pub(super) fn value(&self, var: &SizeVar) -> Option<&Size> {
        self.rewrites.iter().find(|(left, _)| left == var).map(|(_, right)| right)
    }

    /// Pairs of a dividend that is one variable and its divisor.
    pub(super) fn divided(&self) -> Vec<(SizeVar, Size)> {
        let pair = |(divisor, dividend): &(Size, Size)| {
            Some((self.rewritten(dividend).as_var()?.clone(), self.rewritten(divisor)))
        };
        self.divides.iter().filter_map(pair).collect()
    }

    /// The facts that bear on some of these variables, through other facts too, with the equations applied: the nearest
    /// first.
    pub(super) fn about(&self, vars: &BTreeSet<SizeVar>) -> Conjunction {
        let all = self.all();
        let mut left: Vec<usize> = (0..all.len()).collect();
        let mut near = vars.clone();
        let mut chosen = vec![];
        while chosen.len() < NEAR_MAX {
            let bears = |i: &usize| all[*i].1.mentions(&near) || all[*i].1.is_closed();
            let (now, later): (Vec<usize>, Vec<usize>) = left.into_iter().partition(bears);
            left = later;
            if now.is_empty() {
                break;
            }
            for i in now.into_iter().take(NEAR_MAX - chosen.len()) {
                near.extend(all[i].1.vars());
                chosen.push(i);
            }
        }
        Conjunction::of(chosen.into_iter().map(|i| all[i].clone()))
    }

    /// Every fact, with the equations applied.
    fn all(&self) -> Vec<(Kind, Size)> {
        let own = |kind: Kind, sizes: &[Size]| sizes.iter().map(|s| (kind, self.rewritten(s))).collect::<Vec<_>>();
        let mut out = own(Kind::Zero, &self.zero);
        for (divisor, dividend) in &self.divides {
            let (h, d) = (self.rewritten(divisor), self.rewritten(dividend));
            if let Some(q) = d.floor_div(&h) {
                out.push((Kind::Zero, d.sub(&h.mul(&q))));
            }
        }
        out.extend(own(Kind::Natural, &self.natural));
        let dims = self.rewrites.iter().filter(|(v, value)| v.natural && !value.reaches(0));
        out.extend(dims.map(|(_, value)| (Kind::Natural, value.clone())));
        out.extend(own(Kind::Nonzero, &self.nonzero));
        out.retain(|(kind, s)| !(*kind != Kind::Nonzero && s.is_zero()));
        out
    }

    /// Whether no values satisfy the facts, as far as that can be proved.
    pub fn contradictory(&self) -> bool {
        let vars = self.all().iter().flat_map(|(_, s)| s.vars()).collect();
        self.about(&vars).answer(&mut super::decide::budget()) == Answer::Unsat
    }
}

/// Whether nothing is kept of the size, or of what is said of it.
fn is_heavy(size: &Size) -> bool {
    size.overflowed() || size.weight(WEIGHT_MAX) >= WEIGHT_MAX
}

/// What a fact says of its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Zero,
    Natural,
    Nonzero,
}

/// `a` and `b` where the size is `a % b`, or its negative.
fn as_remainder(size: &Size) -> Option<(Size, Size)> {
    let mut terms = size.polynomial().iter();
    let (m, c) = terms.next()?;
    match (m.as_slice(), c.unsigned_abs(), terms.next()) {
        ([(Atom::Mod(a, b), 1)], 1, None) => Some(((**a).clone(), (**b).clone())),
        _ => None,
    }
}

/// `size = 0` solved for a variable with the coefficient 1 or -1 that the rest does not contain: one of `prefer`, or the first.
fn solved(size: &Size, prefer: &[SizeVar]) -> Option<(SizeVar, Size)> {
    let all = size.monomials().filter_map(|m| match m.as_slice() {
        [(Atom::Var(v), 1)] => Some(v.clone()),
        _ => None,
    });
    let candidates: Vec<SizeVar> = prefer.iter().cloned().chain(all).collect();
    candidates.into_iter().find_map(|v| {
        let own = Size::var(v.clone());
        let c = Some(size.coefficient(own.monomials().next()?)).filter(|c| c.unsigned_abs() == 1)?;
        let rest = size.sub(&own.scale(c));
        let value = rest.scale(-c);
        (!rest.vars().contains(&v) && !value.overflowed()).then_some((v, value))
    })
}

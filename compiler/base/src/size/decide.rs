//! Questions about sizes under facts.

use super::omega_test::{Answer, Budget};
use super::witness::{self, Relation};
use super::{Atom, Facts, Reach, Size, SizeVar, Verdict, Witness};

/// Steps of one question: well under a millisecond.
const STEPS: u64 = 60_000;

/// The budget of one question.
pub(super) fn budget() -> Budget {
    Budget(STEPS)
}

impl Size {
    /// Are the two sizes equal, given the facts?
    pub fn compare(&self, other: &Size, facts: &Facts) -> Verdict {
        let (a, b) = (self.normal(facts), other.normal(facts));
        if a == b && !a.overflowed() {
            return Verdict::Equal;
        }
        let difference = facts.rewritten(&self.sub(other));
        if difference.overflowed() {
            return Verdict::Depends(Witness::NONE);
        }
        if difference.as_const() != Some(0) && difference.as_const().is_some() {
            return Verdict::Differ(witness::find(self, other, Relation::Differ, facts));
        }
        let one = Size::constant(1);
        let known = facts.about(&difference.vars());
        let mut budget = budget();
        let never = |size: Size, budget: &mut Budget| known.and_natural(size).answer(budget) == Answer::Unsat;
        if never(difference.sub(&one), &mut budget) && never(difference.neg().sub(&one), &mut budget) {
            return Verdict::Equal;
        }
        let witness = witness::find(self, other, Relation::Differ, facts);
        let mut budget = self::budget();
        match known.and_zero(difference).answer(&mut budget) {
            Answer::Unsat => Verdict::Differ(witness),
            _ => Verdict::Depends(witness),
        }
    }

    /// Is the size at least `part`, given the facts?
    pub fn reach(&self, part: &Size, facts: &Facts) -> Reach {
        let rest = self.sub(part);
        if facts.at_least(&rest, 0) {
            return Reach::Always;
        }
        let witness = witness::find(self, part, Relation::Less, facts);
        let rest = facts.rewritten(&rest);
        let known = facts.about(&rest.vars());
        match known.and_natural(rest).answer(&mut budget()) {
            Answer::Unsat => Reach::Never(witness),
            _ => Reach::Depends(witness),
        }
    }

    /// As [`Size::compare`]; what differs only because of an earlier comparison at run time is left to the run, too.
    pub fn compare_stated(&self, other: &Size, facts: &Facts) -> Verdict {
        match self.compare(other, facts) {
            Verdict::Differ(w) if !std::ptr::eq(facts.stated(), facts) => match self.compare(other, facts.stated()) {
                Verdict::Differ(w) => Verdict::Differ(w),
                _ => Verdict::Depends(w),
            },
            verdict => verdict,
        }
    }

    /// As [`Size::reach`], in the same way.
    pub fn reach_stated(&self, part: &Size, facts: &Facts) -> Reach {
        match self.reach(part, facts) {
            Reach::Never(w) if !std::ptr::eq(facts.stated(), facts) => match self.reach(part, facts.stated()) {
                Reach::Never(w) => Reach::Never(w),
                _ => Reach::Depends(w),
            },
            reach => reach,
        }
    }

    /// The normal form under facts: known equations applied, and a dividend `d` with
    /// `h | d` written as `h * (d // h)`.
    pub fn normal(&self, facts: &Facts) -> Size {
        let mut size = facts.rewritten(self);
        for (dividend, divisor) in facts.divided() {
            let own = Size::var(dividend.clone());
            let Some(whole) = own.floor_div(&divisor) else { continue };
            // `d // h` itself stays; every other `d` is spelled out.
            let spelled = divisor.mul(&whole);
            size = size.replace(&dividend, &whole, &spelled);
        }
        size
    }

    /// Replaces the variable `d` by `spelled`, leaving the atom that `keep` is untouched.
    fn replace(&self, d: &SizeVar, keep: &Size, spelled: &Size) -> Size {
        let keep_atom = keep.monomials().next().and_then(|m| m.first()).map(|(a, _)| a);
        let inner = |a: &Size, b: &Size| (Box::new(a.replace(d, keep, spelled)), Box::new(b.replace(d, keep, spelled)));
        let mut out = Size::constant(0);
        for (m, c) in self.polynomial() {
            let mut product = Size::constant(*c);
            for (atom, power) in m {
                let value = match atom {
                    Atom::Var(v) if v == d => spelled.clone(),
                    a if Some(a) == keep_atom => keep.clone(),
                    Atom::Div(a, b) => {
                        let (a, b) = inner(a, b);
                        Atom::Div(a, b).form()
                    }
                    Atom::Mod(a, b) => {
                        let (a, b) = inner(a, b);
                        Atom::Mod(a, b).form()
                    }
                    other => Size::atom(other.clone()),
                };
                for _ in 0..*power {
                    product = product.mul(&value);
                }
            }
            out = out.add(&product);
        }
        out.or_overflow(self.overflowed())
    }

    /// Whether the value is certainly `bound` or more, by its form alone. `false` means "not seen".
    pub fn is_at_least(&self, bound: i64) -> bool {
        self.reaches(bound)
    }
}

impl Facts {
    /// Whether the two sizes are equal for no values but such as have a dim of size 0: `4*H` and `3*H`.
    pub fn differ_unless_empty(&self, a: &Size, b: &Size) -> bool {
        let mut facts = self.clone();
        for v in a.vars().union(&b.vars()).filter(|v| v.natural) {
            facts.assume_at_least(&Size::var((*v).clone()), &Size::constant(1));
        }
        let difference = facts.rewritten(&a.sub(b));
        let known = facts.about(&difference.vars());
        !difference.overflowed()
            && known.and_zero(difference).answer(&mut budget()) == Answer::Unsat
            && known.answer(&mut budget()) == Answer::Sat
    }

    /// Whether the size is proved to be at least `bound`.
    pub fn at_least(&self, size: &Size, bound: i64) -> bool {
        if size.reaches(bound) {
            return true;
        }
        let size = self.rewritten(size);
        if size.overflowed() {
            return false;
        }
        if let Some(n) = size.as_const() {
            return n >= bound;
        }
        let below = Size::constant(bound).sub(&size).sub(&Size::constant(1));
        self.about(&size.vars()).and_natural(below).answer(&mut budget()) == Answer::Unsat
    }
}

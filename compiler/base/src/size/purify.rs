//! From facts about sizes to a system of linear inequalities.
//!
//! Every monomial becomes an unknown. What it is made of adds rows: a quotient `q = a // b` with `b > 0` satisfies
//! `b*q <= a <= b*q + b - 1`, a remainder is `a - b*(a // b)`, a minimum is at most both operands (and is one of them: the
//! problem is split where that is needed), a product of naturals is at least 0, and with lower bounds `(x - l)*(y - k) >= 0`.
//! Facts are multiplied by naturals where every product is an unknown of the system already.
//!
//! The system follows from the facts. So no solution means that the facts have none; the opposite is certain only where all
//! sizes are linear.

use super::facts::Kind;
use super::omega_test::{Answer, Budget, Row, System};
use super::{Atom, Monomial, Size, SizeVar};
use std::collections::{BTreeMap, BTreeSet};

/// Facts that hold together.
#[derive(Clone, Default, Debug)]
pub(super) struct Conjunction {
    pub zero: Vec<Size>,
    pub natural: Vec<Size>,
    pub nonzero: Vec<Size>,
}

/// Unknowns of one system.
pub(super) const COLUMNS_MAX: usize = 64;
/// Rows of one system.
const ROWS_MAX: usize = 320;
/// Cases inside cases.
const SPLITS_MAX: u32 = 8;

impl Conjunction {
    pub fn of(facts: impl Iterator<Item = (Kind, Size)>) -> Conjunction {
        let mut out = Conjunction::default();
        for (kind, size) in facts {
            match kind {
                Kind::Zero => out.zero.push(size),
                Kind::Natural => out.natural.push(size),
                Kind::Nonzero => out.nonzero.push(size),
            }
        }
        out
    }

    /// The same, and `size >= 0`.
    pub fn and_natural(&self, size: Size) -> Conjunction {
        let mut out = self.clone();
        out.natural.push(size);
        out
    }

    /// The same, and `size = 0`.
    pub fn and_zero(&self, size: Size) -> Conjunction {
        let mut out = self.clone();
        out.zero.push(size);
        out
    }

    pub fn vars(&self) -> BTreeSet<SizeVar> {
        self.sizes().flat_map(Size::vars).collect()
    }

    /// How much there is to read.
    pub fn weight(&self) -> usize {
        self.sizes().map(|s| s.weight(1000)).sum()
    }

    fn sizes(&self) -> impl Iterator<Item = &Size> {
        self.zero.iter().chain(&self.natural).chain(&self.nonzero)
    }

    /// The conjunction with every size replaced.
    pub fn map(&self, mut f: impl FnMut(&Size) -> Size) -> Conjunction {
        Conjunction {
            zero: self.zero.iter().map(&mut f).collect(),
            natural: self.natural.iter().map(&mut f).collect(),
            nonzero: self.nonzero.iter().map(&mut f).collect(),
        }
    }

    /// Whether values satisfy it: `Unsat` is proved, `Sat` is certain where all is linear.
    pub fn answer(&self, budget: &mut Budget) -> Answer {
        self.plain(budget).and_then(|c| c.split(budget, SPLITS_MAX)).unwrap_or(Answer::Unknown)
    }

    /// Without remainders.
    fn plain(&self, budget: &mut Budget) -> Option<Conjunction> {
        self.charge(budget)?;
        Some(self.map(|s| s.rebuild(&mut without_remainder)))
    }

    /// What building every size anew costs: operands inside operands are copied at each level.
    fn charge(&self, budget: &mut Budget) -> Option<()> {
        let cost = |s: &Size| {
            let weight = s.weight(1000);
            10 * weight + weight * weight / 4
        };
        budget.take(self.sizes().map(cost).sum())
    }

    fn split(&self, budget: &mut Budget, left: u32) -> Option<Answer> {
        self.charge(budget)?;
        match system(self, budget)?.solve(budget) {
            Answer::Unsat => return Some(Answer::Unsat),
            Answer::Unknown => return None,
            Answer::Sat => {}
        }
        let Some(cases) = self.cases() else { return Some(Answer::Sat) };
        if left == 0 {
            return None;
        }
        for case in cases {
            match case.split(budget, left - 1)? {
                Answer::Unsat => {}
                other => return Some(other),
            }
        }
        Some(Answer::Unsat)
    }

    /// Two cases, one of which holds: which operand a minimum or maximum is, or on which side of 0 a size lies.
    fn cases(&self) -> Option<[Conjunction; 2]> {
        if let Some(atom) = self.sizes().find_map(extreme) {
            let (Atom::Min(a, b) | Atom::Max(a, b)) = &atom else { return None };
            let to = |value: &Size| {
                self.map(|s| s.rebuild(&mut |inner| if inner == atom { value.clone() } else { inner.form() }))
            };
            let gap = if matches!(atom, Atom::Min(..)) { b.sub(a) } else { a.sub(b) };
            return Some([to(a).and_natural(gap.clone()), to(b).and_natural(gap.neg())]);
        }
        let mut rest = self.clone();
        let size = rest.nonzero.pop()?;
        let one = Size::constant(1);
        Some([rest.and_natural(size.sub(&one)), rest.and_natural(size.neg().sub(&one))])
    }
}

/// The first minimum or maximum without another one inside.
fn extreme(size: &Size) -> Option<Atom> {
    size.monomials().flatten().find_map(|(atom, _)| match atom {
        Atom::Var(_) => None,
        Atom::Div(a, b) | Atom::Mod(a, b) => extreme(a).or_else(|| extreme(b)),
        Atom::Min(a, b) | Atom::Max(a, b) => extreme(a).or_else(|| extreme(b)).or_else(|| Some(atom.clone())),
    })
}

/// `a % b` as `a - b*(a // b)`, and a constant divisor that is negative as a positive one.
fn without_remainder(atom: Atom) -> Size {
    match atom {
        Atom::Mod(a, b) => a.sub(&b.mul(&without_remainder(Atom::Div(a.clone(), b.clone())))),
        Atom::Div(a, b) if b.as_const().is_some_and(|n| n < 0) => {
            Atom::Div(Box::new(a.neg()), Box::new(b.neg())).form()
        }
        other => other.form(),
    }
}

/// The system while it grows.
#[derive(Default)]
struct Growing {
    /// The unknowns, in the order in which they appear.
    columns: BTreeMap<Monomial, usize>,
    atoms: BTreeSet<Atom>,
    /// Equations and inequalities as polynomials; with `true` an equation.
    rows: Vec<(Size, bool)>,
}

fn system(c: &Conjunction, budget: &mut Budget) -> Option<System> {
    let mut g = Growing::default();
    g.rows.extend(c.zero.iter().map(|s| (s.clone(), true)));
    g.rows.extend(c.natural.iter().map(|s| (s.clone(), false)));
    if g.rows.iter().any(|(s, _)| s.overflowed()) {
        return None;
    }
    let facts = g.rows.len();
    g.close(0, budget)?;
    let given = g.rows.len();
    let bounds = bounds(&g.rows[..facts]);
    g.products(&bounds, budget)?;
    g.multiply(given, &bounds, budget)?;
    g.dense(budget)
}

impl Growing {
    /// Adds the unknowns of the rows from `next` on, and what defines them.
    fn close(&mut self, mut next: usize, budget: &mut Budget) -> Option<()> {
        while next < self.rows.len() {
            let monomials: Vec<Monomial> = self.rows[next].0.monomials().cloned().collect();
            for m in monomials.into_iter().filter(|m| !m.is_empty()) {
                self.column(m, budget)?;
            }
            next += 1;
        }
        Some(())
    }

    fn column(&mut self, m: Monomial, budget: &mut Budget) -> Option<()> {
        budget.take(20 * Size::of_monomial(m.clone()).weight(1000))?;
        if self.columns.contains_key(&m) {
            return Some(());
        }
        for (atom, _) in &m {
            if self.atoms.insert(atom.clone()) {
                self.define(atom);
                self.columns_of_one(atom);
            }
        }
        let next = self.columns.len();
        self.columns.entry(m).or_insert(next);
        (self.columns.len() <= COLUMNS_MAX && self.rows.len() <= ROWS_MAX).then_some(())
    }

    fn columns_of_one(&mut self, atom: &Atom) {
        let next = self.columns.len();
        self.columns.entry(vec![(atom.clone(), 1)]).or_insert(next);
    }

    fn define(&mut self, atom: &Atom) {
        let own = Size::atom(atom.clone());
        let mut natural = |s: Size| self.rows.push((s, false));
        match atom {
            Atom::Var(v) if v.natural => natural(own),
            Atom::Var(_) | Atom::Mod(..) => {}
            Atom::Div(a, b) => {
                let one = Size::constant(1);
                // What divides is not 0.
                let positive = b.reaches(0);
                if positive {
                    natural(b.sub(&one));
                }
                if atom.is_natural() {
                    natural(own.clone());
                }
                let implied = |(f, _): &(Size, bool)| b.sub(&one).sub(f).reaches(0);
                if positive || self.rows.iter().any(implied) {
                    if a.reaches(0) {
                        self.rows.push((own.clone(), false));
                    }
                    let whole = b.mul(&own);
                    self.rows.push((a.sub(&whole), false));
                    self.rows.push((whole.add(b).sub(&one).sub(a), false));
                }
            }
            Atom::Min(a, b) => {
                natural(a.sub(&own));
                natural(b.sub(&own));
            }
            Atom::Max(a, b) => {
                natural(own.sub(a));
                natural(own.sub(b));
            }
        }
    }

    /// Products of naturals, with their lower bounds.
    fn products(&mut self, bounds: &BTreeMap<Atom, i64>, budget: &mut Budget) -> Option<()> {
        let low = |a: &Atom| bounds.get(a).copied().unwrap_or(0).max(0);
        let all: Vec<Monomial> = self.columns.keys().filter(|m| degree(m) > 1).cloned().collect();
        for m in all {
            if !natural(&m, bounds) {
                if let [(_, p)] = m.as_slice()
                    && p % 2 == 0
                {
                    self.rows.push((Size::of_monomial(m), false));
                }
                continue;
            }
            budget.take(20 * m.len())?;
            let whole = Size::of_monomial(m.clone());
            self.rows.push((whole.clone(), false));
            for (x, _) in &m {
                let rest = divided(&m, &[(x.clone(), 1)])?;
                let (Some(l), lx, x) = (least(&rest, &low), low(x).min(1 << 30), Size::atom(x.clone())) else {
                    continue;
                };
                // (rest - l) * x >= 0.
                self.rows.push((whole.sub(&x.scale(l)), false));
                if self.columns.contains_key(&rest) {
                    let rest = Size::of_monomial(rest);
                    // (x - lx) * rest >= 0, and (x - lx) * (rest - l) >= 0.
                    self.rows.push((whole.sub(&rest.scale(lx)), false));
                    let both = whole.sub(&rest.scale(lx)).sub(&x.scale(l)).add(&Size::constant(l).scale(lx));
                    self.rows.push((both, false));
                }
            }
            if self.rows.len() > ROWS_MAX {
                return None;
            }
        }
        Some(())
    }

    /// The first `count` rows times naturals, where all products are unknowns already.
    fn multiply(&mut self, count: usize, bounds: &BTreeMap<Atom, i64>, budget: &mut Budget) -> Option<()> {
        let products: Vec<Monomial> = self.columns.keys().filter(|m| degree(m) > 1).cloned().collect();
        let mut made = BTreeSet::new();
        for i in 0..count {
            let (row, equation) = self.rows[i].clone();
            for m in &products {
                for t in row.monomials().filter(|t| !t.is_empty()) {
                    budget.take(10)?;
                    let Some(by) = divided(m, t).filter(|by| !by.is_empty()) else { continue };
                    if !equation && !natural(&by, bounds) || !made.insert((i, by.clone())) {
                        continue;
                    }
                    let product = row.mul(&Size::of_monomial(by));
                    if !product.overflowed()
                        && product.monomials().all(|m| m.is_empty() || self.columns.contains_key(m))
                    {
                        self.rows.push((product, equation));
                    }
                    if self.rows.len() > ROWS_MAX {
                        return None;
                    }
                }
            }
        }
        Some(())
    }

    fn dense(&self, budget: &mut Budget) -> Option<System> {
        let mut out = System::default();
        let width = self.columns.len();
        for (size, equation) in &self.rows {
            budget.take(width)?;
            if size.overflowed() {
                continue;
            }
            let mut row = Row { coefs: vec![0; width], constant: 0 };
            for (m, c) in size.polynomial() {
                match self.columns.get(m) {
                    Some(&i) => row.coefs[i] = i128::from(*c),
                    None => row.constant = i128::from(*c),
                }
            }
            if *equation { out.zero.push(row) } else { out.natural.push(row) }
        }
        Some(out)
    }
}

/// Whether each factor is at least 0, by its form or by a fact.
fn natural(m: &Monomial, bounds: &BTreeMap<Atom, i64>) -> bool {
    m.iter().all(|(a, _)| a.is_natural() || bounds.get(a).is_some_and(|low| *low >= 0))
}

fn degree(m: &Monomial) -> u32 {
    m.iter().map(|(_, p)| *p).sum()
}

/// `m / t` where `t` divides it.
fn divided(m: &Monomial, t: &[(Atom, u32)]) -> Option<Monomial> {
    let mut out = m.clone();
    for (a, p) in t {
        let (_, have) = out.iter_mut().find(|(b, _)| a == b)?;
        *have = have.checked_sub(*p)?;
    }
    out.retain(|(_, p)| *p > 0);
    Some(out)
}

/// A lower bound of a product of naturals.
fn least(m: &Monomial, low: &dyn Fn(&Atom) -> i64) -> Option<i64> {
    m.iter().try_fold(1i64, |l, (a, p)| l.checked_mul(low(a).checked_pow(*p)?)).filter(|l| *l < 1 << 30)
}

/// Lower bounds of single unknowns: `c*x - naturals + k >= 0` says `x >= -k / c`.
fn bounds(rows: &[(Size, bool)]) -> BTreeMap<Atom, i64> {
    let mut out: BTreeMap<Atom, i64> = BTreeMap::new();
    for (size, equation) in rows {
        let turned = size.neg();
        let both = if *equation { vec![size, &turned] } else { vec![size] };
        for size in both {
            let mut up = size.polynomial().iter().filter(|(m, c)| *c > 0 && !m.is_empty());
            let (Some((m, c)), None) = (up.next(), up.next()) else { continue };
            let [(atom, 1)] = m.as_slice() else { continue };
            let falls = |(m, c): &(Monomial, i64)| m.is_empty() || *c > 0 || m.iter().all(|(a, _)| a.is_natural());
            if size.polynomial().iter().all(falls) {
                let k = size.coefficient(&[]);
                // Rounded up.
                let bound = super::floor_div(k, *c).saturating_neg();
                let have = out.entry(atom.clone()).or_insert(bound);
                *have = bound.max(*have);
            }
        }
    }
    out
}

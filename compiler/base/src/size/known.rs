//! Sizes in terms of others that are told: `k*(8 // (k + 1))` where `k + 1` is known and `k` is not.
//!
//! What is told are equations between monomials. One after another is solved for a monomial that nothing tells, which is
//! replaced in the others and in the question, until none is left (Gaussian elimination; a monomial that is a multiple of
//! one that is replaced is replaced with it, as when dividing by a Gröbner basis).

use super::polynomial::{Sum, product, quotient};
use super::{Atom, Monomial, Size, SizeVar};
use std::collections::BTreeMap;

impl Size {
    /// The value where other sizes are known, each by its value: variables, atoms like `n // 4`, or sums. `None` where
    /// they do not tell it, on overflow and division by zero.
    pub fn eval_known(&self, known: &BTreeMap<Size, i64>) -> Option<i64> {
        if let Some(&n) = known.get(self) {
            return Some(n);
        }
        let name =
            |i: usize| SizeVar { id: u32::MAX - i as u32, name: "".into(), rigid: false, natural: false, each: false };
        let sizes: Vec<(&Size, SizeVar)> = known.keys().enumerate().map(|(i, size)| (size, name(i))).collect();
        let values: BTreeMap<&SizeVar, i64> = sizes.iter().map(|(_, var)| var).zip(known.values().copied()).collect();
        let (size, by) = self.in_terms_of(&sizes, &|v| values.contains_key(v))?;
        let n = size.eval(&|v| values.get(v).copied())?;
        (n.checked_rem(by)? == 0).then(|| n / by)
    }

    /// The size written with variables that are told (`told`) and those that stand for other sizes (`sizes`): `by` times
    /// the size. `None` where these do not tell it.
    pub fn in_terms_of(&self, sizes: &[(&Size, SizeVar)], told: &dyn Fn(&SizeVar) -> bool) -> Option<(Size, i64)> {
        let own = |v: &SizeVar| told(v) || sizes.iter().any(|(_, var)| var == v);
        let (mut rest, mut by) = (self.in_told_inside(sizes, told), 1i64);
        let mut equations: Vec<Size> =
            sizes.iter().map(|(size, var)| size.with_named_parts(sizes).sub(&Size::var(var.clone()))).collect();
        while rest.vars().iter().any(|v| !own(v)) {
            let at = equations.iter().position(|e| e.open_term(&own).is_some())?;
            let equation = equations.remove(at);
            let (monomial, c) = equation.open_term(&own)?;
            let other = Size::of_term(&monomial, c).sub(&equation);
            let (replaced, times) = rest.replaced((&monomial, c), &other)?;
            (rest, by) = (replaced, by.checked_mul(times)?);
            equations = equations.iter().filter_map(|e| Some(e.replaced((&monomial, c), &other)?.0)).collect();
        }
        Some((rest, by)).filter(|(size, _)| !size.overflowed())
    }

    /// The size, where other sizes that it is made of have their names: `n // 4 * m` where `n` is named `a` is `a // 4 * m`,
    /// as it is in a size whose parts are told.
    fn with_named_parts(&self, sizes: &[(&Size, SizeVar)]) -> Size {
        let named = |s: &Size| {
            sizes.iter().find(|(size, _)| *size == s && *size != self).map(|(_, var)| Size::var(var.clone()))
        };
        self.replace_atoms(&mut |atom| {
            let size = Size::atom(atom.clone());
            named(&size).unwrap_or_else(|| match atom {
                Atom::Var(_) => size,
                _ => atom.with_parts(&mut |s| named(s).unwrap_or_else(|| s.with_named_parts(sizes))).form(),
            })
        })
    }

    /// The size, where the operands of its divisions, minima and maxima are in terms of what is told.
    fn in_told_inside(&self, sizes: &[(&Size, SizeVar)], told: &dyn Fn(&SizeVar) -> bool) -> Size {
        let whole = |s: &Size| sizes.iter().find(|(size, _)| *size == s).map(|(_, var)| Size::var(var.clone()));
        let part = |s: &Size| {
            let in_terms_of = || s.in_terms_of(sizes, told).filter(|(_, by)| *by == 1).map(|(size, _)| size);
            whole(s).or_else(in_terms_of).unwrap_or_else(|| s.clone())
        };
        self.replace_atoms(&mut |atom| {
            let size = Size::atom(atom.clone());
            whole(&size).unwrap_or_else(|| {
                if let Atom::Var(_) = atom { size } else { atom.with_parts(&mut |s| part(s)).form() }
            })
        })
    }

    /// The term that comes first of those with a variable that is not told.
    fn open_term(&self, own: &dyn Fn(&SizeVar) -> bool) -> Option<(Monomial, i64)> {
        let open = |m: &Monomial| Size::of_term(m, 1).vars().iter().any(|v| !own(v));
        let mut sum = Sum::default();
        self.polynomial().iter().filter(|(m, _)| open(m)).for_each(|(m, c)| sum.add(m, *c));
        sum.size().leading().cloned()
    }

    fn of_term(monomial: &[(Atom, u32)], c: i64) -> Size {
        let mut sum = Sum::default();
        sum.add(monomial, c);
        sum.size()
    }

    /// The size where `c` times a monomial is replaced by another size; times a factor, where `c` does not divide.
    fn replaced(&self, (monomial, c): (&Monomial, i64), other: &Size) -> Option<(Size, i64)> {
        let split = |(m, t): &(Monomial, i64)| quotient(&(m.clone(), *t), &(monomial.clone(), 1));
        let whole = self.polynomial().iter().filter_map(split).all(|(_, t)| t.checked_rem(c) == Some(0));
        let times = if whole { 1 } else { c };
        let mut sum = Sum::default();
        for term in self.polynomial() {
            match split(term) {
                None => sum.add(&term.0, term.1.checked_mul(times)?),
                Some((rest, t)) => {
                    let t = if whole { t / c } else { t };
                    for (m, by) in other.polynomial() {
                        sum.add(&product(&rest, m), by.checked_mul(t)?);
                    }
                }
            }
        }
        Some((sum.size(), times)).filter(|(size, _)| !other.overflowed() && !self.overflowed() && !size.overflowed())
    }
}

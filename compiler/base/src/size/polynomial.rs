//! Arithmetic on sizes: polynomials with their atoms, in normal form.

use super::{Atom, Monomial, Size, SizeVar, floor_div, floor_mod};
use std::collections::BTreeSet;

/// A sum on the way: sorted, each monomial once.
#[derive(Default)]
pub(super) struct Sum {
    terms: Vec<(Monomial, i64)>,
    overflow: bool,
}

impl Sum {
    pub(super) fn add(&mut self, m: &[(Atom, u32)], c: i64) {
        match self.terms.binary_search_by(|(have, _)| have.as_slice().cmp(m)) {
            Ok(at) => match self.terms[at].1.checked_add(c) {
                None => self.overflow = true,
                Some(0) => drop(self.terms.remove(at)),
                Some(n) => self.terms[at].1 = n,
            },
            Err(at) if c != 0 => self.terms.insert(at, (m.to_vec(), c)),
            Err(_) => {}
        }
    }

    fn add_all(&mut self, size: &Size, k: i64) {
        self.overflow |= size.overflow;
        for (m, c) in size.terms.iter() {
            match c.checked_mul(k) {
                None => self.overflow = true,
                Some(c) => self.add(m, c),
            }
        }
    }

    pub(super) fn size(self) -> Size {
        Size { terms: self.terms.into(), overflow: self.overflow }
    }
}

/// The product of two monomials, whose atoms are sorted.
pub(super) fn product(a: &[(Atom, u32)], b: &[(Atom, u32)]) -> Monomial {
    let mut out: Monomial = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        match x.0.cmp(&y.0) {
            std::cmp::Ordering::Less => out.extend(a.next().cloned()),
            std::cmp::Ordering::Greater => out.extend(b.next().cloned()),
            std::cmp::Ordering::Equal => {
                out.push((x.0.clone(), x.1 + y.1));
                a.next();
                b.next();
            }
        }
    }
    out.extend(a.chain(b).cloned());
    out
}

/// Terms of a quotient.
const QUOTIENT_MAX: usize = 64;

/// The quotient of two terms, where the second divides the first.
pub(super) fn quotient((m, c): &(Monomial, i64), (dm, dc): &(Monomial, i64)) -> Option<(Monomial, i64)> {
    if c.checked_rem(*dc)? != 0 {
        return None;
    }
    let mut powers = m.clone();
    for (a, p) in dm {
        let (_, have) = powers.iter_mut().find(|(atom, _)| atom == a)?;
        *have = have.checked_sub(*p)?;
    }
    powers.retain(|(_, p)| *p > 0);
    Some((powers, c / dc))
}

impl Size {
    pub fn constant(n: i64) -> Size {
        let mut sum = Sum::default();
        sum.add(&[], n);
        sum.size()
    }

    pub fn var(v: SizeVar) -> Size {
        Size::atom(Atom::Var(v))
    }

    /// A number; it is not known as a size where 64 bits do not hold it.
    pub fn wide(n: i128) -> Size {
        i64::try_from(n).map_or(Size { overflow: true, ..Size::default() }, Size::constant)
    }

    pub(super) fn atom(a: Atom) -> Size {
        Size::of_monomial(vec![(a, 1)])
    }

    /// The value, if no variable is left.
    pub fn as_const(&self) -> Option<i64> {
        if self.overflow {
            return None;
        }
        match &*self.terms {
            [] => Some(0),
            [(m, c)] if m.is_empty() => Some(*c),
            _ => None,
        }
    }

    /// The variable, if the size is just one.
    pub fn as_var(&self) -> Option<&SizeVar> {
        match &*self.terms {
            [(m, 1)] => match m.as_slice() {
                [(Atom::Var(v), 1)] => Some(v),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn is_zero(&self) -> bool {
        self.as_const() == Some(0)
    }

    pub fn add(&self, other: &Size) -> Size {
        self.plus(other, 1)
    }

    pub fn neg(&self) -> Size {
        self.scale(-1)
    }

    pub fn sub(&self, other: &Size) -> Size {
        self.plus(other, -1)
    }

    /// `self + k * other`.
    fn plus(&self, other: &Size, k: i64) -> Size {
        let mut out = Sum { terms: self.terms.to_vec(), overflow: self.overflow };
        out.add_all(other, k);
        out.size()
    }

    pub fn scale(&self, k: i64) -> Size {
        let mut out = Sum::default();
        out.add_all(self, k);
        out.size()
    }

    pub fn mul(&self, other: &Size) -> Size {
        let mut out = Sum { overflow: self.overflow || other.overflow, ..Sum::default() };
        for (ma, ca) in self.terms.iter() {
            for (mb, cb) in other.terms.iter() {
                match ca.checked_mul(*cb) {
                    None => out.overflow = true,
                    Some(c) => out.add(&product(ma, mb), c),
                }
            }
        }
        out.size()
    }

    /// The quotient if `other` divides `self` as polynomials.
    pub fn exact_div(&self, other: &Size) -> Option<Size> {
        if self.overflow || other.overflow {
            return None;
        }
        if self == other && !self.is_zero() {
            return Some(Size::constant(1));
        }
        let first = other.leading()?;
        let (mut rest, mut out) = (self.clone(), Sum::default());
        for _ in 0..QUOTIENT_MAX {
            let Some(term) = rest.leading() else { return Some(out.size()) };
            let (m, c) = quotient(term, first)?;
            out.add(&m, c);
            if other.terms.len() == 1 && rest.terms.len() == 1 {
                return Some(out.size());
            }
            rest = rest.sub(&other.mul(&Size { terms: [(m, c)].into(), overflow: false }));
            if rest.overflow {
                return None;
            }
        }
        None
    }

    /// The term that comes first in an order that products keep: by degree, then by the powers of each atom in turn.
    pub(super) fn leading(&self) -> Option<&(Monomial, i64)> {
        let degree = |m: &Monomial| m.iter().map(|(_, p)| *p).sum::<u32>();
        self.terms.iter().max_by(|(a, _), (b, _)| {
            let mut pairs = a.iter().zip(b).map(|((x, p), (y, q))| y.cmp(x).then(p.cmp(q)));
            let powers = pairs.find(|o| o.is_ne()).unwrap_or(a.len().cmp(&b.len()));
            degree(a).cmp(&degree(b)).then(powers)
        })
    }

    /// Floor division. Division by the constant zero gives `None`.
    pub fn floor_div(&self, other: &Size) -> Option<Size> {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            let overflow = a == i64::MIN && b == -1;
            return (b != 0).then(|| Size { overflow, ..Size::constant(floor_div(a, b)) });
        }
        if other.is_zero() {
            return None;
        }
        if let Some(q) = self.exact_div(other) {
            return Some(q);
        }
        let (q, r) = other.as_const().map_or_else(|| (Size::default(), self.clone()), |d| self.whole_part(d));
        let overflow = self.overflow || other.overflow;
        Some(match (r.as_const(), other.as_const()) {
            (Some(r), Some(d)) => q.add(&Size::constant(floor_div(r, d))),
            _ => q.add(&Size::atom(Atom::Div(Box::new(r), Box::new(other.clone()))).or_overflow(overflow)),
        })
    }

    /// How many pieces of `piece` elements, which is at least 1, hold so many: rounded up.
    pub fn ceil_div(&self, piece: i64) -> Size {
        // As `(n - 1) // piece + 1`, no sum leaves 64 bits.
        let one = Size::constant(1);
        match self.as_const() {
            _ if piece == 1 => self.clone(),
            Some(n) => Size::wide(-(-i128::from(n)).div_euclid(i128::from(piece))),
            None => self.sub(&one).floor_div(&Size::constant(piece)).unwrap_or_default().add(&one),
        }
    }

    /// `d·q + r` with the terms that `d` divides in `q`, and a constant in `0..d` in `r`: `(N - 2) // 2` and
    /// `N // 2 - 1` get one form.
    fn whole_part(&self, d: i64) -> (Size, Size) {
        let (mut q, mut r) = (Sum::default(), Sum { overflow: self.overflow, ..Sum::default() });
        for (m, c) in self.terms.iter() {
            match c.checked_rem(d) {
                Some(0) => q.add(m, c / d),
                Some(_) if m.is_empty() && d > 0 => {
                    q.add(&[], floor_div(*c, d));
                    r.add(&[], floor_mod(*c, d));
                }
                _ => r.add(m, *c),
            }
        }
        (q.size(), r.size())
    }

    /// Floor remainder. Division by the constant zero gives `None`.
    pub fn floor_mod(&self, other: &Size) -> Option<Size> {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return (b != 0).then(|| Size::constant(floor_mod(a, b)));
        }
        if other.is_zero() {
            return None;
        }
        if self.exact_div(other).is_some() {
            return Some(Size::constant(0));
        }
        let rest = Size::atom(Atom::Mod(Box::new(self.clone()), Box::new(other.clone())));
        Some(rest.or_overflow(self.overflow || other.overflow))
    }

    /// The smaller one. One form for both orders of the operands.
    pub fn least(&self, other: &Size) -> Size {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return Size::constant(a.min(b));
        }
        if other.sub(self).reaches(0) {
            self.clone()
        } else if self.sub(other).reaches(0) {
            other.clone()
        } else {
            let (a, b) = if self <= other { (self, other) } else { (other, self) };
            let overflow = self.overflow || other.overflow;
            Size::atom(Atom::Min(Box::new(a.clone()), Box::new(b.clone()))).or_overflow(overflow)
        }
    }

    /// The larger one. One form for both orders of the operands.
    pub fn greatest(&self, other: &Size) -> Size {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return Size::constant(a.max(b));
        }
        if self.sub(other).reaches(0) {
            self.clone()
        } else if other.sub(self).reaches(0) {
            other.clone()
        } else {
            let (a, b) = if self <= other { (self, other) } else { (other, self) };
            let overflow = self.overflow || other.overflow;
            Size::atom(Atom::Max(Box::new(a.clone()), Box::new(b.clone()))).or_overflow(overflow)
        }
    }

    /// The monomials with their coefficients: each a product of atoms with their powers (empty
    /// is 1). `None` where arithmetic overflowed.
    pub fn terms(&self) -> Option<impl Iterator<Item = (&[(Atom, u32)], i64)>> {
        (!self.overflow).then(|| self.terms.iter().map(|(m, c)| (m.as_slice(), *c)))
    }

    /// Every variable in it, in order.
    pub fn vars(&self) -> BTreeSet<SizeVar> {
        let mut out = BTreeSet::new();
        for atom in self.monomials().flatten().map(|(a, _)| a) {
            match atom {
                Atom::Var(v) => {
                    out.insert(v.clone());
                }
                Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                    out.extend(a.vars());
                    out.extend(b.vars());
                }
            }
        }
        out
    }

    /// Whether one of these variables is in it.
    pub(super) fn mentions(&self, vars: &BTreeSet<SizeVar>) -> bool {
        self.monomials().flatten().any(|(atom, _)| match atom {
            Atom::Var(v) => vars.contains(v),
            Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                a.mentions(vars) || b.mentions(vars)
            }
        })
    }

    /// Whether no variable is in it.
    pub(super) fn is_closed(&self) -> bool {
        self.monomials().flatten().all(|(atom, _)| match atom {
            Atom::Var(_) => false,
            Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => a.is_closed() && b.is_closed(),
        })
    }

    /// The size with each variable replaced. `None` for a variable keeps it.
    pub fn substitute(&self, f: &mut dyn FnMut(&SizeVar) -> Option<Size>) -> Size {
        if let Some(n) = self.as_const() {
            return Size::constant(n);
        }
        if let Some(v) = self.as_var().filter(|_| !self.overflow) {
            return f(v).unwrap_or_else(|| self.clone());
        }
        self.rebuild(&mut |atom| match &atom {
            Atom::Var(v) => f(v).unwrap_or_else(|| Size::atom(atom)),
            _ => atom.form(),
        })
    }

    /// The size built anew from `f` of each atom, whose operands are built anew before.
    pub(super) fn rebuild(&self, f: &mut dyn FnMut(Atom) -> Size) -> Size {
        self.replace_atoms(&mut |atom| {
            let atom = atom.with_parts(&mut |part| part.rebuild(f));
            f(atom)
        })
    }

    /// The size built anew from `f` of each atom as it is.
    pub(super) fn replace_atoms(&self, f: &mut dyn FnMut(&Atom) -> Size) -> Size {
        let mut out = Sum { overflow: self.overflow, ..Sum::default() };
        for (m, c) in self.terms.iter() {
            let mut product = Size::constant(*c);
            for (atom, power) in m {
                let value = f(atom);
                for _ in 0..*power {
                    product = product.mul(&value);
                }
            }
            out.add_all(&product, 1);
        }
        out.size()
    }

    /// The polynomial as monomials with their coefficients, sorted.
    pub(super) fn polynomial(&self) -> &[(Monomial, i64)] {
        &self.terms
    }

    pub(super) fn monomials(&self) -> impl Iterator<Item = &Monomial> {
        self.terms.iter().map(|(m, _)| m)
    }

    /// The coefficient of a monomial: 0 where it does not occur.
    pub(super) fn coefficient(&self, m: &[(Atom, u32)]) -> i64 {
        self.terms.binary_search_by(|(have, _)| have.as_slice().cmp(m)).map_or(0, |at| self.terms[at].1)
    }

    /// Whether its arithmetic left 64 bits, so that its value is not known.
    pub fn overflowed(&self) -> bool {
        self.overflow
    }

    /// The same, or unknown where `overflow` says so.
    pub(super) fn or_overflow(mut self, overflow: bool) -> Size {
        self.overflow |= overflow;
        self
    }

    pub(super) fn of_monomial(m: Monomial) -> Size {
        Size { terms: [(m, 1)].into(), overflow: false }
    }

    /// How many variables and constants it is written with, counted up to `most`: a power as so many factors.
    pub fn weight(&self, most: usize) -> usize {
        let mut sum = 0;
        for m in self.monomials() {
            sum += 1;
            for (atom, power) in m {
                if sum >= most {
                    return most;
                }
                let one = match atom {
                    Atom::Var(_) => 1,
                    Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                        let first = a.weight(most - sum);
                        first + b.weight((most - sum).saturating_sub(first))
                    }
                };
                sum = sum.saturating_add(one.saturating_mul(*power as usize));
            }
        }
        sum.min(most)
    }

    /// How many terms it has at the most, and how much it weighs, where variables become sizes: both counted up to `most`.
    pub(super) fn grown<'a>(&self, most: usize, f: &dyn Fn(&SizeVar) -> Option<&'a Size>) -> (usize, usize) {
        let (mut terms, mut sum) = (0usize, 0usize);
        for m in self.monomials() {
            let (mut count, mut weight) = (1usize, 1usize);
            for (atom, power) in m {
                let (t, w) = match atom {
                    Atom::Var(v) => f(v).map_or((1, 1), |s| (s.terms.len(), s.weight(most))),
                    Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                        let (a, b) = (a.grown(most, f), b.grown(most, f));
                        (a.0, a.1.saturating_add(b.1))
                    }
                };
                count = count.saturating_mul(t.max(1).saturating_pow(*power));
                weight = weight.saturating_add(w.saturating_mul(*power as usize));
                if count >= most || weight >= most {
                    return (most, most);
                }
            }
            terms = terms.saturating_add(count);
            sum = sum.saturating_add(count.saturating_mul(weight));
            if sum >= most {
                return (most, most);
            }
        }
        (terms.min(most), sum)
    }

    /// The value at an assignment; `None` on overflow, division by zero or a missing variable.
    pub fn eval(&self, f: &dyn Fn(&SizeVar) -> Option<i64>) -> Option<i64> {
        self.sum_of(&|atom| match atom {
            Atom::Var(v) => f(v),
            _ => atom.eval(&|part| part.eval(f)),
        })
    }

    fn sum_of(&self, f: &dyn Fn(&Atom) -> Option<i64>) -> Option<i64> {
        if self.overflow {
            return None;
        }
        let mut sum = 0i64;
        for (m, c) in self.terms.iter() {
            let mut product = *c;
            for (atom, power) in m {
                let value = f(atom)?;
                for _ in 0..*power {
                    product = product.checked_mul(value)?;
                }
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    /// Whether the value is certainly `bound` or more, seen from its form alone: dims are at least 0, and no coefficient
    /// is negative. `false` means "not seen".
    pub(super) fn reaches(&self, bound: i64) -> bool {
        let constant = self.coefficient(&[]);
        !self.overflow
            && constant >= bound
            && self.terms.iter().all(|(m, c)| m.is_empty() || *c > 0 && m.iter().all(|(a, _)| a.is_natural()))
    }
}

impl Atom {
    /// The operation with other operands.
    pub(super) fn with_parts(&self, f: &mut dyn FnMut(&Size) -> Size) -> Atom {
        let mut part = |size: &Size| Box::new(f(size));
        match self {
            Atom::Var(v) => Atom::Var(v.clone()),
            Atom::Div(a, b) => Atom::Div(part(a), part(b)),
            Atom::Mod(a, b) => Atom::Mod(part(a), part(b)),
            Atom::Min(a, b) => Atom::Min(part(a), part(b)),
            Atom::Max(a, b) => Atom::Max(part(a), part(b)),
        }
    }

    /// The value from those of its parts; `None` of a variable.
    fn eval(&self, f: &dyn Fn(&Size) -> Option<i64>) -> Option<i64> {
        match self {
            Atom::Var(_) => None,
            Atom::Div(a, b) => match (f(a)?, f(b)?) {
                (_, 0) | (i64::MIN, -1) => None,
                (a, b) => Some(floor_div(a, b)),
            },
            Atom::Mod(a, b) => match (f(a)?, f(b)?) {
                (_, 0) => None,
                (a, b) => Some(floor_mod(a, b)),
            },
            Atom::Min(a, b) => Some(f(a)?.min(f(b)?)),
            Atom::Max(a, b) => Some(f(a)?.max(f(b)?)),
        }
    }

    /// Whether it is at least 0, seen from its form. What divides is not 0 where the quotient has a value.
    pub(super) fn is_natural(&self) -> bool {
        match self {
            Atom::Var(v) => v.natural,
            Atom::Div(a, b) => a.reaches(0) && b.reaches(0),
            Atom::Mod(_, b) => b.reaches(0),
            Atom::Min(a, b) => a.reaches(0) && b.reaches(0),
            Atom::Max(a, b) => a.reaches(0) || b.reaches(0),
        }
    }

    /// The size that the operation gives, in normal form.
    pub(super) fn form(self) -> Size {
        match &self {
            Atom::Div(a, b) => a.floor_div(b).unwrap_or_else(|| Size::atom(self.clone())),
            Atom::Mod(a, b) => a.floor_mod(b).unwrap_or_else(|| Size::atom(self.clone())),
            Atom::Min(a, b) => a.least(b),
            Atom::Max(a, b) => a.greatest(b),
            Atom::Var(_) => Size::atom(self),
        }
    }
}

impl From<i64> for Size {
    fn from(n: i64) -> Size {
        Size::constant(n)
    }
}

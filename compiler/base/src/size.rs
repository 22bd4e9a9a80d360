//! Sizes: integer polynomials over size variables, in normal form.
//!
//! `4*D`, `H*W//2` and `N+1` are sizes. Two sizes are compared by their normal forms, with
//! divisibility facts (`D % H == 0`) as rewrites. Values are non-negative when the size is a
//! dim, but differences (`hi - lo`) may be negative on the way, so coefficients are `i64`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A size variable. Identity is the number; the name is for people.
#[derive(Clone, Debug)]
pub struct SizeVar {
    pub id: u32,
    pub name: Arc<str>,
    /// Rigid variables belong to a signature and stand for *all* sizes; the others are sizes
    /// that only data knows.
    pub rigid: bool,
    /// In the element type of a list or dict: another size in each element.
    pub each: bool,
}

impl SizeVar {
    /// The variable as another size in each element of a list.
    pub fn in_each(&self) -> SizeVar {
        SizeVar { each: true, ..self.clone() }
    }
}

impl PartialEq for SizeVar {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}
impl Eq for SizeVar {}
impl PartialOrd for SizeVar {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for SizeVar {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.id.cmp(&other.id)
    }
}
impl std::hash::Hash for SizeVar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state)
    }
}

/// What a polynomial is made of: a variable, or an operation that polynomials do not have.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Atom {
    Var(SizeVar),
    /// Floor division.
    Div(Box<Size>, Box<Size>),
    /// Floor remainder.
    Mod(Box<Size>, Box<Size>),
    Min(Box<Size>, Box<Size>),
    Max(Box<Size>, Box<Size>),
}

/// A product of atoms with their powers, sorted. Empty is 1.
type Monomial = Vec<(Atom, u32)>;

/// A polynomial: monomials with coefficients that are not zero.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Size {
    terms: BTreeMap<Monomial, i64>,
    /// Arithmetic on the coefficients overflowed: the value is not known.
    overflow: bool,
}

/// The answer to "are these two sizes equal?".
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    Equal,
    /// Different for every value of the variables. The witness names one assignment.
    Differ(Witness),
    /// Different for some values; the witness is one of them.
    Depends(Witness),
}

/// Values of the variables, and what the two sizes are there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    pub values: Vec<(Arc<str>, i64)>,
    pub left: i64,
    pub right: i64,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.values.is_empty() {
            return write!(f, "{} and {}", self.left, self.right);
        }
        let values: Vec<String> = self.values.iter().map(|(n, v)| format!("{n}={v}")).collect();
        write!(f, "{} gives {} and {}", values.join(", "), self.left, self.right)
    }
}

/// What is known about sizes besides their form.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Facts {
    /// `divisor` divides `dividend`.
    pub divides: Vec<(Size, Size)>,
    /// Equations `left = right`, used left to right where `left` is one variable.
    pub equal: Vec<(SizeVar, Size)>,
}

impl Size {
    pub fn constant(n: i64) -> Size {
        let mut terms = BTreeMap::new();
        if n != 0 {
            terms.insert(vec![], n);
        }
        Size { terms, overflow: false }
    }

    pub fn var(v: SizeVar) -> Size {
        Size::atom(Atom::Var(v))
    }

    fn atom(a: Atom) -> Size {
        Size { terms: BTreeMap::from([(vec![(a, 1)], 1)]), overflow: false }
    }

    /// The value, if no variable is left.
    pub fn as_const(&self) -> Option<i64> {
        if self.overflow {
            return None;
        }
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&vec![] as &Monomial).copied(),
            _ => None,
        }
    }

    /// The variable, if the size is just one.
    pub fn as_var(&self) -> Option<&SizeVar> {
        let (m, &c) = self.terms.iter().next()?;
        match (self.terms.len(), c, m.as_slice()) {
            (1, 1, [(Atom::Var(v), 1)]) => Some(v),
            _ => None,
        }
    }

    pub fn is_zero(&self) -> bool {
        self.as_const() == Some(0)
    }

    fn insert(&mut self, m: Monomial, c: i64) {
        let sum = self.terms.get(&m).copied().unwrap_or(0).checked_add(c);
        match sum {
            None => self.overflow = true,
            Some(0) => {
                self.terms.remove(&m);
            }
            Some(n) => {
                self.terms.insert(m, n);
            }
        }
    }

    pub fn add(&self, other: &Size) -> Size {
        let mut out = self.clone();
        out.overflow |= other.overflow;
        for (m, &c) in &other.terms {
            out.insert(m.clone(), c);
        }
        out
    }

    pub fn neg(&self) -> Size {
        self.scale(-1)
    }

    pub fn sub(&self, other: &Size) -> Size {
        self.add(&other.neg())
    }

    pub fn scale(&self, k: i64) -> Size {
        self.mul(&Size::constant(k))
    }

    pub fn mul(&self, other: &Size) -> Size {
        let mut out = Size { overflow: self.overflow || other.overflow, ..Size::default() };
        for (ma, &ca) in &self.terms {
            for (mb, &cb) in &other.terms {
                let mut powers: BTreeMap<Atom, u32> = ma.iter().cloned().collect();
                for (a, p) in mb {
                    *powers.entry(a.clone()).or_insert(0) += p;
                }
                match ca.checked_mul(cb) {
                    None => out.overflow = true,
                    Some(c) => out.insert(powers.into_iter().collect(), c),
                }
            }
        }
        out
    }

    /// The quotient if `other` divides `self` as polynomials (a single term as divisor).
    pub fn exact_div(&self, other: &Size) -> Option<Size> {
        if self == other && !self.is_zero() {
            return Some(Size::constant(1));
        }
        let (dm, &dc) = other.terms.iter().next().filter(|_| other.terms.len() == 1)?;
        let mut out = Size::default();
        for (m, &c) in &self.terms {
            if dc == 0 || c.checked_rem(dc)? != 0 {
                return None;
            }
            let mut powers: BTreeMap<Atom, u32> = m.iter().cloned().collect();
            for (a, p) in dm {
                let have = powers.get_mut(a)?;
                *have = have.checked_sub(*p)?;
            }
            powers.retain(|_, p| *p > 0);
            out.insert(powers.into_iter().collect(), c / dc);
        }
        Some(out)
    }

    /// Floor division. Division by the constant zero gives `None`.
    pub fn floor_div(&self, other: &Size) -> Option<Size> {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return (b != 0).then(|| Size::constant(floor_div(a, b)));
        }
        if other.is_zero() {
            return None;
        }
        if let Some(q) = self.exact_div(other) {
            return Some(q);
        }
        let (q, r) = other.as_const().map_or_else(|| (Size::default(), self.clone()), |d| self.whole_part(d));
        Some(q.add(&Size::atom(Atom::Div(Box::new(r), Box::new(other.clone())))))
    }

    /// `d·q + r` with the terms that `d` divides in `q`, and a constant in `0..d` in `r`: `(N - 2) // 2` and
    /// `N // 2 - 1` get one form.
    fn whole_part(&self, d: i64) -> (Size, Size) {
        let (mut q, mut r) = (Size::default(), Size { overflow: self.overflow, ..Size::default() });
        for (m, &c) in &self.terms {
            match c.checked_rem(d) {
                Some(0) => q.insert(m.clone(), c / d),
                Some(_) if m.is_empty() && d > 0 => {
                    q.insert(vec![], floor_div(c, d));
                    r.insert(vec![], c - floor_div(c, d) * d);
                }
                _ => r.insert(m.clone(), c),
            }
        }
        (q, r)
    }

    /// Floor remainder. Division by the constant zero gives `None`.
    pub fn floor_mod(&self, other: &Size) -> Option<Size> {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return (b != 0).then(|| Size::constant(a - floor_div(a, b) * b));
        }
        if other.is_zero() {
            return None;
        }
        if self.exact_div(other).is_some() {
            return Some(Size::constant(0));
        }
        Some(Size::atom(Atom::Mod(Box::new(self.clone()), Box::new(other.clone()))))
    }

    pub fn least(&self, other: &Size) -> Size {
        match self.sub(other).as_const() {
            Some(d) => {
                if d <= 0 {
                    self.clone()
                } else {
                    other.clone()
                }
            }
            None => {
                let (a, b) = if self <= other { (self, other) } else { (other, self) };
                Size::atom(Atom::Min(Box::new(a.clone()), Box::new(b.clone())))
            }
        }
    }

    pub fn greatest(&self, other: &Size) -> Size {
        match self.sub(other).as_const() {
            Some(d) => {
                if d >= 0 {
                    self.clone()
                } else {
                    other.clone()
                }
            }
            None => {
                let (a, b) = if self <= other { (self, other) } else { (other, self) };
                Size::atom(Atom::Max(Box::new(a.clone()), Box::new(b.clone())))
            }
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
        for atom in self.terms.keys().flatten().map(|(a, _)| a) {
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

    /// The size with each variable replaced. `None` for a variable keeps it.
    pub fn substitute(&self, f: &mut dyn FnMut(&SizeVar) -> Option<Size>) -> Size {
        let mut out = Size { overflow: self.overflow, ..Size::default() };
        for (m, &c) in &self.terms {
            let mut product = Size::constant(c);
            for (atom, power) in m {
                let value = match atom {
                    Atom::Var(v) => f(v).unwrap_or_else(|| Size::var(v.clone())),
                    Atom::Div(a, b) => {
                        let (a, b) = (a.substitute(f), b.substitute(f));
                        a.floor_div(&b).unwrap_or_else(|| Size::atom(Atom::Div(Box::new(a), Box::new(b))))
                    }
                    Atom::Mod(a, b) => {
                        let (a, b) = (a.substitute(f), b.substitute(f));
                        a.floor_mod(&b).unwrap_or_else(|| Size::atom(Atom::Mod(Box::new(a), Box::new(b))))
                    }
                    Atom::Min(a, b) => a.substitute(f).least(&b.substitute(f)),
                    Atom::Max(a, b) => a.substitute(f).greatest(&b.substitute(f)),
                };
                for _ in 0..*power {
                    product = product.mul(&value);
                }
            }
            out = out.add(&product);
        }
        out
    }

    /// The value at an assignment; `None` on overflow, division by zero or a missing variable.
    pub fn eval(&self, f: &dyn Fn(&SizeVar) -> Option<i64>) -> Option<i64> {
        if self.overflow {
            return None;
        }
        let mut sum = 0i64;
        for (m, &c) in &self.terms {
            let mut product = c;
            for (atom, power) in m {
                let value = match atom {
                    Atom::Var(v) => f(v)?,
                    Atom::Div(a, b) => {
                        let (a, b) = (a.eval(f)?, b.eval(f)?);
                        if b == 0 { return None } else { floor_div(a, b) }
                    }
                    Atom::Mod(a, b) => {
                        let (a, b) = (a.eval(f)?, b.eval(f)?);
                        if b == 0 { return None } else { a - floor_div(a, b) * b }
                    }
                    Atom::Min(a, b) => a.eval(f)?.min(b.eval(f)?),
                    Atom::Max(a, b) => a.eval(f)?.max(b.eval(f)?),
                };
                for _ in 0..*power {
                    product = product.checked_mul(value)?;
                }
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    /// The normal form under facts: known equations applied, and a dividend `d` with
    /// `h | d` written as `h * (d // h)`.
    pub fn normal(&self, facts: &Facts) -> Size {
        let mut size = self.clone();
        for _ in 0..8 {
            let next = size
                .substitute(&mut |v| facts.equal.iter().find(|(left, _)| left == v).map(|(_, right)| right.clone()));
            if next == size {
                break;
            }
            size = next;
        }
        for (divisor, dividend) in &facts.divides {
            let Some(d) = dividend.as_var() else { continue };
            let whole = Size::atom(Atom::Div(Box::new(dividend.clone()), Box::new(divisor.clone())));
            // First protect `d // h` itself, then spell every other `d` out.
            let spelled = divisor.mul(&whole);
            size = size.replace(d, &whole, &spelled);
        }
        size
    }

    /// Replaces the variable `d` by `spelled`, leaving the atom that `keep` is untouched.
    fn replace(&self, d: &SizeVar, keep: &Size, spelled: &Size) -> Size {
        let keep_atom = keep.terms.keys().next().and_then(|m| m.first()).map(|(a, _)| a.clone());
        let mut out = Size { overflow: self.overflow, ..Size::default() };
        for (m, &c) in &self.terms {
            let mut product = Size::constant(c);
            for (atom, power) in m {
                let value = match atom {
                    Atom::Var(v) if v == d => spelled.clone(),
                    a if Some(a) == keep_atom.as_ref() => keep.clone(),
                    Atom::Div(a, b) => {
                        let (a, b) = (a.replace(d, keep, spelled), b.replace(d, keep, spelled));
                        a.floor_div(&b).unwrap_or_default()
                    }
                    Atom::Mod(a, b) => {
                        let (a, b) = (a.replace(d, keep, spelled), b.replace(d, keep, spelled));
                        a.floor_mod(&b).unwrap_or_default()
                    }
                    other => Size::atom(other.clone()),
                };
                for _ in 0..*power {
                    product = product.mul(&value);
                }
            }
            out = out.add(&product);
        }
        out
    }

    /// Whether the value is certainly `bound` or more while every variable is at least 1.
    /// `false` means "not known".
    pub fn is_at_least(&self, bound: i64) -> bool {
        // Write each variable as 1 + v with v >= 0: then signs of coefficients decide.
        let shifted = self.substitute(&mut |v| Some(Size::var(v.clone()).add(&Size::constant(1))));
        shifted.reaches(bound)
    }

    /// Like [`Size::is_at_least`] while every variable is at least 0.
    fn reaches(&self, bound: i64) -> bool {
        let constant = self.terms.get(&vec![] as &Monomial).copied().unwrap_or(0);
        let natural = |a: &Atom| match a {
            Atom::Var(_) => true,
            Atom::Div(a, b) => a.reaches(0) && b.reaches(1),
            Atom::Mod(_, b) => b.reaches(1),
            Atom::Min(a, b) => a.reaches(0) && b.reaches(0),
            Atom::Max(a, b) => a.reaches(0) || b.reaches(0),
        };
        !self.overflow
            && constant >= bound
            && self.terms.iter().all(|(m, &c)| m.is_empty() || c > 0 && m.iter().all(|(a, _)| natural(a)))
    }

    /// Are the two sizes equal, given the facts? Variables stand for sizes of at least 1.
    pub fn compare(&self, other: &Size, facts: &Facts) -> Verdict {
        let (a, b) = (self.normal(facts), other.normal(facts));
        if a == b && !a.overflow {
            return Verdict::Equal;
        }
        let witness = find_witness(self, other, facts);
        let difference = a.sub(&b);
        let never = match difference.as_const() {
            Some(d) => d != 0,
            // All coefficients of one sign, and no division inside: the difference is never 0
            // while every variable is at least 1.
            None => {
                let plain = difference.terms.keys().flatten().all(|(a, _)| matches!(a, Atom::Var(_)));
                let constant = difference.terms.get(&vec![] as &Monomial).copied().unwrap_or(0);
                plain
                    && !difference.overflow
                    && (difference.terms.values().all(|&c| c > 0) && constant >= 0
                        || difference.terms.values().all(|&c| c < 0) && constant <= 0)
            }
        };
        if never { Verdict::Differ(witness) } else { Verdict::Depends(witness) }
    }
}

fn floor_div(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { q - 1 } else { q }
}

/// The smallest assignment (by sum, then in order) at which the two sizes differ.
fn find_witness(a: &Size, b: &Size, facts: &Facts) -> Witness {
    let vars: Vec<SizeVar> = a.vars().union(&b.vars()).cloned().collect();
    let found = |values: &[i64]| -> Option<Witness> {
        let at = |v: &SizeVar| vars.iter().position(|w| w == v).map(|i| values[i]);
        let holds = facts.divides.iter().all(|(h, d)| match (h.eval(&at), d.eval(&at)) {
            (Some(h), Some(d)) => h != 0 && d % h == 0,
            _ => true,
        });
        let (left, right) = (a.eval(&at)?, b.eval(&at)?);
        (holds && left != right).then(|| Witness {
            values: vars.iter().map(|v| v.name.clone()).zip(values.iter().copied()).collect(),
            left,
            right,
        })
    };
    for limit in 1..=4i64 {
        let mut values = vec![1i64; vars.len()];
        let mut steps = 0;
        loop {
            if let Some(w) = found(&values) {
                return w;
            }
            steps += 1;
            let Some(i) = values.iter().position(|&v| v < limit) else { break };
            if steps > 2000 {
                break;
            }
            values[i] += 1;
            for v in &mut values[..i] {
                *v = 1;
            }
        }
    }
    Witness { values: vec![], left: a.as_const().unwrap_or(0), right: b.as_const().unwrap_or(0) }
}

impl From<i64> for Size {
    fn from(n: i64) -> Size {
        Size::constant(n)
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let inner = |s: &Size| if s.is_simple() { s.to_string() } else { format!("({s})") };
        match self {
            Atom::Var(v) => f.write_str(&v.name),
            Atom::Div(a, b) => write!(f, "{}//{}", inner(a), inner(b)),
            Atom::Mod(a, b) => write!(f, "{}%{}", inner(a), inner(b)),
            Atom::Min(a, b) => write!(f, "min({a}, {b})"),
            Atom::Max(a, b) => write!(f, "max({a}, {b})"),
        }
    }
}

impl Size {
    /// One constant or one variable: needs no parentheses.
    fn is_simple(&self) -> bool {
        self.as_const().is_some() || self.as_var().is_some()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.overflow {
            return f.write_str("?");
        }
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        // Highest degree first, the constant last, as people write it.
        let mut terms: Vec<(&Monomial, i64)> = self.terms.iter().map(|(m, &c)| (m, c)).collect();
        terms.sort_by_key(|(m, _)| std::cmp::Reverse(m.iter().map(|(_, p)| *p).sum::<u32>()));
        for (i, (m, c)) in terms.iter().enumerate() {
            let sign = match (i, *c < 0) {
                (0, true) => "-",
                (0, false) => "",
                (_, true) => " - ",
                (_, false) => " + ",
            };
            f.write_str(sign)?;
            let mut factors = vec![];
            let magnitude = c.unsigned_abs();
            if magnitude != 1 || m.is_empty() {
                factors.push(magnitude.to_string());
            }
            for (a, p) in m.iter() {
                for _ in 0..*p {
                    // `(a//b)*c` needs its parentheses beside other factors.
                    let text = a.to_string();
                    let bare = matches!(a, Atom::Var(_) | Atom::Min(..) | Atom::Max(..));
                    factors.push(if bare || (m.len() == 1 && *p == 1 && magnitude == 1) {
                        text
                    } else {
                        format!("({text})")
                    });
                }
            }
            f.write_str(&factors.join("*"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(id: u32, name: &str) -> Size {
        Size::var(SizeVar { id, name: name.into(), rigid: true, each: false })
    }

    #[test]
    fn products_and_sums_have_one_form() {
        let (h, w) = (v(0, "H"), v(1, "W"));
        assert_eq!(h.mul(&w), w.mul(&h));
        assert_eq!(h.add(&h), h.scale(2));
        assert_eq!(h.sub(&h), Size::constant(0));
        assert_eq!(h.scale(4).to_string(), "4*H");
        assert_eq!(h.mul(&w).add(&1.into()).to_string(), "H*W + 1");
        assert_eq!(h.mul(&w).floor_div(&2.into()).map(|s| s.to_string()), Some("(H*W)//2".into()));
    }

    #[test]
    fn four_h_is_never_three_h() {
        let h = v(0, "H");
        let Verdict::Differ(w) = h.scale(4).compare(&h.scale(3), &Facts::default()) else { panic!("not differ") };
        assert_eq!(w.to_string(), "H=1 gives 4 and 3");
        assert!(matches!(h.compare(&v(1, "K"), &Facts::default()), Verdict::Depends(_)));
    }

    #[test]
    fn bounds_follow_from_sizes_of_at_least_one() {
        let (n, m) = (v(0, "N"), v(1, "M"));
        assert!(n.sub(&1.into()).is_at_least(0));
        assert!(!n.sub(&2.into()).is_at_least(0));
        assert!(n.mul(&m).add(&n).is_at_least(2));
        assert!(!n.sub(&m).is_at_least(0));
        assert!(n.floor_div(&2.into()).is_some_and(|q| q.is_at_least(0)));
    }

    #[test]
    fn a_divided_size_times_its_divisor_is_the_size() {
        let (d, h) = (v(0, "D"), v(1, "H"));
        let q = d.floor_div(&h).unwrap_or_default();
        let facts = Facts { divides: vec![(h.clone(), d.clone())], equal: vec![] };
        assert_eq!(q.mul(&h).compare(&d, &facts), Verdict::Equal);
        assert!(matches!(q.mul(&h).compare(&d, &Facts::default()), Verdict::Depends(_)));
    }
}

//! Index expressions: integer functions of loop variables, affine up to floor division and
//! remainder by constants.
//!
//! Every view of a tensor (broadcast, transpose, slice, reshape) is a rewriting of indices, so
//! one normal form serves the schedule, the tile language, the interpreter and the code
//! generator. Expressions are kept normalised: terms sorted, like terms merged, a quotient and
//! its remainder recombined where the sum allows it.

use std::fmt::Write;

/// A loop variable or axis, by its position in the table of the kernel or schedule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Var(pub u32);

/// What a coefficient multiplies.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Term {
    Var(Var),
    /// Floor division by a positive constant.
    Div(Box<Index>, i64),
    /// Remainder of that division.
    Mod(Box<Index>, i64),
}

/// `constant + Σ coefficient · term`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Index {
    pub terms: Vec<(Term, i64)>,
    pub constant: i64,
}

/// Inclusive bounds of the variables.
pub type Ranges<'a> = &'a dyn Fn(Var) -> (i64, i64);

impl Index {
    pub fn constant(value: i64) -> Index {
        Index { terms: vec![], constant: value }
    }

    pub fn var(v: Var) -> Index {
        Index { terms: vec![(Term::Var(v), 1)], constant: 0 }
    }

    fn term(t: Term) -> Index {
        Index { terms: vec![(t, 1)], constant: 0 }
    }

    /// The value, where it depends on no variable.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    pub fn plus(&self, other: &Index) -> Index {
        let mut terms = self.terms.clone();
        for (t, c) in &other.terms {
            match terms.binary_search_by(|(u, _)| u.cmp(t)) {
                Ok(i) => terms[i].1 = terms[i].1.wrapping_add(*c),
                Err(i) => terms.insert(i, (t.clone(), *c)),
            }
        }
        terms.retain(|(_, c)| *c != 0);
        Index { terms, constant: self.constant.wrapping_add(other.constant) }.recombined()
    }

    pub fn offset(&self, by: i64) -> Index {
        Index { terms: self.terms.clone(), constant: self.constant.wrapping_add(by) }
    }

    pub fn times(&self, factor: i64) -> Index {
        if factor == 0 {
            return Index::default();
        }
        Index {
            terms: self.terms.iter().map(|(t, c)| (t.clone(), c.wrapping_mul(factor))).collect(),
            constant: self.constant.wrapping_mul(factor),
        }
    }

    pub fn minus(&self, other: &Index) -> Index {
        self.plus(&other.times(-1))
    }

    /// `n·c·(e div n) + c·(e mod n)` is `c·e`.
    fn recombined(self) -> Index {
        for (i, (t, c)) in self.terms.iter().enumerate() {
            let Term::Mod(e, n) = t else { continue };
            let quotient = match &**e {
                Index { terms, constant: 0 } if terms.len() == 1 && terms[0].1 == 1 => match &terms[0].0 {
                    Term::Div(f, m) => Term::Div(f.clone(), m.wrapping_mul(*n)),
                    _ => Term::Div(e.clone(), *n),
                },
                _ => Term::Div(e.clone(), *n),
            };
            let Some(j) = self.terms.iter().position(|(u, d)| *u == quotient && *d == c.wrapping_mul(*n)) else {
                continue;
            };
            let whole = e.times(*c);
            let mut rest = self.clone();
            rest.terms.remove(i.max(j));
            rest.terms.remove(i.min(j));
            return rest.plus(&whole);
        }
        self
    }

    /// Inclusive bounds of the value.
    pub fn range(&self, ranges: Ranges) -> (i64, i64) {
        let (mut lo, mut hi) = (self.constant, self.constant);
        for (t, c) in &self.terms {
            let (a, b) = match t {
                Term::Var(v) => ranges(*v),
                Term::Div(e, n) => {
                    let (a, b) = e.range(ranges);
                    (a.div_euclid(*n), b.div_euclid(*n))
                }
                Term::Mod(e, n) => {
                    let (a, b) = e.range(ranges);
                    if a.div_euclid(*n) == b.div_euclid(*n) { (a.rem_euclid(*n), b.rem_euclid(*n)) } else { (0, n - 1) }
                }
            };
            let (x, y) = (a.saturating_mul(*c), b.saturating_mul(*c));
            lo = lo.saturating_add(x.min(y));
            hi = hi.saturating_add(x.max(y));
        }
        (lo, hi)
    }

    /// Splits into `n·q + r` with the terms whose coefficients `n` divides in `q`.
    fn split(&self, n: i64) -> (Index, Index) {
        let (mut q, mut r) =
            (Index::constant(self.constant.div_euclid(n)), Index::constant(self.constant.rem_euclid(n)));
        for (t, c) in &self.terms {
            if c % n == 0 { q.terms.push((t.clone(), c / n)) } else { r.terms.push((t.clone(), *c)) }
        }
        (q, r)
    }

    /// Quotient and remainder by `n > 0`, simplified with the bounds of the variables.
    pub fn div_mod(&self, n: i64, ranges: Ranges) -> (Index, Index) {
        if n == 1 {
            return (self.clone(), Index::default());
        }
        let (q, r) = self.split(n);
        let (lo, hi) = r.range(ranges);
        if lo >= 0 && hi < n {
            return (q, r);
        }
        // A common factor g of n and of all but a small rest goes out of the division.
        let g = r.terms.iter().filter(|(_, c)| gcd(*c, n) > 1).fold(n, |g, (_, c)| gcd(g, *c));
        if g > 1 && g < n {
            let (u, v) = r.split(g);
            let (lo, hi) = v.range(ranges);
            if lo >= 0 && hi < g {
                let (uq, ur) = u.div_mod(n / g, ranges);
                return (q.plus(&uq), ur.times(g).plus(&v));
            }
        }
        // The generated code divides without a sign, so a dividend that can be negative is lifted by a multiple of n.
        let below = if lo < 0 { lo.max(-(1 << 60)).div_euclid(n) } else { 0 };
        let (q, r) = (q.offset(below), r.offset(-below * n));
        let quotient = match &r.terms[..] {
            [(Term::Div(e, m), 1)] if r.constant == 0 => Term::Div(e.clone(), m.saturating_mul(n)),
            _ => Term::Div(Box::new(r.clone()), n),
        };
        (q.plus(&Index::term(quotient)), Index::term(Term::Mod(Box::new(r), n)))
    }

    pub fn div(&self, n: i64, ranges: Ranges) -> Index {
        self.div_mod(n, ranges).0
    }

    pub fn rem(&self, n: i64, ranges: Ranges) -> Index {
        self.div_mod(n, ranges).1
    }

    /// Replaces variables; `None` keeps one.
    pub fn substitute(&self, with: &dyn Fn(Var) -> Option<Index>, ranges: Ranges) -> Index {
        let mut out = Index::constant(self.constant);
        for (t, c) in &self.terms {
            let part = match t {
                Term::Var(v) => with(*v).unwrap_or_else(|| Index::var(*v)),
                Term::Div(e, n) => e.substitute(with, ranges).div(*n, ranges),
                Term::Mod(e, n) => e.substitute(with, ranges).rem(*n, ranges),
            };
            out = out.plus(&part.times(*c));
        }
        out
    }

    pub fn eval(&self, env: &dyn Fn(Var) -> i64) -> i64 {
        self.terms.iter().fold(self.constant, |sum, (t, c)| {
            let x = match t {
                Term::Var(v) => env(*v),
                Term::Div(e, n) => e.eval(env).div_euclid(*n),
                Term::Mod(e, n) => e.eval(env).rem_euclid(*n),
            };
            sum.wrapping_add(x.wrapping_mul(*c))
        })
    }

    /// Whether the value may depend on `v`.
    pub fn uses(&self, v: Var) -> bool {
        self.terms.iter().any(|(t, _)| match t {
            Term::Var(u) => *u == v,
            Term::Div(e, _) | Term::Mod(e, _) => e.uses(v),
        })
    }

    /// Calls `f` for every variable, possibly more than once.
    pub fn each_var(&self, f: &mut dyn FnMut(Var)) {
        for (t, _) in &self.terms {
            match t {
                Term::Var(v) => f(*v),
                Term::Div(e, _) | Term::Mod(e, _) => e.each_var(f),
            }
        }
    }

    /// The constant step of the value per step of `v`; `None` where division makes it uneven.
    pub fn stride(&self, v: Var) -> Option<i64> {
        let mut stride = 0;
        for (t, c) in &self.terms {
            match t {
                Term::Var(u) if *u == v => stride = *c,
                Term::Var(_) => {}
                Term::Div(e, _) | Term::Mod(e, _) => {
                    if e.uses(v) {
                        return None;
                    }
                }
            }
        }
        Some(stride)
    }

    /// The numbers by which what mentions `v` is divided, nested divisions too.
    pub fn divisors(&self, v: Var) -> Vec<i64> {
        let mut out = vec![];
        for (t, _) in &self.terms {
            let (Term::Div(e, n) | Term::Mod(e, n)) = t else { continue };
            if e.uses(v) {
                out.push(*n);
                out.extend(e.divisors(v));
            }
        }
        out
    }

    /// The part that does not mention `v`, given that [`Index::stride`] is known.
    pub fn without(&self, v: Var) -> Index {
        Index {
            terms: self.terms.iter().filter(|(t, _)| *t != Term::Var(v)).cloned().collect(),
            constant: self.constant,
        }
    }

    /// `i*16 + (r div 3) + 5`; names come from `name`.
    pub fn print(&self, name: &dyn Fn(Var) -> String) -> String {
        let mut out = String::new();
        for (t, c) in &self.terms {
            let text = match t {
                Term::Var(v) => name(*v),
                Term::Div(e, n) => format!("({} div {n})", e.print(name)),
                Term::Mod(e, n) => format!("({} mod {n})", e.print(name)),
            };
            let sign = match (out.is_empty(), *c < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            let _ = write!(out, "{sign}{text}");
            if c.unsigned_abs() != 1 {
                let _ = write!(out, "*{}", c.unsigned_abs());
            }
        }
        if out.is_empty() {
            let _ = write!(out, "{}", self.constant);
        } else if self.constant != 0 {
            let _ = write!(out, " {} {}", if self.constant < 0 { '-' } else { '+' }, self.constant.unsigned_abs());
        }
        out
    }

    /// Reads what [`Index::print`] writes; `var` resolves names.
    pub fn parse(text: &str, var: &dyn Fn(&str) -> Option<Var>) -> Result<Index, String> {
        let mut p = IndexParser { text, pos: 0, var };
        let e = p.sum()?;
        p.space();
        if p.pos < text.len() { Err(format!("unexpected `{}` in index `{text}`", &text[p.pos..])) } else { Ok(e) }
    }
}

/// Row-major strides of a shape.
pub fn row_major(shape: &[u64]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for i in (0..shape.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1].saturating_mul(shape[i + 1] as i64);
    }
    strides
}

/// `Σ index·stride`.
pub fn linear(index: &[Index], strides: &[i64]) -> Index {
    index.iter().zip(strides).fold(Index::default(), |sum, (e, s)| sum.plus(&e.times(*s)))
}

/// The row-major position `at` as one index per dim of `shape`.
pub fn delinear(at: &Index, shape: &[u64], ranges: Ranges) -> Vec<Index> {
    let strides = row_major(shape);
    let mut rest = at.clone();
    let mut out = Vec::with_capacity(shape.len());
    for (d, s) in shape.iter().zip(&strides) {
        if *d <= 1 {
            out.push(Index::default());
            continue;
        }
        let (q, r) = rest.div_mod((*s).max(1), ranges);
        out.push(q);
        rest = r;
    }
    out
}

/// The index into `to` that stands for `at`, an index into `from`, of as many elements in row-major order. Dims that become
/// others by themselves are divided by themselves: an index that leaves its dim, as padding has it, moves no other dim.
pub fn regrouped(at: &[Index], from: &[u64], to: &[u64], ranges: Ranges) -> Vec<Index> {
    if from.contains(&0) {
        return delinear(&linear(at, &row_major(from)), to, ranges);
    }
    let (mut out, mut i, mut j) = (vec![], 0, 0);
    while j < to.len() {
        if to[j] == 1 {
            out.push(Index::default());
            j += 1;
            continue;
        }
        let (first, mut last) = (i, j + 1);
        let (mut here, mut there) = (1, to[j]);
        while here != there {
            if here < there {
                assert!(i < from.len(), "a reshape keeps the number of elements: {from:?} to {to:?}");
                here *= from[i];
                i += 1;
            } else {
                assert!(last < to.len(), "a reshape keeps the number of elements: {from:?} to {to:?}");
                there *= to[last];
                last += 1;
            }
        }
        let flat = linear(&at[first..i], &row_major(&from[first..i]));
        out.extend(delinear(&flat, &to[j..last], ranges));
        j = last;
    }
    out
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.min(i64::MAX as u64) as i64
}

struct IndexParser<'a> {
    text: &'a str,
    pos: usize,
    var: &'a dyn Fn(&str) -> Option<Var>,
}

impl IndexParser<'_> {
    fn space(&mut self) {
        while self.text[self.pos..].starts_with(' ') {
            self.pos += 1;
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.text[self.pos..].starts_with(token);
        self.pos += if found { token.len() } else { 0 };
        found
    }

    fn word(&mut self) -> &str {
        self.space();
        let rest = &self.text[self.pos..];
        let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.pos += len;
        &rest[..len]
    }

    fn number(&mut self) -> Result<i64, String> {
        let word = self.word().to_string();
        word.parse().map_err(|_| format!("`{word}` is not a number"))
    }

    fn sum(&mut self) -> Result<Index, String> {
        let mut out = Index::default();
        let mut sign = if self.eat("-") { -1 } else { 1 };
        loop {
            let part = self.product()?;
            // Terms are taken as they are, so that what was printed reads back the same.
            for (t, c) in part.terms {
                out.terms.push((t, c.wrapping_mul(sign)));
            }
            out.constant = out.constant.wrapping_add(part.constant.wrapping_mul(sign));
            if self.eat("+") {
                sign = 1;
            } else if self.eat("-") {
                sign = -1;
            } else {
                out.terms.sort();
                return Ok(out);
            }
        }
    }

    fn product(&mut self) -> Result<Index, String> {
        let base = if self.eat("(") {
            let inner = self.sum()?;
            let (div, n) = match self.word() {
                "div" => (true, self.number()?),
                "mod" => (false, self.number()?),
                other => return Err(format!("`div` or `mod` expected, found `{other}`")),
            };
            if n <= 0 {
                return Err(format!("division by {n}"));
            }
            if !self.eat(")") {
                return Err("`)` expected".into());
            }
            Index::term(if div { Term::Div(Box::new(inner), n) } else { Term::Mod(Box::new(inner), n) })
        } else {
            let word = self.word().to_string();
            match word.parse::<i64>() {
                Ok(n) => Index::constant(n),
                Err(_) => Index::var((self.var)(&word).ok_or(format!("`{word}` is not a loop variable"))?),
            }
        };
        if self.eat("*") { Ok(base.times(self.number()?)) } else { Ok(base) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [i64; 4] = [6, 8, 16, 100];

    fn ranges(v: Var) -> (i64, i64) {
        (0, SIZES[v.0 as usize] - 1)
    }

    fn v(n: u32) -> Index {
        Index::var(Var(n))
    }

    #[test]
    fn a_merged_axis_splits_back() {
        // x = i*8 + j over [6, 8]
        let x = v(0).times(8).plus(&v(1));
        assert_eq!(x.div_mod(8, &ranges), (v(0), v(1)));
        assert_eq!(x.div(4, &ranges).plus(&Index::default()), x.div(4, &ranges));
    }

    #[test]
    fn quotient_and_remainder_recombine() {
        let x = v(3);
        let parts = delinear(&x, &[5, 4, 5], &ranges);
        assert_eq!(linear(&parts, &row_major(&[5, 4, 5])), x);
    }

    #[test]
    fn dims_that_become_others_are_divided_by_themselves() {
        // Padding leaves its dim by two on both sides.
        let at = [v(0), v(1).offset(-2), v(2), v(3)];
        assert_eq!(regrouped(&at, &[6, 4, 16, 100], &[1, 6, 1, 4, 1600], &ranges), {
            let joined = v(2).times(100).plus(&v(3));
            vec![Index::default(), v(0), Index::default(), v(1).offset(-2), joined]
        });
        let at = [v(0), v(3)];
        assert_eq!(regrouped(&at, &[6, 100], &[2, 3, 5, 20], &ranges), {
            let (a, b) = (v(0).div_mod(3, &ranges), v(3).div_mod(20, &ranges));
            vec![a.0, a.1, b.0, b.1]
        });
        assert_eq!(regrouped(&[], &[], &[1, 1], &ranges), vec![Index::default(); 2]);
        assert_eq!(regrouped(&[v(0)], &[1], &[], &ranges), vec![]);
    }

    #[test]
    fn lanes_stay_contiguous_in_a_divided_index() {
        // (16*q + lane) mod 32 with lane below 16 is 16*(q mod 2) + lane.
        let x = v(3).times(16).plus(&v(2));
        let (q, r) = x.div_mod(32, &ranges);
        assert_eq!(r.stride(Var(2)), Some(1));
        assert_eq!(q.stride(Var(2)), Some(0));
    }

    #[test]
    fn div_mod_agrees_with_evaluation() {
        let cases = [
            v(0).times(3).plus(&v(1)).offset(-2),
            v(2).times(12).plus(&v(1).times(2)),
            v(3).times(7).plus(&v(0).times(4)).offset(5),
            v(1).times(-1).plus(&v(2).times(-5)).offset(3),
            v(3).times(-7).plus(&v(0).times(4)),
        ];
        for e in cases {
            for n in [1, 2, 3, 4, 6, 12, 24, 35] {
                let (q, r) = e.div_mod(n, &ranges);
                for seed in 0..200i64 {
                    let env = |v: Var| (seed * 31 + v.0 as i64 * 17) % SIZES[v.0 as usize];
                    let x = e.eval(&env);
                    assert_eq!((q.eval(&env), r.eval(&env)), (x.div_euclid(n), x.rem_euclid(n)), "{e:?} by {n}");
                }
            }
        }
    }

    #[test]
    fn text_round_trips() {
        let name = |v: Var| format!("i{}", v.0);
        let var = |s: &str| s.strip_prefix('i')?.parse().ok().map(Var);
        let e = v(3).div(7, &ranges).times(-3).plus(&v(3).rem(7, &ranges)).plus(&v(0).times(5)).offset(-4);
        assert_eq!(Index::parse(&e.print(&name), &var), Ok(e));
        assert_eq!(Index::parse("0", &var), Ok(Index::default()));
        assert!(Index::parse("(i0 div 0)", &var).is_err());
    }
}

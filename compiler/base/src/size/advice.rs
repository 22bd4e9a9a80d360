//! Assertions that would prove what is not proved. Each is tried before it is offered.

use super::{Atom, Facts, Size, SizeVar, Verdict};
use std::collections::BTreeSet;

/// More candidates than this are not tried.
const TRIES: usize = 16;

impl Facts {
    /// A help with the `assert` under which the two sizes are equal, if one is found. It names variables of signatures only.
    pub fn advice_equal(&self, a: &Size, b: &Size) -> Option<String> {
        self.tried(&[a, b], |facts| a.compare(b, facts) == Verdict::Equal).or_else(|| self.in_words(a, b))
    }

    /// A help that states what is needed, where that is what one size is: `assert K == 3`.
    fn in_words(&self, a: &Size, b: &Size) -> Option<String> {
        let (a, b) = if a.as_var().is_some() { (a, b) } else { (b, a) };
        let var = a.as_var()?;
        if b.vars().contains(var) || a.vars().iter().chain(&b.vars()).any(|v| !v.rigid) {
            return None;
        }
        let mut facts = self.clone();
        facts.assume_equal(a, b);
        let proves = a.compare(b, &facts) == Verdict::Equal && !facts.contradictory();
        proves.then(|| format!("if {a} and {b} are equal, say so before: `assert {a} == {b}`"))
    }

    /// A help with the `assert` under which `whole` is at least `part`.
    pub fn advice_reach(&self, whole: &Size, part: &Size) -> Option<String> {
        let rest = whole.sub(part);
        if rest.vars().iter().any(|v| !v.rigid) {
            return None;
        }
        let mut facts = self.clone();
        facts.assume_at_least(&rest, &Size::constant(0));
        let simple = rest.monomials().flatten().all(|(a, _)| matches!(a, Atom::Var(_)));
        if simple && !facts.contradictory() {
            return Some(order_help(&rest));
        }
        self.tried(&[whole, part], |facts| facts.at_least(&rest, 0))
            .or_else(|| (!facts.contradictory()).then(|| order_help(&rest)))
    }

    /// The first candidate under which `proves` holds.
    fn tried(&self, sizes: &[&Size], proves: impl Fn(&Facts) -> bool) -> Option<String> {
        let vars: BTreeSet<SizeVar> = sizes.iter().flat_map(|s| s.vars()).collect();
        if vars.iter().any(|v| !v.rigid) {
            return None;
        }
        let mut candidates = vec![];
        sizes.iter().for_each(|s| of_atoms(s, &mut candidates));
        for v in &vars {
            candidates.push(Candidate::Order(Size::var(v.clone()).sub(&Size::constant(1))));
        }
        let list: Vec<&SizeVar> = vars.iter().collect();
        for (i, a) in list.iter().enumerate() {
            for b in &list[i + 1..] {
                candidates.push(Candidate::Same(Size::var((*a).clone()), Size::var((*b).clone())));
            }
        }
        candidates.into_iter().take(TRIES).find_map(|c| {
            let mut facts = self.clone();
            let text = match &c {
                Candidate::Divides(divisor, dividend) => {
                    facts.assume_divides(divisor, dividend);
                    let (x, y) = (Factor(dividend), Factor(divisor));
                    format!("if {divisor} divides {dividend}, say so before: `assert {x} % {y} == 0`")
                }
                Candidate::Order(rest) => {
                    facts.assume_at_least(rest, &Size::constant(0));
                    order_help(rest)
                }
                Candidate::Same(a, b) => {
                    facts.assume_equal(a, b);
                    format!("if {a} and {b} are equal, say so before: `assert {a} == {b}`")
                }
            };
            (proves(&facts) && !facts.contradictory()).then_some(text)
        })
    }
}

enum Candidate {
    Divides(Size, Size),
    /// At least 0.
    Order(Size),
    Same(Size, Size),
}

fn of_atoms(size: &Size, out: &mut Vec<Candidate>) {
    for (atom, _) in size.monomials().flatten() {
        let (Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b)) = atom else { continue };
        match atom {
            Atom::Div(..) | Atom::Mod(..) => {
                // `D % H == 0` says more to people than `(B*D) % (B*H) == 0`.
                for (x, y) in a.vars().iter().flat_map(|x| b.vars().into_iter().map(move |y| (x.clone(), y))) {
                    if x != y {
                        out.push(Candidate::Divides(Size::var(y), Size::var(x)));
                    }
                }
                out.push(Candidate::Divides((**b).clone(), (**a).clone()));
            }
            _ => out.extend([Candidate::Order(a.sub(b)), Candidate::Order(b.sub(a))]),
        }
        of_atoms(a, out);
        of_atoms(b, out);
    }
}

fn order_help(rest: &Size) -> String {
    let (left, op, right) = order(rest);
    format!(
        "if {left} is at {} {right}, say so before: `assert {left} {op} {right}`",
        if op == ">=" { "least" } else { "most" }
    )
}

/// `rest >= 0` as people write it, without negative terms: `N >= 2`, `k <= 5`.
fn order(rest: &Size) -> (Size, &'static str, Size) {
    let (mut left, mut right) = (Size::constant(0), Size::constant(0));
    for &(ref m, c) in rest.polynomial() {
        let term = |c: i64| Size::of_monomial(m.clone()).scale(c);
        if c > 0 { left = left.add(&term(c)) } else { right = right.sub(&term(c)) }
    }
    if left.as_const().is_some() { (right, "<=", left) } else { (left, ">=", right) }
}

/// A size as an operand of `%`.
struct Factor<'a>(&'a Size);

impl std::fmt::Display for Factor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.0.as_const().is_some() || self.0.as_var().is_some() {
            true => write!(f, "{}", self.0),
            false => write!(f, "({})", self.0),
        }
    }
}

//! Sizes: integer polynomials over size variables, in normal form, and what can be proved of them.
//!
//! `4*D`, `H*W//2` and `N+1` are sizes. A dim is at least 0; differences (`hi - lo`) may be negative on the way, so
//! coefficients are `i64`.
//!
//! Questions about sizes are answered in two steps. Most end with the normal form: equal polynomials are equal sizes. The
//! others go to a decision procedure under the facts of the place ([`Facts`]: equations, divisibility, inequalities):
//! what is not linear becomes an unknown with the inequalities that define it (`purify`), and the Omega test decides the
//! linear rest (`linear`). It is complete for linear sizes, and says "not proved" where its budget ends.

mod polynomial;
mod omega_test;
mod facts;
mod decide;
mod display;
mod known;
mod purify;
mod advice;
#[cfg(test)]
mod tests;
mod witness;

use std::fmt;
use std::sync::Arc;

pub use facts::Facts;

/// A size variable. Identity is the number; the name is for people.
#[derive(Clone, Debug)]
pub struct SizeVar {
    pub id: u32,
    pub name: Arc<str>,
    /// Rigid variables belong to a signature and stand for *all* sizes; the others are sizes
    /// that only data knows.
    pub rigid: bool,
    /// A dim is at least 0; an `int` of which nothing is known may be negative.
    pub natural: bool,
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

/// A polynomial: monomials with coefficients that are not zero. Copies share their terms.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Size {
    /// Sorted, each monomial once.
    terms: Arc<[(Monomial, i64)]>,
    /// Arithmetic on the coefficients overflowed: the value is not known.
    overflow: bool,
}

/// The answer to "are these two sizes equal?".
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// For all values that the facts admit.
    Equal,
    /// For none of them. The witness names one assignment.
    Differ(Witness),
    /// Not for all of them, as far as can be proved; the witness is one where they differ.
    Depends(Witness),
}

/// The answer to "does this size reach that one?" (`whole >= part`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reach {
    /// For all values that the facts admit.
    Always,
    /// For none of them.
    Never(Witness),
    /// Not for all of them, as far as can be proved.
    Depends(Witness),
}

/// Values of the variables, and what the two sizes are there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    pub values: Vec<(Arc<str>, i64)>,
    pub left: i64,
    pub right: i64,
}

impl Witness {
    /// No values were found: there may be none.
    pub const NONE: Witness = Witness { values: vec![], left: 0, right: 0 };

    /// Whether it shows anything.
    pub fn is_known(&self) -> bool {
        self.left != self.right
    }
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

fn floor_div(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { q - 1 } else { q }
}

fn floor_mod(a: i64, b: i64) -> i64 {
    let r = a.wrapping_rem(b);
    if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
}

//! Sizes as people write them.

use super::{Atom, Monomial, Size};
use std::fmt;

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let inner = |s: &Size| if s.is_simple() { s.to_string() } else { format!("({s})") };
        match self {
            Atom::Var(v) => f.write_str(&v.name),
            Atom::Div(a, b) => write!(f, "{}//{}", inner(a), inner(b)),
            Atom::Mod(a, b) => write!(f, "{}%{}", inner(a), inner(b)),
            Atom::Min(a, b) => write!(f, "min({a}, {b})"),
            // As people write it: `max(N - 1, 0)`.
            Atom::Max(a, b) if a.as_const().is_some() => write!(f, "max({b}, {a})"),
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
            return f.write_str("more than 64 bits hold");
        }
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        // Highest degree first, the constant last, as people write it.
        let mut terms: Vec<(&Monomial, i64)> = self.terms.iter().map(|(m, c)| (m, *c)).collect();
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
                    // `(a//b)*c` needs its parentheses beside other factors, and `-(a//b)` behind its sign.
                    let text = a.to_string();
                    let bare = matches!(a, Atom::Var(_) | Atom::Min(..) | Atom::Max(..));
                    factors.push(if bare || (m.len() == 1 && *p == 1 && magnitude == 1 && sign != "-") {
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

//! How a tensor lies over the axes of a mesh.

use std::fmt;

/// How the summands of a partial value combine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Monoid {
    Sum,
    Max,
    Min,
    /// Log-sum-exp.
    Lse,
}

impl Monoid {
    pub fn name(self) -> &'static str {
        match self {
            Monoid::Sum => "sum",
            Monoid::Max => "max",
            Monoid::Min => "min",
            Monoid::Lse => "lse",
        }
    }

    pub fn parse(text: &str) -> Option<Monoid> {
        [Monoid::Sum, Monoid::Max, Monoid::Min, Monoid::Lse].into_iter().find(|m| m.name() == text)
    }
}

/// The sharding of one tensor type: for each dim the mesh axes it is split over (major
/// first), and the axes over which the value is still partial.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Sharding {
    /// One entry per dim, or empty when no dim is split.
    pub dims: Vec<Vec<String>>,
    pub partial: Vec<(Monoid, String)>,
}

impl Sharding {
    pub fn is_replicated(&self) -> bool {
        self.partial.is_empty() && self.dims.iter().all(Vec::is_empty)
    }

    /// The `@dp` or `@(tp,pp)` after dim `i`, or nothing.
    pub fn dim_suffix(&self, i: usize) -> String {
        match self.dims.get(i).map(Vec::as_slice) {
            None | Some([]) => String::new(),
            Some([axis]) => format!("@{axis}"),
            Some(axes) => format!("@({})", axes.join(",")),
        }
    }

    /// The first mesh axis that is used more than once, if any.
    pub fn axis_used_twice(&self) -> Option<&str> {
        let mut seen: Vec<&str> = vec![];
        let dims = self.dims.iter().flatten().map(String::as_str);
        for axis in dims.chain(self.partial.iter().map(|(_, a)| a.as_str())) {
            if seen.contains(&axis) {
                return Some(axis);
            }
            seen.push(axis);
        }
        None
    }
}

impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.is_replicated() {
            return f.write_str("replicated");
        }
        let mut parts: Vec<String> =
            (0..self.dims.len()).map(|i| format!("dim{i}{}", self.dim_suffix(i))).filter(|s| s.contains('@')).collect();
        parts.extend(self.partial.iter().map(|(m, a)| format!("{}@{a}", m.name())));
        f.write_str(&parts.join(", "))
    }
}

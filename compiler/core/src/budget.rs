//! What a call of a function may need at most (`@dist.budget`).

use std::fmt;
use std::sync::Arc;
use tessera_base::Span;

/// What is bounded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// Bytes that a device takes: arguments, results and everything in between.
    Memory,
    /// Nanoseconds of a call, as they are predicted.
    Step,
    /// Bytes that a device exchanges over an axis of the mesh.
    Axis(Arc<str>),
}

impl What {
    /// As a program names it.
    pub fn name(&self) -> &str {
        match self {
            What::Memory => "memory",
            What::Step => "step",
            What::Axis(axis) => axis,
        }
    }

    /// By a keyword of the decorator.
    pub fn of(name: &str) -> What {
        match name {
            "memory" => What::Memory,
            "step" => What::Step,
            axis => What::Axis(axis.into()),
        }
    }

    /// A bound of so much as the decorator takes it: `memory="2GiB"`.
    pub fn written(&self, most: &str) -> String {
        match self.hidden_axis() {
            Some(axis) => format!("over={{\"{axis}\": \"{most}\"}}"),
            None => format!("{}=\"{most}\"", self.name()),
        }
    }

    /// The name of an axis that as a keyword would be something else.
    pub fn hidden_axis(&self) -> Option<&str> {
        match self {
            What::Axis(axis) if What::of(axis) != *self => Some(axis),
            _ => None,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.hidden_axis() {
            Some(axis) => write!(f, "{OVER}{axis}"),
            None => f.write_str(self.name()),
        }
    }
}

/// What stands before the name of an axis that as a keyword would be something else.
const OVER: &str = "over:";

/// One bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    pub what: What,
    /// Bytes, or nanoseconds.
    pub most: u64,
    pub span: Span,
}

/// All bounds of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Budget {
    pub bounds: Vec<Bound>,
    /// The decorator.
    pub span: Span,
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (i, bound) in self.bounds.iter().enumerate() {
            let space = if i > 0 { " " } else { "" };
            write!(f, "{space}{}={}", bound.what, bound.most)?;
        }
        Ok(())
    }
}

impl Budget {
    /// What [`fmt::Display`] writes; nothing of it stands in a text.
    pub fn parse(text: &str) -> Option<Budget> {
        let bound = |part: &str| {
            let (name, most) = part.split_once('=')?;
            let what = name.strip_prefix(OVER).map_or_else(|| What::of(name), |axis| What::Axis(axis.into()));
            Some(Bound { what, most: most.parse().ok()?, span: Span::NONE })
        };
        Some(Budget { bounds: text.split_whitespace().map(bound).collect::<Option<_>>()?, span: Span::NONE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let text = "memory=1024 tp=64 step=1200000000 over:memory=8 over:step=0";
        assert_eq!(Budget::parse(text).map(|b| b.to_string()).as_deref(), Some(text));
        assert_eq!(Budget::parse("memory"), None);
    }
}

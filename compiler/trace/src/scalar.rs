//! Host scalars during tracing: known, known when the region is called, or computed by the graph.
//!
//! A scalar argument stays symbolic as long as only arithmetic happens to it. Its expression
//! is evaluated by the caller with the semantics of host code (checked ints, IEEE floats) and
//! passed to the graph, so `lr * 0.99 ** step` needs no new graph for every `step`.

use std::fmt;
use std::sync::Arc;
use tessera_abi::check::Check;
use tessera_base::{Code, DType, Diagnostic, Span, bug};
use tessera_ops::numbers::NumberOp;
use tessera_ops::scalar::Kind as ProgramKind;
use tessera_runtime::fault::Fault;
use tessera_runtime::math;

/// A scalar value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Known {
    Int(i64),
    Float(f64),
    Bool(bool),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Int,
    Float,
    Bool,
}

impl Known {
    pub fn kind(self) -> Kind {
        match self {
            Known::Int(_) => Kind::Int,
            Known::Float(_) => Kind::Float,
            Known::Bool(_) => Kind::Bool,
        }
    }

    /// The word that host code passes.
    pub fn bits(self) -> u64 {
        match self {
            Known::Int(n) => n as u64,
            Known::Float(x) => x.to_bits(),
            Known::Bool(b) => b as u64,
        }
    }

    /// As a condition.
    pub fn truth(self) -> bool {
        match self {
            Known::Int(n) => n != 0,
            Known::Float(x) => x != 0.0,
            Known::Bool(b) => b,
        }
    }

    /// Equal with every bit: a guard on NaN or -0.0 holds for the same NaN or -0.0.
    pub fn same(self, other: Known) -> bool {
        self.kind() == other.kind() && self.bits() == other.bits()
    }
}

impl Kind {
    /// By what scalar programs call it.
    pub fn of(kind: ProgramKind) -> Kind {
        match kind {
            ProgramKind::F64 => Kind::Float,
            ProgramKind::Bool => Kind::Bool,
            _ => Kind::Int,
        }
    }

    /// What scalar programs call it.
    pub fn in_programs(self) -> ProgramKind {
        match self {
            Kind::Int => ProgramKind::I64,
            Kind::Float => ProgramKind::F64,
            Kind::Bool => ProgramKind::Bool,
        }
    }

    /// The element type of a rank-0 tensor that holds such a scalar.
    pub fn dtype(self) -> DType {
        match self {
            Kind::Int => DType::I64,
            Kind::Float => DType::F64,
            Kind::Bool => DType::Bool,
        }
    }

    pub fn read(self, bits: u64) -> Known {
        match self {
            Kind::Int => Known::Int(bits as i64),
            Kind::Float => Known::Float(f64::from_bits(bits)),
            Kind::Bool => Known::Bool(bits != 0),
        }
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Known::Int(n) => write!(f, "{n}"),
            Known::Float(x) => f.write_str(&tessera_runtime::digits::repr(*x, DType::F64)),
            Known::Bool(b) => f.write_str(if *b { "True" } else { "False" }),
        }
    }
}

/// An operation on scalars.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScalarOp {
    /// A row of the table of operations on numbers.
    Number(NumberOp),
    /// An index into the dim of this number and size: negative counts from the end, out of range fails.
    Position { dim: u32, size: u64 },
}

/// A scalar in terms of the region's scalar arguments.
#[derive(Clone, PartialEq, Debug)]
pub enum ScalarExpr {
    Const(Known),
    /// The argument leaf of this number.
    Leaf(u32, Kind),
    Apply {
        op: ScalarOp,
        operands: Vec<Arc<ScalarExpr>>,
        kind: Kind,
        span: Span,
    },
}

impl ScalarExpr {
    pub fn kind(&self) -> Kind {
        match self {
            ScalarExpr::Const(v) => v.kind(),
            ScalarExpr::Leaf(_, kind) | ScalarExpr::Apply { kind, .. } => *kind,
        }
    }

    /// The value for these argument leaves.
    ///
    /// # Errors
    /// What host code would report: overflow, division by zero, an index out of range.
    pub fn eval(&self, leaf: &dyn Fn(u32) -> Known) -> Result<Known, Box<Diagnostic>> {
        match self {
            ScalarExpr::Const(v) => Ok(*v),
            ScalarExpr::Leaf(n, _) => Ok(leaf(*n)),
            ScalarExpr::Apply { op, operands, span, .. } => {
                let mut values = Vec::with_capacity(operands.len());
                for e in operands {
                    values.push(e.eval(leaf)?);
                }
                op.apply(&values).map_err(|fault| diagnostic(fault, *span))
            }
        }
    }
}

pub fn diagnostic(fault: Fault, span: Span) -> Box<Diagnostic> {
    // The runtime speaks of codes by number.
    let code = Code::parse(&format!("E{:04}", fault.code)).unwrap_or(Code::E0999);
    let mut d = Diagnostic::new(code, span, fault.message);
    d.notes = fault.notes;
    Box::new(d)
}

impl From<NumberOp> for ScalarOp {
    fn from(op: NumberOp) -> ScalarOp {
        ScalarOp::Number(op)
    }
}

impl ScalarOp {
    /// The kind of the result.
    pub fn kind(self) -> Kind {
        match self {
            ScalarOp::Number(op) => Kind::of(op.def().gives),
            ScalarOp::Position { .. } => Kind::Int,
        }
    }

    /// What the operation asks of its operands, where it does not have a value for all.
    pub fn check(self) -> Option<Check> {
        match self {
            ScalarOp::Number(op) => op.def().check,
            ScalarOp::Position { .. } => Some(Check::Position),
        }
    }

    /// The result with the semantics of host code.
    ///
    /// # Errors
    /// Why there is none for these operands.
    pub fn apply(self, x: &[Known]) -> Result<Known, Fault> {
        match (self, x) {
            (ScalarOp::Number(op), [a, ..]) => {
                let def = op.def();
                let fits = def.takes.len() == x.len() && def.takes.iter().zip(x).all(|(k, v)| Kind::of(*k) == v.kind());
                assert!(fits, "`{}` of {x:?}", def.name);
                let words = [a.bits(), x.get(1).unwrap_or(a).bits()];
                let value = op.apply(words[0], words[1]).map_err(|check| math::refused(check, words))?;
                Ok(Kind::of(def.gives).read(value))
            }
            (ScalarOp::Position { dim, size }, [Known::Int(a)]) => {
                if !Check::Position.holds(*a as u64, size) {
                    return Err(outside_dim(*a, dim, size));
                }
                Ok(Known::Int(if *a < 0 { *a + size as i64 } else { *a }))
            }
            _ => bug!("{self:?} of {x:?}"),
        }
    }
}

/// E0703 for an index that a dim does not have.
fn outside_dim(index: i64, dim: u32, size: u64) -> Fault {
    Fault::new(703, format!("index {index} is out of range for dim {dim} of size {size}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_evaluates_on_its_leaves() {
        let leaf = Arc::new(ScalarExpr::Leaf(0, Kind::Int));
        let one = Arc::new(ScalarExpr::Const(Known::Int(1)));
        let op = NumberOp::int_add.into();
        let sum = ScalarExpr::Apply { op, operands: vec![leaf, one], kind: Kind::Int, span: Span::NONE };
        assert_eq!(sum.eval(&|_| Known::Int(41)).ok(), Some(Known::Int(42)));
        assert_eq!(sum.eval(&|_| Known::Int(i64::MAX)).map_err(|d| d.code), Err(Code::E0701));
    }
}

//! Host scalars during tracing: known, known when the region is called, or computed by the graph.
//!
//! A scalar argument stays symbolic as long as only arithmetic happens to it. Its expression
//! is evaluated by the caller with the semantics of host code (checked ints, IEEE floats) and
//! passed to the graph, so `lr * 0.99 ** step` needs no new graph for every `step`.

use std::fmt;
use std::sync::Arc;
use tessera_abi::check::{self, Check};
use tessera_base::{BinOp, CmpOp};
use tessera_base::{Code, DType, Diagnostic, Span};
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

    /// Equal with every bit: a guard on NaN or -0.0 holds for the same NaN or -0.0.
    pub fn same(self, other: Known) -> bool {
        self.kind() == other.kind() && self.bits() == other.bits()
    }
}

impl Kind {
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
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ScalarOp {
    /// Two ints or two floats. `int_operands`: `/` of ints, an error when the divisor is 0.
    Arith {
        op: BinOp,
        int_operands: bool,
    },
    Neg,
    Invert,
    Not,
    Rel(CmpOp),
    IntToFloat,
    BoolToInt,
    /// Truncates.
    FloatToInt,
    /// `round(x)`.
    Round,
    Abs,
    IsNan,
    IsInf,
    IsFinite,
    Min,
    Max,
    /// Operand 0 is the test.
    Select,
    /// An index into the dim of this number and size: negative counts from the end, out of range fails.
    Position {
        dim: u32,
        size: u64,
    },
    /// A function of `math` by its number in `abi::rt`.
    Math(i64),
    /// One of two operands by its number in the row `math2`.
    Math2(i64),
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

impl ScalarOp {
    /// The kind of the result, given that of the last operand.
    pub fn kind(self, operand: Kind) -> Kind {
        match self {
            ScalarOp::Not | ScalarOp::Rel(_) | ScalarOp::IsNan | ScalarOp::IsInf | ScalarOp::IsFinite => Kind::Bool,
            ScalarOp::IntToFloat | ScalarOp::Math(_) | ScalarOp::Math2(_) => Kind::Float,
            ScalarOp::BoolToInt | ScalarOp::FloatToInt | ScalarOp::Round | ScalarOp::Position { .. } => Kind::Int,
            _ => operand,
        }
    }

    /// What the operation asks of operands of a kind, where it does not have a value for all.
    pub fn check(self, operands: Kind) -> Option<Check> {
        Some(match (self, operands) {
            (ScalarOp::Arith { op, .. }, Kind::Int) => match op {
                BinOp::Add => Check::Add,
                BinOp::Sub => Check::Sub,
                BinOp::Mul | BinOp::MatMul => Check::Mul,
                BinOp::Div | BinOp::FloorDiv => Check::FloorDiv,
                BinOp::Mod => Check::Mod,
                BinOp::Pow => Check::Pow,
                BinOp::Shl => Check::Shl,
                BinOp::Shr => Check::Shr,
                BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => return None,
            },
            (ScalarOp::Arith { op: BinOp::Div, int_operands: true }, Kind::Float) => Check::IntTrueDiv,
            (ScalarOp::Arith { op: BinOp::FloorDiv, .. }, Kind::Float) => Check::FloatFloorDiv,
            (ScalarOp::Arith { op: BinOp::Mod, .. }, Kind::Float) => Check::FloatMod,
            (ScalarOp::Neg | ScalarOp::Abs, Kind::Int) => Check::Neg,
            (ScalarOp::FloatToInt, _) => Check::ToInt,
            (ScalarOp::Round, _) => Check::Round,
            (ScalarOp::Position { .. }, _) => Check::Position,
            (ScalarOp::Math(n), _) => return math::check_of(n),
            (ScalarOp::Math2(n), _) => return math::check_of_two(n),
            _ => return None,
        })
    }

    /// The result with the semantics of host code.
    pub fn apply(self, x: &[Known]) -> Result<Known, Fault> {
        use Known::*;
        if let Some(check) = x.first().and_then(|a| self.check(a.kind())) {
            let a = x[0].bits();
            let b = match self {
                ScalarOp::Position { size, .. } => size,
                _ => x.get(1).map_or(a, |b| b.bits()),
            };
            if !check.holds(a, b) {
                return Err(match self {
                    ScalarOp::Position { dim, size } => outside_dim(a as i64, dim, size),
                    _ => math::refused(check, [a, b]),
                });
            }
        }
        Ok(match (self, x) {
            (ScalarOp::Arith { op, .. }, [Int(a), Int(b)]) => Int(int_arith(op, *a, *b)),
            (ScalarOp::Arith { op, .. }, [Bool(a), Bool(b)]) => Bool(bool_arith(op, *a, *b)),
            (ScalarOp::Arith { op, .. }, [Float(a), Float(b)]) => Float(float_arith(op, *a, *b)?),
            (ScalarOp::Neg, [Int(a)]) => Int(a.wrapping_neg()),
            (ScalarOp::Neg, [Float(a)]) => Float(-a),
            (ScalarOp::Invert, [Int(a)]) => Int(!a),
            (ScalarOp::Not, [Bool(a)]) => Bool(!a),
            (ScalarOp::Rel(op), [Int(a), Int(b)]) => Bool(rel(op, a, b)),
            (ScalarOp::Rel(op), [Bool(a), Bool(b)]) => Bool(rel(op, a, b)),
            (ScalarOp::Rel(op), [Float(a), Float(b)]) => Bool(rel(op, a, b)),
            (ScalarOp::IntToFloat, [Int(a)]) => Float(*a as f64),
            (ScalarOp::BoolToInt, [Bool(a)]) => Int(*a as i64),
            (ScalarOp::FloatToInt, [Float(a)]) => Int(a.trunc() as i64),
            (ScalarOp::Round, [Float(a)]) => Int(a.round_ties_even() as i64),
            (ScalarOp::Abs, [Int(a)]) => Int(a.wrapping_abs()),
            (ScalarOp::Abs, [Float(a)]) => Float(a.abs()),
            (ScalarOp::IsNan, [Float(a)]) => Bool(a.is_nan()),
            (ScalarOp::IsInf, [Float(a)]) => Bool(a.is_infinite()),
            (ScalarOp::IsFinite, [Float(a)]) => Bool(a.is_finite()),
            (ScalarOp::Min, [Int(a), Int(b)]) => Int(if b < a { *b } else { *a }),
            (ScalarOp::Min, [Float(a), Float(b)]) => Float(if b < a { *b } else { *a }),
            (ScalarOp::Max, [Int(a), Int(b)]) => Int(if b > a { *b } else { *a }),
            (ScalarOp::Max, [Float(a), Float(b)]) => Float(if b > a { *b } else { *a }),
            (ScalarOp::Select, [Bool(test), a, b]) => *if *test { a } else { b },
            (ScalarOp::Position { size, .. }, [Int(a)]) => Int(if *a < 0 { *a + size as i64 } else { *a }),
            (ScalarOp::Math(n), [Float(a)]) => Float(math::function(n, *a)?),
            (ScalarOp::Math2(n), [Float(a), Float(b)]) => Float(math::function2(n, *a, *b)?),
            _ => return Err(Fault::new(999, format!("{self:?} of {x:?}"))),
        })
    }
}

/// Where [`ScalarOp::check`] holds.
fn int_arith(op: BinOp, a: i64, b: i64) -> i64 {
    match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul | BinOp::MatMul => a.wrapping_mul(b),
        BinOp::Div | BinOp::FloorDiv => {
            let quotient = a.checked_div(b).unwrap_or(0);
            if a.checked_rem(b).unwrap_or(0) != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
        }
        BinOp::Mod => {
            let rem = a.checked_rem(b).unwrap_or(0);
            if rem != 0 && (rem < 0) != (b < 0) { rem + b } else { rem }
        }
        BinOp::Pow => check::int_pow(a, b).unwrap_or(0),
        BinOp::BitAnd => a & b,
        BinOp::BitOr => a | b,
        BinOp::BitXor => a ^ b,
        BinOp::Shl => a.checked_shl(b as u32).unwrap_or(0),
        BinOp::Shr => a >> b.clamp(0, 63),
    }
}

fn bool_arith(op: BinOp, a: bool, b: bool) -> bool {
    match op {
        BinOp::BitAnd => a & b,
        BinOp::BitOr => a | b,
        _ => a ^ b,
    }
}

fn float_arith(op: BinOp, a: f64, b: f64) -> Result<f64, Fault> {
    Ok(match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::Div => a / b,
        BinOp::FloorDiv => math::float_floordiv(a, b)?,
        BinOp::Mod => math::float_mod(a, b)?,
        BinOp::Pow => math::float_pow(a, b),
        _ => return Err(Fault::new(999, format!("`{}` of floats", op.symbol()))),
    })
}

fn rel<T: PartialOrd>(op: CmpOp, a: T, b: T) -> bool {
    match op {
        CmpOp::Eq | CmpOp::Is | CmpOp::In => a == b,
        CmpOp::Ne | CmpOp::IsNot | CmpOp::NotIn => a != b,
        CmpOp::Lt => a < b,
        CmpOp::Le => a <= b,
        CmpOp::Gt => a > b,
        CmpOp::Ge => a >= b,
    }
}

/// E0703 for an index that a dim does not have.
fn outside_dim(index: i64, dim: u32, size: u64) -> Fault {
    Fault::new(703, format!("index {index} is out of range for dim {dim} of size {size}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(op: BinOp, a: i64, b: i64) -> Result<Known, u16> {
        let op = ScalarOp::Arith { op, int_operands: false };
        op.apply(&[Known::Int(a), Known::Int(b)]).map_err(|f| f.code)
    }

    #[test]
    fn ints_floor_and_are_checked() {
        assert_eq!(int(BinOp::FloorDiv, -7, 2), Ok(Known::Int(-4)));
        assert_eq!(int(BinOp::Mod, -7, 2), Ok(Known::Int(1)));
        assert_eq!(int(BinOp::Mod, 7, -2), Ok(Known::Int(-1)));
        assert_eq!(int(BinOp::Mul, i64::MAX, 2), Err(701));
        assert_eq!(int(BinOp::FloorDiv, i64::MIN, -1), Err(701));
        assert_eq!(int(BinOp::Mod, i64::MIN, -1), Ok(Known::Int(0)));
        assert_eq!(int(BinOp::FloorDiv, 1, 0), Err(702));
        assert_eq!(int(BinOp::Shl, -1, 63), Ok(Known::Int(i64::MIN)));
        assert_eq!(int(BinOp::Shl, -1, 64), Err(701));
        assert_eq!(int(BinOp::Shl, 1, 62), Ok(Known::Int(1 << 62)));
        assert_eq!(int(BinOp::Shr, -8, 100), Ok(Known::Int(-1)));
    }

    #[test]
    fn an_expression_evaluates_on_its_leaves() {
        let leaf = Arc::new(ScalarExpr::Leaf(0, Kind::Int));
        let one = Arc::new(ScalarExpr::Const(Known::Int(1)));
        let op = ScalarOp::Arith { op: BinOp::Add, int_operands: false };
        let sum = ScalarExpr::Apply { op, operands: vec![leaf, one], kind: Kind::Int, span: Span::NONE };
        assert_eq!(sum.eval(&|_| Known::Int(41)).ok(), Some(Known::Int(42)));
        assert_eq!(sum.eval(&|_| Known::Int(i64::MAX)).map_err(|d| d.code), Err(Code::E0701));
    }
}

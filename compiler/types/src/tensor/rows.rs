//! Which rows of the operator table the language's own syntax stands for.

use tessera_base::{Code, DType, Diagnostic, Span};
use tessera_grammar::ast::{BinOp, CmpOp};
use tessera_ops::surface::{self, OpDef};

/// The row of a binary operator on tensors; `bools` if both operands are bools.
pub fn binary(op: BinOp, bools: bool) -> &'static str {
    match op {
        BinOp::Add => "add",
        BinOp::Sub => "sub",
        BinOp::Mul => "mul",
        BinOp::Div => "div",
        BinOp::FloorDiv => "floor_div",
        BinOp::Mod => "mod",
        BinOp::Pow => "pow",
        BinOp::MatMul => "matmul",
        BinOp::BitAnd if bools => "logical_and",
        BinOp::BitOr if bools => "logical_or",
        BinOp::BitXor if bools => "logical_xor",
        BinOp::BitAnd => "bit_and",
        BinOp::BitOr => "bit_or",
        BinOp::BitXor => "bit_xor",
        BinOp::Shl => "shl",
        BinOp::Shr => "shr",
    }
}

/// The row of a comparison; membership and identity have none.
pub fn comparison(op: CmpOp) -> Option<&'static str> {
    Some(match op {
        CmpOp::Eq => "eq",
        CmpOp::Ne => "ne",
        CmpOp::Lt => "lt",
        CmpOp::Le => "le",
        CmpOp::Gt => "gt",
        CmpOp::Ge => "ge",
        CmpOp::In | CmpOp::NotIn | CmpOp::Is | CmpOp::IsNot => return None,
    })
}

/// The row of `-x`.
pub const NEGATIVE: &str = "neg";

/// The row of `~x`.
pub fn invert(dtype: Option<DType>) -> &'static str {
    if dtype == Some(DType::Bool) { "logical_not" } else { "bit_not" }
}

/// The row of this name.
///
/// # Errors
/// E0690 where the table has none.
pub fn row(name: &str, span: Span) -> Result<&'static OpDef, Diagnostic> {
    surface::find(name).ok_or_else(|| Diagnostic::new(Code::E0690, span, format!("`op.{name}` is not supported yet")))
}

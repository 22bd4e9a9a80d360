//! Tensors in expressions: operator calls, arithmetic, indexing, attributes.
//!
//! Everything here takes checked sub-expressions and gives a typed expression or one
//! diagnostic. An operand whose error is reported already ([`tessera_core::ty::Ty::Error`]) gives
//! an erroneous result without another report.

mod rows;
mod args;
pub mod tile;
mod matching;
mod ways;
mod own_parts;
mod result_sharding;
mod call;
mod operators;
mod slice;
mod index;
mod assign;
mod attr;

pub use assign::assign_index;
pub use attr::{attr, length, method, to_float, to_int, truth};
pub use call::op_call;
pub use index::{GivenIndex, index};
pub use matching::Given;
pub use operators::{binary, compare, unary};
pub use own_parts::{reduces, whole};
pub use ways::with_ways;

use tessera_base::Span;
use tessera_core::ir::{TExpr, TKind};
use tessera_core::ty::Ty;

/// The result of an expression whose error is reported already.
pub fn error_expr(span: Span) -> TExpr {
    TExpr { kind: TKind::None, ty: Ty::Error, span }
}

/// Whether a value's error is reported already.
fn broken(e: &TExpr) -> bool {
    fn within(ty: &Ty) -> bool {
        match ty {
            Ty::Error | Ty::Never => true,
            Ty::Tuple(ts) => ts.iter().any(within),
            _ => false,
        }
    }
    within(&e.ty)
}

#[cfg(test)]
mod tests;

//! Runs primitives one by one, by the meaning that their rows state.

use crate::prim::row;
use tessera_base::DType;
use tessera_ops::prim::Prim;
use tessera_ops::reference::elems;
pub use tessera_ops::reference::{ArrayRef, EvalError, Summation, TypeRef};

/// Whether the operands fit the primitive and its result has the type they give, by its row.
///
/// # Errors
/// What does not fit, lower case, without a full stop.
pub fn shape_check(prim: &Prim, operands: &[TypeRef], result: TypeRef) -> Result<(), String> {
    row(prim).shape(operands, result)
}

/// Runs one primitive; sums are canonical. See [`eval_summing`].
pub fn eval(prim: &Prim, operands: &[ArrayRef], dtype: DType, shape: &[u64]) -> Result<Vec<u8>, EvalError> {
    eval_summing(prim, operands, dtype, shape, Summation::Canonical)
}

/// Runs one primitive and returns the bytes of its result.
///
/// `Input`, `Scan` and `Get` belong to the graph around them, `Exchange` and `Collective` to the devices of a mesh, and are refused.
///
/// # Errors
/// A position out of range, operands that [`shape_check`] refuses, or bytes that are not as
/// many as their shape says.
pub fn eval_summing(
    prim: &Prim,
    operands: &[ArrayRef],
    dtype: DType,
    shape: &[u64],
    summation: Summation,
) -> Result<Vec<u8>, EvalError> {
    let types: Vec<TypeRef> = operands.iter().map(|a| TypeRef { dtype: a.dtype, shape: a.shape }).collect();
    let result = TypeRef { dtype, shape };
    shape_check(prim, &types, result)?;
    for (i, a) in operands.iter().enumerate() {
        let want = elems(a.shape).and_then(|n| n.checked_mul(a.dtype.bytes()));
        if want != Some(a.bytes.len()) {
            return Err(format!("operand {i} has {} bytes, which its type does not fit", a.bytes.len()).into());
        }
    }
    elems(shape).and_then(|n| n.checked_mul(dtype.bytes())).ok_or_else(|| "the result is too large".to_string())?;
    row(prim).meaning(operands, result, summation)
}

#[cfg(test)]
mod tests;

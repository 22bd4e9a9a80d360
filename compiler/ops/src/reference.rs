//! Reference kernels: the meaning of every primitive, and the interpreter of small graphs.
//!
//! Arrays are row-major little-endian bytes. Compiled code gives the same bits (NaN payloads
//! in f32 and f64 apart), because both follow the orders written down in [`crate::prim`] and
//! the programs of [`crate::map`] and [`crate::convert`].

mod blocks;
mod check;
mod complex;
mod dot;
mod elementwise;
mod fft;
mod index;
mod layout;
mod movement;
mod random;
mod reduce;
mod sort;

pub use check::shape_check;
pub use dot::pair_step;
pub use random::{philox, random_bits_program};
pub use reduce::{Summation, combine, identity};

use crate::prim::Prim;
use std::fmt;
use tessera_abi::check::Check;
use tessera_base::DType;

/// An operand.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRef<'a> {
    pub dtype: DType,
    pub shape: &'a [u64],
    /// Row-major elements, as many as the shape says.
    pub bytes: &'a [u8],
}

/// Element type and shape of an operand or a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeRef<'a> {
    pub dtype: DType,
    pub shape: &'a [u64],
}

/// Why a kernel stopped: a position out of range, or operands that do not fit the primitive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EvalError {
    /// Lower case, without a full stop.
    pub message: String,
    /// What [`Prim::Check`] refused.
    pub refused: Option<Refused>,
}

/// The first operands for which an operation of host code has no value: i64 or the bits of an f64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    pub check: Check,
    pub operands: [u64; 2],
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EvalError {}

impl From<String> for EvalError {
    fn from(message: String) -> EvalError {
        EvalError { message, refused: None }
    }
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
    Ok(match prim {
        Prim::Input(_) | Prim::Scan { .. } | Prim::Get { .. } | Prim::Exchange(_) | Prim::Collective(_) => {
            return Err("this node has no kernel of its own".to_string().into());
        }
        Prim::Full { value } => elementwise::full(*value, result),
        Prim::Iota { axis } => elementwise::iota(*axis, result),
        Prim::Literal(bytes) => bytes.to_vec(),
        Prim::Map(op) => elementwise::map(*op, operands, dtype),
        Prim::Check(check) => checked(*check, operands[0], operands[1])?,
        Prim::Cast => elementwise::cast(operands[0], dtype),
        Prim::Broadcast { dims } => movement::broadcast(operands[0], dims, shape),
        Prim::Reshape | Prim::Layout => operands[0].bytes.to_vec(),
        Prim::Transpose { perm } => movement::transpose(operands[0], perm),
        Prim::Rows { axis, from } => movement::rows(operands[0], *axis, from),
        Prim::Slice { start, step } => movement::slice(operands[0], start, step, shape),
        Prim::Windows { stride, dilation } => movement::windows(operands[0], stride, dilation, shape),
        Prim::Pad { low, .. } => movement::pad(operands[0], operands[1], low, shape),
        Prim::Concat { axis } => movement::concat(operands, *axis, shape),
        Prim::UpdateSlice { start, step } => movement::update(operands[0], operands[1], start, step),
        Prim::DynamicSlice { sizes } => movement::dynamic_slice(operands[0], &operands[1..], sizes)?,
        Prim::DynamicUpdate => movement::dynamic_update(operands[0], operands[1], &operands[2..])?,
        Prim::Reduce { kind, axes } => reduce::reduce(*kind, axes, operands[0], dtype, summation),
        Prim::ArgReduce { largest, axis } => sort::arg_reduce(*largest, *axis, operands[0], dtype),
        Prim::Cumulate { kind, axis } => reduce::cumulate(*kind, *axis, operands[0], dtype),
        &Prim::Dot { accum, steps, pairs } => dot::dot(
            operands[0],
            operands[1],
            operands.get(2).copied(),
            dot::Form { accum, steps, pairs, summation },
            dtype,
        ),
        Prim::Quantize { format } => blocks::quantize(*format, operands[0]),
        Prim::Dequantize { format } => blocks::dequantize(*format, operands[0]),
        Prim::BlockDot { format } => blocks::dot(*format, operands[0], operands[1]),
        Prim::Take { axis } => index::take(operands[0], operands[1], *axis, shape)?,
        Prim::Gather => index::gather(operands[0], &operands[1..])?,
        Prim::Scatter { add } => index::scatter(operands[0], operands[1], &operands[2..], *add)?,
        Prim::TakeAlong { axis } => index::take_along(operands[0], operands[1], *axis)?,
        Prim::ScatterAddAlong { axis } => index::scatter_add_along(operands[0], operands[1], operands[2], *axis)?,
        Prim::Sort { axis, descending } => sort::sort(*axis, *descending, operands[0]),
        Prim::ArgSort { axis, descending } => sort::arg_sort(*axis, *descending, operands[0], dtype),
        Prim::Part { imag } => complex::part(operands[0], *imag),
        Prim::Complex => complex::complex(operands[0], operands[1]),
        Prim::Fft(f) => fft::fft(f, operands, shape)?,
        Prim::RandomBits => random::random_bits(operands[0], result),
    })
}

/// Operand 0, unless the check refuses a pair of elements.
fn checked(check: Check, a: ArrayRef, b: ArrayRef) -> Result<Vec<u8>, EvalError> {
    let words = |x: ArrayRef| x.bytes.as_chunks::<8>().0.to_vec();
    for operands in words(a).into_iter().zip(words(b)).map(|(a, b)| [a, b].map(u64::from_le_bytes)) {
        if !check.holds(operands[0], operands[1]) {
            let message = format!("`{}` has no value here", check.name());
            return Err(EvalError { message, refused: Some(Refused { check, operands }) });
        }
    }
    Ok(a.bytes.to_vec())
}

/// Number of elements; `None` where it does not fit the machine.
fn elems(shape: &[u64]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?))
}

#[cfg(test)]
mod tests;

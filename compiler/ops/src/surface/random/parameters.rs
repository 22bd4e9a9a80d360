//! What draws from distributions with parameters share: a key, numbers or tensors that broadcast, a shape, a dtype.

use super::key_arg;
use crate::surface::row::{Call, opt};
use crate::surface::rule::{self, Operand};
use crate::surface::*;

/// The last parameters of such a draw.
pub const SHAPE: Param = opt("shape", ParamKind::Shape, Default::None);
pub const DTYPE: Param = opt("dtype", ParamKind::DType, Default::None);

/// Parameters at the positions, of which the shape is that of the result where none is given.
///
/// # Errors
/// E0203 where they do not broadcast to the shape, E0214 for complex ones.
pub fn shape(cx: &mut InferCx, args: &[SymArg], at: &[usize], shape_at: usize) -> Result<Vec<Size>, OpError> {
    key_arg(cx, args, 0)?;
    let operands = operands(args, at)?;
    if rule::absent(args, shape_at) {
        return rule::broadcast_all(cx, &operands);
    }
    let shape = rule::shape(args, shape_at)?;
    for (i, operand) in &operands {
        if let Operand::Tensor(t) = operand {
            fits(cx, t, *i, &shape, shape_at)?;
        }
    }
    Ok(shape)
}

/// Checks that the tensor at parameter `i` broadcasts to the shape of the draw.
///
/// # Errors
/// E0203 where it does not.
pub fn fits(cx: &mut InferCx, t: &TensorType, i: usize, shape: &[Size], shape_at: usize) -> Result<(), OpError> {
    rule::broadcast_to(cx, t, shape, shape_at).map_err(|mut e| {
        // The rule blames the first parameter, which is the key.
        e.args.iter_mut().filter(|(at, _)| *at == 0).for_each(|(at, _)| *at = i);
        e
    })
}

fn operands<'a>(args: &'a [SymArg], at: &[usize]) -> Result<Vec<(usize, Operand<'a>)>, OpError> {
    let of = |&i: &usize| {
        let operand = rule::operand(args, i)?;
        match operand {
            Operand::Tensor(t) if t.dtype.is_some_and(DType::is_complex) => {
                Err(OpError::new(Code::E0214, "parameters of a distribution are real numbers").arg(i, t.to_string()))
            }
            _ => Ok((i, operand)),
        }
    };
    at.iter().map(of).collect()
}

/// The dtype of the floats that are drawn: the one that is asked for, else that of the parameters where it is one of
/// random floats, else f32. `None` where a parameter's is open.
pub fn dtype(args: &[SymArg], at: &[usize], dtype_at: usize) -> Result<Option<DType>, OpError> {
    if rule::dtype(args, dtype_at)?.is_some() {
        return super::float_dtype(args, dtype_at).map(Some);
    }
    let operands = operands(args, at)?;
    let tensors = operands.iter().any(|(_, o)| matches!(o, Operand::Tensor(_)));
    Ok(match rule::join(&operands)? {
        None if tensors => None,
        Some(d) if matches!(d, DType::F64 | DType::F32 | DType::Bf16 | DType::F16) => Some(d),
        _ => Some(DType::F32),
    })
}

/// The parameters in `dtype`, each in its own shape, so that what depends on them alone is computed once.
pub fn values(call: &mut Call, at: &[usize], dtype: DType) -> Result<Vec<Id>, OpError> {
    let of = |&i: &usize| {
        let shape = match call.args.get(i) {
            Some(Arg::Tensor(x) | Arg::Dynamic(x)) => call.b.shape(*x),
            _ => vec![],
        };
        call.operand(i, &shape, dtype)
    };
    at.iter().map(of).collect()
}

/// The number that a parameter is, where the program says it.
pub fn known(call: &Call, i: usize) -> Option<f64> {
    match call.args.get(i)? {
        Arg::Int(n) | Arg::Scalar(Scalar::I(n)) => Some(*n as f64),
        Arg::Float(v) | Arg::Scalar(Scalar::F(v)) => Some(*v),
        _ => None,
    }
}

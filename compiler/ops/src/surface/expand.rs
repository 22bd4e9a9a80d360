//! Pieces that expansions share: short ways to add primitives.
//!
//! Shapes and dtypes are concrete. Callers keep the preconditions (ranks, axes in range) that
//! the typing rules have established.

use super::{Arg, Build, Id, OpError};
use crate::map::{Gives, MapOp};
use crate::prim::{Prim, Reduction, Scalar, Steps};
use tessera_abi::check::{Check, narrow};
use tessera_base::{Code, DType};

pub fn cast(b: &mut dyn Build, x: Id, to: DType) -> Id {
    if b.dtype(x) == to {
        return x;
    }
    let shape = b.shape(x);
    b.push(Prim::Cast, &[x], shape, to)
}

/// The scalar rounded to a value of `dtype`, so that every reader of the graph sees the same
/// number. Integer scalars stay as they are; the caller has checked their range.
pub fn round_scalar(value: Scalar, dtype: DType) -> Scalar {
    match (value, dtype) {
        (Scalar::I(n), DType::Bool) => Scalar::I((n != 0) as i64),
        (Scalar::F(v), DType::Bool) => Scalar::I((v != 0.0) as i64),
        (Scalar::F(v), d) if d.is_int() => Scalar::I(v as i64),
        (Scalar::I(n), d) if d.is_float() || d.is_complex() => Scalar::F(round_float(n as f64, d)),
        (Scalar::F(v), d) => Scalar::F(round_float(v, d)),
        (n, _) => n,
    }
}

/// Rounds to nearest even in one step; fp8 saturates.
fn round_float(v: f64, dtype: DType) -> f64 {
    let (mantissa, least, max, saturates) = match dtype {
        DType::F32 | DType::Tf32 | DType::C64 => return f64::from(v as f32),
        DType::Bf16 => (7, -126, 3.3895313892515355e38, false),
        DType::F16 => (10, -14, 65504.0, false),
        DType::F8E4M3 => (3, -6, 448.0, true),
        DType::F8E5M2 => (2, -14, 57344.0, true),
        _ => return v,
    };
    if v.is_nan() || v == 0.0 {
        return v;
    }
    let magnitude = v.abs();
    let exponent = (((magnitude.to_bits() >> 52) as i64) - 1023).max(least);
    // A power of two in the normal range of f64.
    let quantum = f64::from_bits(((exponent - mantissa + 1023) as u64) << 52);
    let rounded = (magnitude / quantum).round_ties_even() * quantum;
    let kept = if rounded <= max {
        rounded
    } else if saturates {
        max
    } else {
        f64::INFINITY
    };
    kept.copysign(v)
}

/// Every element is `value`.
pub fn full(b: &mut dyn Build, shape: &[u64], dtype: DType, value: Scalar) -> Id {
    b.push(Prim::Full { value: round_scalar(value, dtype) }, &[], shape.to_vec(), dtype)
}

/// A tensor like `x` whose elements are all `value`.
pub fn like(b: &mut dyn Build, x: Id, value: f64) -> Id {
    let (shape, dtype) = (b.shape(x), b.dtype(x));
    full(b, &shape, dtype, Scalar::F(value))
}

/// 0, 1, 2, … along `axis`, as i64.
pub fn iota(b: &mut dyn Build, shape: &[u64], axis: usize) -> Id {
    b.push(Prim::Iota { axis }, &[], shape.to_vec(), DType::I64)
}

/// Dim `i` of `x` becomes dim `dims[i]`.
pub fn broadcast_dims(b: &mut dyn Build, x: Id, shape: &[u64], dims: Vec<usize>) -> Id {
    if b.shape(x) == shape && dims.iter().enumerate().all(|(i, &d)| i == d) {
        return x;
    }
    let dtype = b.dtype(x);
    b.push(Prim::Broadcast { dims }, &[x], shape.to_vec(), dtype)
}

/// NumPy's broadcasting: dims line up at the end.
pub fn broadcast_to(b: &mut dyn Build, x: Id, shape: &[u64]) -> Id {
    let rank = b.shape(x).len();
    let lead = shape.len().saturating_sub(rank);
    broadcast_dims(b, x, shape, (lead..lead + rank).collect())
}

/// The shape that two concrete shapes broadcast to.
pub fn common_shape(x: &[u64], y: &[u64]) -> Vec<u64> {
    let rank = x.len().max(y.len());
    let at = |s: &[u64], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |d| s[d]);
    (0..rank).map(|i| if at(x, i) == 1 { at(y, i) } else { at(x, i) }).collect()
}

/// Elementwise on operands of one shape.
pub fn map(b: &mut dyn Build, op: MapOp, operands: &[Id]) -> Id {
    let (Some(&first), Some(&last)) = (operands.first(), operands.last()) else { return Id(0) };
    if b.dtype(last).is_complex() {
        return super::complex::map(b, op, operands);
    }
    let shape = b.shape(first);
    let dtype = match op.def().gives {
        Gives::Same => b.dtype(last),
        Gives::Bool => DType::Bool,
    };
    b.push(Prim::Map(op), operands, shape, dtype)
}

pub fn unary(b: &mut dyn Build, op: MapOp, x: Id) -> Id {
    map(b, op, &[x])
}

/// Elementwise on two operands of one dtype, which broadcast.
pub fn binary(b: &mut dyn Build, op: MapOp, x: Id, y: Id) -> Id {
    let shape = common_shape(&b.shape(x), &b.shape(y));
    let (x, y) = (broadcast_to(b, x, &shape), broadcast_to(b, y, &shape));
    map(b, op, &[x, y])
}

/// Elementwise with a constant of the operand's dtype on the right.
pub fn binary_const(b: &mut dyn Build, op: MapOp, x: Id, value: f64) -> Id {
    let y = like(b, x, value);
    map(b, op, &[x, y])
}

/// The real parts of a c64 tensor.
pub fn real(b: &mut dyn Build, x: Id) -> Id {
    let shape = b.shape(x);
    b.push(Prim::Part { imag: false }, &[x], shape, DType::F32)
}

/// The imaginary parts of a c64 tensor.
pub fn imag(b: &mut dyn Build, x: Id) -> Id {
    let shape = b.shape(x);
    b.push(Prim::Part { imag: true }, &[x], shape, DType::F32)
}

/// Complex numbers of two f32 tensors of one shape.
pub fn complex(b: &mut dyn Build, re: Id, im: Id) -> Id {
    let shape = b.shape(re);
    b.push(Prim::Complex, &[re, im], shape, DType::C64)
}

/// `condition ? x : y`, all of one shape.
pub fn select(b: &mut dyn Build, condition: Id, x: Id, y: Id) -> Id {
    if b.dtype(x).is_complex() {
        let [re, im] = [real, imag].map(|part| {
            let (x, y) = (part(b, x), part(b, y));
            select(b, condition, x, y)
        });
        return complex(b, re, im);
    }
    map(b, WHERE, &[condition, x, y])
}

pub fn reshape(b: &mut dyn Build, x: Id, shape: &[u64]) -> Id {
    if b.shape(x) == shape {
        return x;
    }
    let dtype = b.dtype(x);
    b.push(Prim::Reshape, &[x], shape.to_vec(), dtype)
}

/// Adds dims of size 1 at the positions of the result given, ascending.
pub fn unsqueeze(b: &mut dyn Build, x: Id, axes: &[usize]) -> Id {
    let mut shape = b.shape(x);
    for &a in axes {
        shape.insert(a.min(shape.len()), 1);
    }
    reshape(b, x, &shape)
}

pub fn transpose(b: &mut dyn Build, x: Id, perm: &[usize]) -> Id {
    if perm.iter().enumerate().all(|(i, &p)| i == p) {
        return x;
    }
    let (from, dtype) = (b.shape(x), b.dtype(x));
    let shape = perm.iter().map(|&p| from[p]).collect();
    b.push(Prim::Transpose { perm: perm.to_vec() }, &[x], shape, dtype)
}

/// Moves one axis to the end.
pub fn axis_last(b: &mut dyn Build, x: Id, axis: usize) -> Id {
    let rank = b.shape(x).len();
    let perm: Vec<usize> = (0..rank).filter(|&d| d != axis).chain([axis]).collect();
    transpose(b, x, &perm)
}

/// Elements `start .. start + length` along `axis`.
pub fn slice(b: &mut dyn Build, x: Id, axis: usize, start: u64, length: u64) -> Id {
    let (mut shape, dtype) = (b.shape(x), b.dtype(x));
    if start == 0 && shape[axis] == length {
        return x;
    }
    let (mut starts, step) = (vec![0; shape.len()], vec![1; shape.len()]);
    starts[axis] = start as i64;
    shape[axis] = length;
    b.push(Prim::Slice { start: starts, step }, &[x], shape, dtype)
}

/// The first `length` elements along `axis`, with zeros after the last one where there are fewer.
pub fn fit(b: &mut dyn Build, x: Id, axis: usize, length: u64) -> Id {
    let (mut shape, dtype) = (b.shape(x), b.dtype(x));
    let size = shape[axis];
    if size >= length {
        return slice(b, x, axis, 0, length);
    }
    let zero = full(b, &[], dtype, Scalar::I(0));
    let (low, mut high) = (vec![0; shape.len()], vec![0; shape.len()]);
    (high[axis], shape[axis]) = (length - size, length);
    b.push(Prim::Pad { low, high }, &[x, zero], shape, dtype)
}

pub fn concat(b: &mut dyn Build, xs: &[Id], axis: usize) -> Id {
    let Some(&first) = xs.first() else { return Id(0) };
    if xs.len() == 1 {
        return first;
    }
    let (mut shape, dtype) = (b.shape(first), b.dtype(first));
    shape[axis] = xs.iter().map(|&x| b.shape(x)[axis]).sum();
    b.push(Prim::Concat { axis }, xs, shape, dtype)
}

/// Reduces over `axes` in the operand's own dtype; `keep` leaves dims of size 1.
pub fn reduce(b: &mut dyn Build, x: Id, kind: Reduction, axes: &[usize], keep: bool) -> Id {
    let (shape, dtype) = (b.shape(x), b.dtype(x));
    let rest: Vec<u64> = (0..shape.len()).filter(|d| !axes.contains(d)).map(|d| shape[d]).collect();
    if dtype.is_complex() && kind == Reduction::Sum {
        let [re, im] = [real, imag].map(|part| {
            let x = part(b, x);
            reduce(b, x, kind, axes, keep)
        });
        return complex(b, re, im);
    }
    let out = if axes.is_empty() { x } else { b.push(Prim::Reduce { kind, axes: axes.to_vec() }, &[x], rest, dtype) };
    if !keep {
        return out;
    }
    let kept: Vec<u64> = shape.iter().enumerate().map(|(d, &n)| if axes.contains(&d) { 1 } else { n }).collect();
    reshape(b, out, &kept)
}

/// The mean over `axes`, which stay as dims of size 1. `x` is f32 or f64.
pub fn mean(b: &mut dyn Build, x: Id, axes: &[usize]) -> Id {
    let shape = b.shape(x);
    let count: f64 = axes.iter().map(|&a| shape[a] as f64).product();
    let sum = reduce(b, x, Reduction::Sum, axes, true);
    binary_const(b, MapOp::div, sum, count)
}

/// `[batch…, m, k] @ [batch…, k, n]`, rounded once to `dtype`. A complex product is four real ones.
pub fn dot(b: &mut dyn Build, x: Id, y: Id, accum: DType, dtype: DType) -> Id {
    dot_over(b, [x, y], 1, accum, dtype)
}

/// The same over several dims, of which the inner ones have `run` positions together ([`Prim::dot_over`]).
pub fn dot_over(b: &mut dyn Build, [x, y]: [Id; 2], run: u64, accum: DType, dtype: DType) -> Id {
    if b.dtype(x).is_complex() {
        let (x, y) = ([real(b, x), imag(b, x)], [real(b, y), imag(b, y)]);
        let mut part = |i: usize, j: usize| dot_over(b, [x[i], y[j]], run, DType::F32, DType::F32);
        let products = [part(0, 0), part(1, 1), part(0, 1), part(1, 0)];
        let re = map(b, MapOp::sub, &products[..2]);
        let im = map(b, MapOp::add, &products[2..]);
        return complex(b, re, im);
    }
    let (mut shape, other) = (b.shape(x), b.shape(y));
    if let (Some(last), Some(n)) = (shape.last_mut(), other.last()) {
        *last = *n;
    }
    b.push(Prim::dot_over(accum, Steps::All, run), &[x, y], shape, dtype)
}

/// A Python scalar or tensor as a node of the dtype and shape given.
///
/// # Errors
/// E0711 for an int that the dtype does not hold.
pub fn operand(b: &mut dyn Build, arg: &Arg, shape: &[u64], dtype: DType) -> Result<Id, OpError> {
    let value = match arg {
        Arg::Tensor(x) | Arg::Dynamic(x) => {
            let x = if matches!(arg, Arg::Dynamic(_)) { fitting(b, *x, dtype) } else { *x };
            let x = cast(b, x, dtype);
            return Ok(broadcast_to(b, x, shape));
        }
        Arg::Scalar(s) => *s,
        Arg::Int(n) => Scalar::I(*n),
        Arg::Float(v) => Scalar::F(*v),
        Arg::Bool(v) => Scalar::I(*v as i64),
        other => return Err(OpError::new(Code::E0204, format!("a number is needed here, not {other:?}"))),
    };
    if let Scalar::I(n) = value {
        in_range(n, dtype)?;
    }
    Ok(full(b, shape, dtype, value))
}

/// An int of host code that only the run knows, of rank 0: the graph fails where it is no value of the dtype.
pub fn fitting(b: &mut dyn Build, x: Id, dtype: DType) -> Id {
    match dtype.narrow_most() {
        Some(most) if b.dtype(x) == DType::I64 => {
            let most = full(b, &[], DType::I64, Scalar::I(most));
            b.push(Prim::Check(Check::Value), &[x, most], vec![], DType::I64)
        }
        _ => x,
    }
}

/// Whether an int is a value of the dtype.
///
/// # Errors
/// E0711 where it is not.
pub fn in_range(n: i64, dtype: DType) -> Result<(), OpError> {
    let Some(high) = dtype.narrow_most() else { return Ok(()) };
    let (_, low) = narrow(high);
    if (low..=high).contains(&n) {
        return Ok(());
    }
    Err(OpError::new(Code::E0711, format!("{n} is not a value of {dtype}, whose values are {low} to {high}"))
        .help("convert the tensor first: `.to(i64)`"))
}

/// The positions of `index` along an axis, as the primitives take them.
pub fn positions(b: &mut dyn Build, index: Id) -> Id {
    cast(b, index, DType::I64)
}

/// The elementwise choice; its name is a keyword.
const WHERE: MapOp = MapOp::r#where;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_round_to_the_tensors_type() {
        let f = |v, d| match round_scalar(Scalar::F(v), d) {
            Scalar::F(r) => r,
            Scalar::I(n) => n as f64,
        };
        assert_eq!(f(0.1, DType::Bf16), 0.10009765625);
        assert_eq!(f(1e6, DType::F16), f64::INFINITY);
        assert_eq!(f(-1e6, DType::F8E4M3), -448.0);
        assert_eq!(f(0.3, DType::F8E4M3), 0.3125);
        assert_eq!(f(2f64.powi(-25), DType::F16), 0.0);
        assert_eq!(f(2.7, DType::I64), 2.0);
    }
}

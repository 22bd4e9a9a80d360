//! Primitives that move elements and compute nothing; any element type.

use super::layout::{View, copy, strides};
use super::{ArrayRef, EvalError, elems};
use crate::convert::load;
use crate::prim::Scalar;

fn zeros(size: usize, shape: &[u64]) -> Vec<u8> {
    vec![0; size * elems(shape).unwrap_or(0)]
}

/// A new array of `shape` read from `a` through `view`.
fn read(a: ArrayRef, shape: &[u64], view: &View) -> Vec<u8> {
    let size = a.dtype.bytes();
    let mut out = zeros(size, shape);
    copy(size, shape, a.bytes, view, &mut out, &View::dense(shape));
    out
}

/// `a` with `values` written through `view`.
fn written(a: ArrayRef, values: ArrayRef, view: &View) -> Vec<u8> {
    let mut out = a.bytes.to_vec();
    copy(a.dtype.bytes(), values.shape, values.bytes, &View::dense(values.shape), &mut out, view);
    out
}

/// The elements `start + i · step` of an array of `shape`.
fn stepped(shape: &[u64], start: &[i64], step: &[i64]) -> View {
    let dense = strides(shape);
    View {
        start: start.iter().zip(&dense).map(|(&s, &d)| s as isize * d).sum(),
        strides: step.iter().zip(&dense).map(|(&s, &d)| s as isize * d).collect(),
    }
}

pub fn broadcast(a: ArrayRef, dims: &[usize], shape: &[u64]) -> Vec<u8> {
    let mut view = View { start: 0, strides: vec![0; shape.len()] };
    for ((&dim, &stride), &n) in dims.iter().zip(&strides(a.shape)).zip(a.shape) {
        if n != 1 {
            view.strides[dim] = stride;
        }
    }
    read(a, shape, &view)
}

pub fn transpose(a: ArrayRef, perm: &[usize]) -> Vec<u8> {
    let dense = strides(a.shape);
    let shape: Vec<u64> = perm.iter().map(|&p| a.shape[p]).collect();
    read(a, &shape, &View { start: 0, strides: perm.iter().map(|&p| dense[p]).collect() })
}

pub fn rows(a: ArrayRef, axis: usize, from: &[u64]) -> Vec<u8> {
    let size = a.dtype.bytes();
    let dense = strides(a.shape);
    let mut out = zeros(size, a.shape);
    let row: Vec<u64> = a.shape.iter().enumerate().map(|(d, &n)| if d == axis { 1 } else { n }).collect();
    for (to, &from) in from.iter().enumerate() {
        let at = |i: u64| View { start: i as isize * dense[axis], strides: dense.clone() };
        copy(size, &row, a.bytes, &at(from), &mut out, &at(to as u64));
    }
    out
}

pub fn slice(a: ArrayRef, start: &[i64], step: &[i64], shape: &[u64]) -> Vec<u8> {
    read(a, shape, &stepped(a.shape, start, step))
}

pub fn windows(a: ArrayRef, stride: &[u64], dilation: &[u64], shape: &[u64]) -> Vec<u8> {
    let mut steps = strides(a.shape);
    let lead = steps.len() - stride.len();
    let inner: Vec<isize> = steps.drain(lead..).collect();
    steps.extend(inner.iter().zip(stride).map(|(&d, &s)| d * s as isize));
    steps.extend(inner.iter().zip(dilation).map(|(&d, &s)| d * s as isize));
    read(a, shape, &View { start: 0, strides: steps })
}

pub fn update(a: ArrayRef, values: ArrayRef, start: &[i64], step: &[i64]) -> Vec<u8> {
    written(a, values, &stepped(a.shape, start, step))
}

pub fn pad(a: ArrayRef, fill: ArrayRef, low: &[u64], shape: &[u64]) -> Vec<u8> {
    let mut out = fill.bytes.repeat(elems(shape).unwrap_or(0));
    let dense = strides(shape);
    let start = low.iter().zip(&dense).map(|(&l, &d)| l as isize * d).sum();
    copy(a.dtype.bytes(), a.shape, a.bytes, &View::dense(a.shape), &mut out, &View { start, strides: dense });
    out
}

pub fn concat(operands: &[ArrayRef], axis: usize, shape: &[u64]) -> Vec<u8> {
    let Some(first) = operands.first() else { return Vec::new() };
    let size = first.dtype.bytes();
    let mut out = zeros(size, shape);
    let dense = strides(shape);
    let mut at = 0;
    for a in operands {
        let view = View { start: at * dense[axis], strides: dense.clone() };
        copy(size, a.shape, a.bytes, &View::dense(a.shape), &mut out, &view);
        at += a.shape[axis] as isize;
    }
    out
}

pub fn dynamic_slice(a: ArrayRef, starts: &[ArrayRef], sizes: &[u64]) -> Result<Vec<u8>, EvalError> {
    let start = positions(a, starts, sizes)?;
    Ok(slice(a, &start, &vec![1; start.len()], sizes))
}

pub fn dynamic_update(a: ArrayRef, values: ArrayRef, starts: &[ArrayRef]) -> Result<Vec<u8>, EvalError> {
    let start = positions(a, starts, values.shape)?;
    Ok(update(a, values, &start, &vec![1; start.len()]))
}

/// The start positions of a block of `sizes`, which has to lie inside `a`.
fn positions(a: ArrayRef, starts: &[ArrayRef], sizes: &[u64]) -> Result<Vec<i64>, EvalError> {
    let mut out = Vec::with_capacity(starts.len());
    for (dim, (start, (&n, &size))) in starts.iter().zip(a.shape.iter().zip(sizes)).enumerate() {
        let Some(Scalar::I(at)) = load(start.dtype, start.bytes, 0) else {
            return Err(format!("start position {dim} is not an integer").into());
        };
        let fits = u64::try_from(at).ok().and_then(|at| at.checked_add(size)).is_some_and(|end| end <= n);
        if !fits {
            let end = i128::from(at) + i128::from(size);
            return Err(format!("positions {at}..{end} are out of range for axis {dim} of size {n}").into());
        }
        out.push(at);
    }
    Ok(out)
}

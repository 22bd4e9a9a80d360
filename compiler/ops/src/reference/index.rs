//! Primitives that read or write where another operand says.

use super::layout::{Split, sized, split, strides};
use super::{ArrayRef, EvalError, elems};
use crate::convert::{cast, narrow};
use crate::map::kind_of;
use crate::scalar::Kind;
use crate::scalar_eval::Lane;
use tessera_base::DType;

/// Positions as they are written; the verifier has seen that they are i64.
fn positions(a: ArrayRef) -> Vec<i64> {
    match Lane::from_bytes(Kind::I64, a.bytes) {
        Lane::I64(v) => v,
        _ => Vec::new(),
    }
}

/// A position that may count from the end, as an offset.
fn resolve(at: i64, n: usize, axis: usize) -> Result<usize, EvalError> {
    let from_start = if at < 0 { at.checked_add(n as i64) } else { Some(at) };
    match from_start.and_then(|at| usize::try_from(at).ok()) {
        Some(found) if found < n => Ok(found),
        _ => Err(format!("index {at} is out of range for axis {axis} of size {n}").into()),
    }
}

pub fn take(a: ArrayRef, index: ArrayRef, axis: usize, shape: &[u64]) -> Result<Vec<u8>, EvalError> {
    let Split { outer, n, inner } = split(a.shape, axis);
    let run = inner * a.dtype.bytes();
    let index: Vec<usize> = positions(index).into_iter().map(|at| resolve(at, n, axis)).collect::<Result<_, _>>()?;
    let mut out = Vec::with_capacity(elems(shape).unwrap_or(0) * a.dtype.bytes());
    for o in 0..outer {
        let block = &a.bytes[o * n * run..(o + 1) * n * run];
        for &at in &index {
            out.extend_from_slice(&block[at * run..(at + 1) * run]);
        }
    }
    Ok(out)
}

/// For each position of the indices: which row of `a` (of the dims that are not indexed) it
/// names. And the elements of a row.
fn named_rows(shape: &[u64], indices: &[ArrayRef]) -> Result<(Vec<usize>, usize), EvalError> {
    let depth = indices.len();
    let steps = strides(&shape[..depth]);
    let count = indices.first().and_then(|i| elems(i.shape)).unwrap_or(0);
    let mut rows = vec![0; count];
    for (axis, index) in indices.iter().enumerate() {
        for (row, at) in rows.iter_mut().zip(positions(*index)) {
            *row += resolve(at, shape[axis] as usize, axis)? * steps[axis] as usize;
        }
    }
    Ok((rows, elems(&shape[depth..]).unwrap_or(0)))
}

pub fn gather(a: ArrayRef, indices: &[ArrayRef]) -> Result<Vec<u8>, EvalError> {
    let (rows, row) = named_rows(a.shape, indices)?;
    let run = row * a.dtype.bytes();
    let mut out = Vec::with_capacity(rows.len() * run);
    for at in rows {
        out.extend_from_slice(&a.bytes[at * run..(at + 1) * run]);
    }
    Ok(out)
}

pub fn scatter(a: ArrayRef, values: ArrayRef, indices: &[ArrayRef], add: bool) -> Result<Vec<u8>, EvalError> {
    let (rows, row) = named_rows(a.shape, indices)?;
    if add {
        let offsets = rows.iter().enumerate().flat_map(|(i, &at)| (0..row).map(move |j| (at * row + j, i * row + j)));
        return Ok(added(a, values, offsets));
    }
    let run = row * a.dtype.bytes();
    let mut out = a.bytes.to_vec();
    for (i, at) in rows.into_iter().enumerate() {
        out[at * run..(at + 1) * run].copy_from_slice(&values.bytes[i * run..(i + 1) * run]);
    }
    Ok(out)
}

/// `base[t] += values[s]` for each `(t, s)` in order, in the accumulator's type; every element
/// is rounded once at the end, so that one element's sum does not depend on its type's width.
fn added(base: ArrayRef, values: ArrayRef, pairs: impl Iterator<Item = (usize, usize)>) -> Vec<u8> {
    if base.dtype == DType::C64 {
        let parts = pairs.flat_map(|(t, s)| [(2 * t, 2 * s), (2 * t + 1, 2 * s + 1)]);
        return fold(base.bytes, values.bytes, Kind::F32, parts).to_bytes();
    }
    let accum = base.dtype.accumulator();
    let Some(kind) = kind_of(accum) else { return Vec::new() };
    let (wide, terms) = (cast(base.dtype, accum, base.bytes), cast(values.dtype, accum, values.bytes));
    narrow(base.dtype, &fold(&wide, &terms, kind, pairs))
}

fn fold(base: &[u8], terms: &[u8], kind: Kind, pairs: impl Iterator<Item = (usize, usize)>) -> Lane {
    let mut sums = Lane::from_bytes(kind, base);
    match (&mut sums, Lane::from_bytes(kind, terms)) {
        (Lane::F32(sums), Lane::F32(terms)) => pairs.for_each(|(t, s)| sums[t] += terms[s]),
        (Lane::F64(sums), Lane::F64(terms)) => pairs.for_each(|(t, s)| sums[t] += terms[s]),
        (Lane::I64(sums), Lane::I64(terms)) => pairs.for_each(|(t, s)| sums[t] = sums[t].wrapping_add(terms[s])),
        _ => {}
    }
    sums
}

/// For each element of `index`, in order: the element of an array with `n` along `axis` that it
/// names.
fn along(index: ArrayRef, n: usize, axis: usize) -> Result<Vec<usize>, EvalError> {
    let s = split(index.shape, axis);
    let mut out = Vec::with_capacity(s.outer * s.n * s.inner);
    for (i, at) in positions(index).into_iter().enumerate() {
        let (outer, inner) = (i / (s.n * s.inner), i % s.inner);
        out.push((outer * n + resolve(at, n, axis)?) * s.inner + inner);
    }
    Ok(out)
}

pub fn take_along(a: ArrayRef, index: ArrayRef, axis: usize) -> Result<Vec<u8>, EvalError> {
    let places = along(index, a.shape[axis] as usize, axis)?;
    Ok(sized!(a.dtype.bytes(), N => {
        let elements = a.bytes.as_chunks::<N>().0;
        places.into_iter().flat_map(|at| elements[at]).collect()
    }))
}

pub fn scatter_add_along(a: ArrayRef, index: ArrayRef, source: ArrayRef, axis: usize) -> Result<Vec<u8>, EvalError> {
    let places = along(index, a.shape[axis] as usize, axis)?;
    Ok(added(a, source, places.into_iter().enumerate().map(|(s, t)| (t, s))))
}

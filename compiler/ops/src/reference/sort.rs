//! Sorting and the positions of extremes.

use super::ArrayRef;
use super::layout::{Split, sized, split};
use crate::convert::cast;
use crate::scalar::Kind;
use crate::scalar_eval::Lane;
use std::cmp::Ordering;
use tessera_base::DType;

/// Elements as numbers that compare like them: exact for every type but c64.
fn keys(a: ArrayRef) -> Lane {
    let (wide, kind) = if a.dtype.is_float() { (DType::F64, Kind::F64) } else { (DType::I64, Kind::I64) };
    Lane::from_bytes(kind, &cast(a.dtype, wide, a.bytes))
}

/// Ascending or descending, NaN last either way; −0 equals 0.
fn compare<T: PartialOrd>(a: T, b: T, descending: bool) -> Ordering {
    match a.partial_cmp(&b) {
        Some(order) if descending => order.reverse(),
        Some(order) => order,
        None => (a.partial_cmp(&a).is_none()).cmp(&b.partial_cmp(&b).is_none()),
    }
}

/// For each element along the axis of the sorted array: the position it comes from. In the
/// array's own order.
fn order(axis: usize, descending: bool, a: ArrayRef) -> Vec<usize> {
    match keys(a) {
        Lane::F64(keys) => order_of(&keys, split(a.shape, axis), descending),
        Lane::I64(keys) => order_of(&keys, split(a.shape, axis), descending),
        _ => Vec::new(),
    }
}

fn order_of<T: PartialOrd + Copy>(keys: &[T], s: Split, descending: bool) -> Vec<usize> {
    let mut out = vec![0; keys.len()];
    let mut line: Vec<(T, usize)> = Vec::with_capacity(s.n);
    for o in 0..s.outer {
        for i in 0..s.inner {
            let at = |p: usize| (o * s.n + p) * s.inner + i;
            line.clear();
            line.extend((0..s.n).map(|p| (keys[at(p)], p)));
            line.sort_by(|a, b| compare(a.0, b.0, descending));
            for (p, &(_, from)) in line.iter().enumerate() {
                out[at(p)] = from;
            }
        }
    }
    out
}

pub fn sort(axis: usize, descending: bool, a: ArrayRef) -> Vec<u8> {
    let s = split(a.shape, axis);
    let order = order(axis, descending, a);
    sized!(a.dtype.bytes(), N => {
        let elements = a.bytes.as_chunks::<N>().0;
        let place = |(i, from): (usize, usize)| (i / (s.n * s.inner) * s.n + from) * s.inner + i % s.inner;
        order.into_iter().enumerate().flat_map(|e| elements[place(e)]).collect()
    })
}

/// Positions in `dtype`, which is i64.
fn from_positions(positions: Vec<usize>, dtype: DType) -> Vec<u8> {
    let bytes: Vec<u8> = positions.into_iter().flat_map(|p| (p as i64).to_le_bytes()).collect();
    cast(DType::I64, dtype, &bytes)
}

pub fn arg_sort(axis: usize, descending: bool, a: ArrayRef, dtype: DType) -> Vec<u8> {
    from_positions(order(axis, descending, a), dtype)
}

/// The first extreme; NaN is more extreme than any number.
pub fn arg_reduce(largest: bool, axis: usize, a: ArrayRef, dtype: DType) -> Vec<u8> {
    let s = split(a.shape, axis);
    let found = match keys(a) {
        Lane::F64(keys) => extremes(&keys, s, largest),
        Lane::I64(keys) => extremes(&keys, s, largest),
        _ => Vec::new(),
    };
    from_positions(found, dtype)
}

fn extremes<T: PartialOrd + Copy>(keys: &[T], s: Split, largest: bool) -> Vec<usize> {
    let is_nan = |x: T| x.partial_cmp(&x).is_none();
    let mut out = Vec::with_capacity(s.outer * s.inner);
    for o in 0..s.outer {
        for i in 0..s.inner {
            let at = |p: usize| keys[(o * s.n + p) * s.inner + i];
            let mut best = 0;
            for p in 1..s.n {
                let (x, y) = (at(p), at(best));
                let better = if largest { x > y } else { x < y };
                if better || (is_nan(x) && !is_nan(y)) {
                    best = p;
                }
            }
            out.push(best);
        }
    }
    out
}

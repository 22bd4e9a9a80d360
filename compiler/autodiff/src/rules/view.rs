//! Primitives that only move elements: all linear, the cotangent goes back to where its element
//! came from, and elements that were read several times sum up.

use super::At;
use tessera_base::DType;
use tessera_ir::graph::{NodeId, NodeType, Policy};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction, Scalar, Steps};
use tessera_ops::surface::{Build, Id, expand};

/// The sum over the dims along which elements were repeated.
pub fn broadcast(at: &mut At, dims: &[usize]) -> Vec<Option<Id>> {
    let (from, to) = (at.shape(at.x[0]), at.shape(at.c));
    let kept = |d: usize| dims.iter().position(|&k| k == d).is_some_and(|i| from[i] == to[d]);
    let axes: Vec<usize> = (0..to.len()).filter(|&d| !kept(d)).collect();
    let sum = over_batch(at, &axes);
    let sum = sum.unwrap_or_else(|| expand::reduce(at.w, at.c, Reduction::Sum, &axes, false));
    // What is left lies in the order of the result's dims.
    let left: Vec<usize> = dims.iter().copied().filter(|&d| kept(d)).collect();
    let perm: Vec<usize> = left.iter().map(|d| left.iter().filter(|&k| k < d).count()).collect();
    let turned = expand::transpose(at.w, sum, &perm);
    vec![Some(expand::reshape(at.w, turned, &from))]
}

/// Of products, one for each item of a batch: the sum over the batch, one chain like the products themselves. Over devices
/// that share a batch, such a chain hands on one number for each weight, where a sum has [`tessera_ops::prim::LANES`].
fn over_batch(at: &mut At, axes: &[usize]) -> Option<Id> {
    let node = at.w.graph.node(NodeId(at.c.0));
    let Prim::Dot { accum, .. } = node.prim else { return None };
    let shape = node.ty.shape.clone();
    let (batch, kept) = shape.split_at_checked(axes.len())?;
    let leads = axes.iter().copied().eq(0..axes.len()) && kept.len() >= 2;
    let (items, elems) = (batch.iter().product::<u64>(), kept.iter().product::<u64>());
    if !leads || items < 2 || at.w.policy == Policy::KahanSum || accum == DType::F16 {
        return None;
    }
    let dtype = at.dtype(at.c);
    let rows = expand::reshape(at.w, at.c, &[items, elems]);
    let ones = expand::full(at.w, &[1, items], dtype, Scalar::F(1.0));
    let prim = Prim::Dot { accum, steps: Steps::All, pairs: false };
    let sum = at.w.push(prim, &[ones, rows], vec![1, elems], dtype);
    Some(expand::reshape(at.w, sum, kept))
}

/// The value is the same wherever it lies, and so is its cotangent. Where the value came from one position of an axis,
/// the cotangent goes back there: it meets there what the position has kept.
pub fn layout(at: &mut At) -> Vec<Option<Id>> {
    let (from, c) = (NodeId(at.x[0].0), NodeId(at.c.0));
    let node = at.w.graph.node(from);
    if node.prim != Prim::Layout || node.ty.sharding.positions().is_empty() {
        return vec![Some(at.c)];
    }
    let ty = NodeType { sharding: node.ty.sharding.clone(), ..at.w.graph.ty(c).clone() };
    vec![Some(Id(at.w.node(Prim::Layout, vec![c], ty, vec![]).0))]
}

pub fn reshape(at: &mut At) -> Vec<Option<Id>> {
    let from = at.shape(at.x[0]);
    vec![Some(expand::reshape(at.w, at.c, &from))]
}

pub fn transpose(at: &mut At, perm: &[usize]) -> Vec<Option<Id>> {
    let mut back = vec![0; perm.len()];
    for (i, &p) in perm.iter().enumerate() {
        back[p] = i;
    }
    vec![Some(expand::transpose(at.w, at.c, &back))]
}

/// Each row gets back what was made of it: one row where all are read once, else their sum.
pub fn rows(at: &mut At, axis: usize, from: &[u64]) -> Vec<Option<Id>> {
    let readers = |row: u64| (0..from.len() as u64).filter(move |&i| from[i as usize] == row);
    let back: Vec<Vec<u64>> = (0..from.len() as u64).map(|row| readers(row).collect()).collect();
    if back.iter().all(|b| b.len() == 1) {
        let from = back.into_iter().flatten().collect();
        return vec![Some(at.like(at.c, Prim::Rows { axis, from }, &[at.c]))];
    }
    let (mut shape, dtype) = (at.shape(at.c), at.dtype(at.c));
    shape[axis] = 1;
    let mut parts = vec![];
    for readers in &back {
        let rows: Vec<Id> = readers.iter().map(|&i| expand::slice(at.w, at.c, axis, i, 1)).collect();
        parts.push(match rows[..] {
            [] => at.zeros_of(&shape, dtype),
            [row] => row,
            _ => {
                let all = expand::concat(at.w, &rows, axis);
                expand::reduce(at.w, all, Reduction::Sum, &[axis], true)
            }
        });
    }
    vec![Some(expand::concat(at.w, &parts, axis))]
}

/// Zeros around, or between where there are steps.
pub fn slice(at: &mut At, start: &[i64], step: &[i64]) -> Vec<Option<Id>> {
    vec![Some(place(at, at.x[0], at.c, start, step))]
}

/// Zeros of the type of `like`, with `part` from `start` on in steps.
fn place(at: &mut At, like: Id, part: Id, start: &[i64], step: &[i64]) -> Id {
    let (whole, size) = (at.shape(like), at.shape(part));
    if step.iter().all(|&s| s == 1) {
        let dtype = at.dtype(part);
        let zero = at.zeros_of(&[], dtype);
        let low: Vec<u64> = start.iter().map(|&s| s as u64).collect();
        let high: Vec<u64> = whole.iter().zip(&size).zip(&low).map(|((w, s), l)| w - s - l).collect();
        if low.iter().chain(&high).all(|&n| n == 0) {
            return part;
        }
        return at.like(like, Prim::Pad { low, high }, &[part, zero]);
    }
    let zeros = at.zeros(like);
    at.like(like, Prim::UpdateSlice { start: start.to_vec(), step: step.to_vec() }, &[zeros, part])
}

/// Every place in the window puts its elements back; the windows of one place do not overlap.
pub fn windows(at: &mut At, stride: &[u64], dilation: &[u64]) -> Vec<Option<Id>> {
    let (n, whole, shape) = (stride.len(), at.shape(at.x[0]), at.shape(at.c));
    let lead = whole.len() - n;
    let (counts, kernel) = (shape[lead..lead + n].to_vec(), shape[lead + n..].to_vec());
    let part_shape = [&whole[..lead], &counts[..]].concat();
    let places: u64 = kernel.iter().product();
    let mut sum: Option<Id> = None;
    for place_number in 0..places {
        let (mut rest, mut offset) = (place_number, vec![0; n]);
        for d in (0..n).rev() {
            offset[d] = rest % kernel[d];
            rest /= kernel[d];
        }
        let start: Vec<i64> = [vec![0; lead + n], offset.iter().map(|&o| o as i64).collect()].concat();
        let mut one = part_shape.clone();
        one.extend(vec![1; n]);
        let dtype = at.dtype(at.c);
        let step = vec![1; start.len()];
        let picked = at.w.push(Prim::Slice { start, step }, &[at.c], one, dtype);
        let picked = expand::reshape(at.w, picked, &part_shape);
        let from: Vec<i64> =
            (0..lead).map(|_| 0).chain(offset.iter().zip(dilation).map(|(o, d)| (o * d) as i64)).collect();
        let step: Vec<i64> = (0..lead).map(|_| 1).chain(stride.iter().map(|&s| s as i64)).collect();
        let back = place(at, at.x[0], picked, &from, &step);
        sum = Some(match sum {
            None => back,
            Some(sum) => expand::map(at.w, MapOp::add, &[sum, back]),
        });
    }
    vec![sum]
}

pub fn pad(at: &mut At, low: &[u64]) -> Vec<Option<Id>> {
    let (shape, dtype) = (at.shape(at.x[0]), at.dtype(at.c));
    let start = low.iter().map(|&l| l as i64).collect();
    let inner = at.w.push(Prim::Slice { start, step: vec![1; shape.len()] }, &[at.c], shape.clone(), dtype);
    let edge = at.needed[1].then(|| {
        let all: Vec<usize> = (0..shape.len()).collect();
        let whole = expand::reduce(at.w, at.c, Reduction::Sum, &all, false);
        let inside = expand::reduce(at.w, inner, Reduction::Sum, &all, false);
        expand::map(at.w, MapOp::sub, &[whole, inside])
    });
    vec![Some(inner), edge]
}

pub fn concat(at: &mut At, axis: usize) -> Vec<Option<Id>> {
    let (mut start, mut out) = (0, vec![]);
    for i in 0..at.x.len() {
        let length = at.shape(at.x[i])[axis];
        out.push(at.needed[i].then(|| expand::slice(at.w, at.c, axis, start, length)));
        start += length;
    }
    out
}

/// What was overwritten has no influence; what was written has that of its place.
pub fn update_slice(at: &mut At, start: &[i64], step: &[i64]) -> Vec<Option<Id>> {
    let (start, step) = (start.to_vec(), step.to_vec());
    let base = at.needed[0].then(|| {
        let zeros = at.zeros(at.x[1]);
        at.like(at.x[0], Prim::UpdateSlice { start: start.clone(), step: step.clone() }, &[at.c, zeros])
    });
    let part = at.needed[1].then(|| at.like(at.x[1], Prim::Slice { start, step }, &[at.c]));
    vec![base, part]
}

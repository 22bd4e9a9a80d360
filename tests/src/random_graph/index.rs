//! What reads or writes at positions that are data, and sorting.

use super::{Builder, elems};
use crate::random::Random;
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Scalar};

fn words(values: impl Iterator<Item = i64>) -> Vec<u8> {
    values.flat_map(i64::to_le_bytes).collect()
}

/// One position among `n`; rarely, one that does not exist.
fn position(random: &mut Random, n: u64, negative: bool) -> i64 {
    let at = random.below(n as usize) as i64;
    if negative && random.once_in(3) { at - n as i64 } else { at }
}

/// Positions among `n`: given, or computed as a remainder.
fn positions(b: &mut Builder, shape: &[u64], n: u64) -> NodeId {
    let count = elems(shape);
    if b.open && !b.random.once_in(3) {
        let wrong = b.random.once_in(25) && count > 0;
        let mut values: Vec<i64> = (0..count).map(|_| position(&mut b.random, n, true)).collect();
        if wrong {
            values[count / 2] = b.random.pick(&[n as i64, -(n as i64) - 1, i64::MAX, i64::MIN]);
        }
        return b.input_of(shape, DType::I64, words(values.into_iter()), false);
    }
    let x = b.like(shape, DType::I64);
    let by = b.push(Prim::Full { value: Scalar::I(n.max(1) as i64) }, &[], shape, DType::I64);
    b.push(Prim::Map(MapOp::r#mod), &[x, by], shape, DType::I64)
}

/// The start of a block of `size` among `n`, rank 0.
fn start(b: &mut Builder, n: u64, size: u64) -> NodeId {
    let room = n - size + 1;
    let mut at = position(&mut b.random, room, false);
    if b.random.once_in(40) {
        at = b.random.pick(&[-1, room as i64, i64::MAX]);
    }
    match b.random.below(3) {
        0 if b.open => b.input_of(&[], DType::I64, words([at].into_iter()), true),
        1 if b.open => b.input_of(&[], DType::I64, words([at].into_iter()), false),
        _ => b.push(Prim::Full { value: Scalar::I(at) }, &[], &[], DType::I64),
    }
}

fn block(b: &mut Builder, shape: &[u64]) -> (Vec<u64>, Vec<NodeId>) {
    let sizes: Vec<u64> = shape.iter().map(|&n| b.random.below(n as usize + 1) as u64).collect();
    let starts = shape.iter().zip(&sizes).map(|(&n, &size)| start(b, n, size)).collect();
    (sizes, starts)
}

pub fn dynamic_slice(b: &mut Builder) {
    let x = b.operand();
    let ty = b.ty(x);
    let (sizes, starts) = block(b, &ty.shape);
    let operands = [&[x][..], &starts].concat();
    b.push(Prim::DynamicSlice { sizes: sizes.clone() }, &operands, &sizes, ty.dtype);
}

pub fn dynamic_update(b: &mut Builder) {
    let x = b.operand();
    let ty = b.ty(x);
    let (sizes, starts) = block(b, &ty.shape);
    let y = b.like(&sizes, ty.dtype);
    let operands = [&[x, y][..], &starts].concat();
    b.push(Prim::DynamicUpdate, &operands, &ty.shape, ty.dtype);
}

/// The shape of an index.
fn index_shape(b: &mut Builder) -> Vec<u64> {
    let rank = b.random.pick(&[0, 1, 1, 2]);
    (0..rank).map(|_| b.random.pick(&[0, 1, 2, 3, 5, 17])).collect()
}

pub fn take(b: &mut Builder) {
    let x = b.ranked(1);
    let ty = b.ty(x);
    let axis = b.random.below(ty.shape.len());
    let mut index = index_shape(b);
    if ty.shape[axis] == 0 {
        index = vec![0];
    }
    let shape = [&ty.shape[..axis], &index, &ty.shape[axis + 1..]].concat();
    if !b.affords(&shape) {
        return;
    }
    let at = positions(b, &index, ty.shape[axis]);
    b.push(Prim::Take { axis }, &[x, at], &shape, ty.dtype);
}

/// Indices of the first dims of `shape`, and the shape of what they name.
fn indices(b: &mut Builder, shape: &[u64]) -> (Vec<NodeId>, Vec<u64>) {
    let depth = 1 + b.random.below(shape.len().min(3));
    let mut index = index_shape(b);
    if shape[..depth].contains(&0) {
        index = vec![0];
    }
    let named = [&index, &shape[depth..]].concat();
    if !b.affords(&named) {
        return (vec![], named);
    }
    let ids = shape[..depth].iter().map(|&n| positions(b, &index, n)).collect();
    (ids, named)
}

pub fn gather(b: &mut Builder) {
    let x = b.ranked(1);
    let ty = b.ty(x);
    let (ids, shape) = indices(b, &ty.shape);
    if !ids.is_empty() {
        b.push(Prim::Gather, &[&[x][..], &ids].concat(), &shape, ty.dtype);
    }
}

pub fn scatter(b: &mut Builder) {
    let x = b.ranked(1);
    let ty = b.ty(x);
    let (ids, shape) = indices(b, &ty.shape);
    if !ids.is_empty() {
        let y = b.like(&shape, ty.dtype);
        let add = b.random.once_in(2);
        b.push(Prim::Scatter { add }, &[&[x, y][..], &ids].concat(), &ty.shape, ty.dtype);
    }
}

/// The index of an operation along an axis of `shape`.
fn along(b: &mut Builder, shape: &[u64]) -> (usize, NodeId, Vec<u64>) {
    let axis = b.random.below(shape.len());
    let mut index = shape.to_vec();
    index[axis] = if shape[axis] == 0 { 0 } else { b.random.pick(&[0, 1, 2, 5, 17]) };
    if !b.affords(&index) {
        index[axis] = shape[axis].min(1);
    }
    let at = positions(b, &index, shape[axis]);
    (axis, at, index)
}

pub fn take_along(b: &mut Builder) {
    let x = b.ranked(1);
    let ty = b.ty(x);
    let (axis, at, shape) = along(b, &ty.shape);
    b.push(Prim::TakeAlong { axis }, &[x, at], &shape, ty.dtype);
}

pub fn scatter_add_along(b: &mut Builder) {
    let x = b.ranked(1);
    let ty = b.ty(x);
    let (axis, at, shape) = along(b, &ty.shape);
    let y = b.like(&shape, ty.dtype);
    b.push(Prim::ScatterAddAlong { axis }, &[x, at, y], &ty.shape, ty.dtype);
}

pub fn sort(b: &mut Builder) {
    let x = b.ranked(1);
    let ty = b.ty(x);
    let (axis, descending) = (b.random.below(ty.shape.len()), b.random.once_in(2));
    if b.random.once_in(2) {
        b.push(Prim::Sort { axis, descending }, &[x], &ty.shape, ty.dtype);
    } else {
        b.push(Prim::ArgSort { axis, descending }, &[x], &ty.shape, DType::I64);
    }
}

pub fn random_bits(b: &mut Builder) {
    let shape = b.shape();
    // One key, or one for each position of the leading dims.
    let lead = b.random.below(shape.len() + 1);
    let key = b.like(&[&shape[..lead], &[2]].concat(), DType::I64);
    if b.affords(&shape) {
        let dtype = b.random.pick(&[DType::I64, DType::I64, DType::I32, DType::U8]);
        b.push(Prim::RandomBits, &[key], &shape, dtype);
    }
}

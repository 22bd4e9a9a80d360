//! Primitives that read and write at positions that are data.

use super::At;
use tessera_base::DType;
use tessera_ops::map::MapOp;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Build, Id, expand};

pub fn dynamic_slice(at: &mut At) -> Vec<Option<Id>> {
    let zeros = at.zeros(at.x[0]);
    let operands = [&[zeros, at.c], &at.x[1..]].concat();
    let mut out = vec![None; at.x.len()];
    out[0] = Some(at.like(at.x[0], Prim::DynamicUpdate, &operands));
    out
}

pub fn dynamic_update(at: &mut At) -> Vec<Option<Id>> {
    let mut out = vec![None; at.x.len()];
    if at.needed[0] {
        let zeros = at.zeros(at.x[1]);
        let operands = [&[at.c, zeros], &at.x[2..]].concat();
        out[0] = Some(at.like(at.x[0], Prim::DynamicUpdate, &operands));
    }
    if at.needed[1] {
        let sizes = at.shape(at.x[1]);
        let operands = [&[at.c], &at.x[2..]].concat();
        out[1] = Some(at.like(at.x[1], Prim::DynamicSlice { sizes }, &operands));
    }
    out
}

/// Rows are added back in the order of their positions in the index.
pub fn take(at: &mut At, axis: usize) -> Vec<Option<Id>> {
    let (shape, index) = (at.shape(at.x[0]), at.x[1]);
    let (rank, taken) = (shape.len(), at.shape(index).len());
    // The dims of the index first, the axis before the others.
    let perm: Vec<usize> = (axis..axis + taken).chain(0..axis).chain(axis + taken..rank - 1 + taken).collect();
    let values = expand::transpose(at.w, at.c, &perm);
    let order: Vec<usize> = [axis].into_iter().chain((0..rank).filter(|&d| d != axis)).collect();
    let front: Vec<u64> = order.iter().map(|&d| shape[d]).collect();
    let dtype = at.dtype(at.c);
    let zeros = at.zeros_of(&front, dtype);
    let sums = at.w.push(Prim::Scatter { add: true }, &[zeros, values, index], front, dtype);
    let mut back = vec![0; rank];
    for (i, &d) in order.iter().enumerate() {
        back[d] = i;
    }
    vec![Some(expand::transpose(at.w, sums, &back)), None]
}

pub fn gather(at: &mut At) -> Vec<Option<Id>> {
    let zeros = at.zeros(at.x[0]);
    let operands = [&[zeros, at.c], &at.x[1..]].concat();
    let mut out = vec![None; at.x.len()];
    out[0] = Some(at.like(at.x[0], Prim::Scatter { add: true }, &operands));
    out
}

/// Operands: base, values, indices….
pub fn scatter(at: &mut At, add: bool) -> Vec<Option<Id>> {
    let mut out = vec![None; at.x.len()];
    let index = at.x[2..].to_vec();
    if at.needed[0] {
        out[0] = Some(if add {
            at.c
        } else {
            let zeros = at.zeros(at.x[1]);
            let operands = [&[at.c, zeros], &index[..]].concat();
            at.like(at.x[0], Prim::Scatter { add: false }, &operands)
        });
    }
    if at.needed[1] {
        let operands = [&[at.c], &index[..]].concat();
        let picked = at.like(at.x[1], Prim::Gather, &operands);
        out[1] = Some(if add { picked } else { only_last(at, picked, &index) });
    }
    out
}

/// Of the values written to one place only the last has an influence: zeros for the others.
fn only_last(at: &mut At, picked: Id, index: &[Id]) -> Id {
    let Some(&first) = index.first() else { return picked };
    let (base, positions) = (at.shape(at.x[0]), at.shape(first));
    let places = base[..index.len()].to_vec();
    let count: u64 = positions.iter().product();
    let numbers = expand::iota(at.w, &[count], 0);
    let numbers = expand::reshape(at.w, numbers, &positions);
    let zeros = at.zeros_of(&places, DType::I64);
    let operands = [&[zeros, numbers], index].concat();
    let winners = at.w.push(Prim::Scatter { add: false }, &operands, places, DType::I64);
    let operands = [&[winners], index].concat();
    let winner = at.w.push(Prim::Gather, &operands, positions.clone(), DType::I64);
    let last = expand::map(at.w, MapOp::eq, &[winner, numbers]);
    let shape = at.shape(picked);
    let last = expand::broadcast_dims(at.w, last, &shape, (0..positions.len()).collect());
    let zero = at.zeros(picked);
    expand::select(at.w, last, picked, zero)
}

pub fn take_along(at: &mut At, axis: usize) -> Vec<Option<Id>> {
    let zeros = at.zeros(at.x[0]);
    let sums = at.like(at.x[0], Prim::ScatterAddAlong { axis }, &[zeros, at.x[1], at.c]);
    vec![Some(sums), None]
}

/// Operands: base, index, source.
pub fn scatter_add_along(at: &mut At, axis: usize) -> Vec<Option<Id>> {
    let source = at.needed[2].then(|| {
        let (shape, dtype) = (at.shape(at.x[2]), at.dtype(at.c));
        at.w.push(Prim::TakeAlong { axis }, &[at.c, at.x[1]], shape, dtype)
    });
    vec![Some(at.c), None, source]
}

/// Each element goes back to where it was.
pub fn sort(at: &mut At, axis: usize, descending: bool) -> Vec<Option<Id>> {
    let shape = at.shape(at.x[0]);
    let order = at.w.push(Prim::ArgSort { axis, descending }, &[at.x[0]], shape, DType::I64);
    let zeros = at.zeros(at.x[0]);
    vec![Some(at.like(at.x[0], Prim::ScatterAddAlong { axis }, &[zeros, order, at.c]))]
}

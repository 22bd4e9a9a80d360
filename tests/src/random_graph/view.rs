//! What moves elements.

use super::{Builder, elems};
use crate::random::Random;
use tessera_ir::graph::NodeId;
use tessera_ops::prim::Prim;

/// Any earlier node, complex ones too.
fn any(b: &mut Builder) -> NodeId {
    match b.find(|_| true) {
        Some(x) => x,
        None => b.operand(),
    }
}

/// New dims, repeated dims, and now and then dims in another order.
pub fn broadcast(b: &mut Builder) {
    let x = any(b);
    let ty = b.ty(x);
    let rank = ty.shape.len() + b.random.pick(&[0, 1, 1, 2]);
    let mut dims: Vec<usize> = (0..rank).collect();
    b.random.shuffle(&mut dims);
    dims.truncate(ty.shape.len());
    if !b.random.once_in(5) {
        dims.sort();
    }
    let mut shape: Vec<u64> = (0..rank).map(|_| b.random.pick(&[1, 2, 3, 5, 16, 17])).collect();
    for (&dim, &n) in dims.iter().zip(&ty.shape) {
        if n != 1 || b.random.once_in(2) {
            shape[dim] = n;
        }
    }
    if b.affords(&shape) {
        b.push(Prim::Broadcast { dims }, &[x], &shape, ty.dtype);
    }
}

/// A shape of `n` elements.
pub fn shape_of(random: &mut Random, n: u64) -> Vec<u64> {
    if n == 0 {
        let mut shape = vec![random.pick(&[1, 2, 3]), 0, random.pick(&[1, 5])];
        shape.truncate(2 + random.below(2));
        random.shuffle(&mut shape);
        return if shape.contains(&0) { shape } else { vec![0] };
    }
    let mut shape = vec![];
    let mut rest = n;
    while rest > 1 && shape.len() < 3 {
        let divisors: Vec<u64> = (2..=rest.min(128)).filter(|d| rest.is_multiple_of(*d)).collect();
        if divisors.is_empty() || random.once_in(3) {
            break;
        }
        let d = random.pick(&divisors);
        shape.push(d);
        rest /= d;
    }
    if rest > 1 {
        shape.push(rest);
    }
    if random.once_in(3) {
        shape.push(1);
    }
    random.shuffle(&mut shape);
    shape
}

pub fn reshape(b: &mut Builder) {
    let x = any(b);
    let ty = b.ty(x);
    let shape = shape_of(&mut b.random, elems(&ty.shape) as u64);
    b.push(Prim::Reshape, &[x], &shape, ty.dtype);
}

pub fn transpose(b: &mut Builder) {
    let x = match b.find(|t| t.shape.len() >= 2) {
        Some(x) => x,
        None => b.ranked(2),
    };
    let ty = b.ty(x);
    let mut perm: Vec<usize> = (0..ty.shape.len()).collect();
    b.random.shuffle(&mut perm);
    let shape: Vec<u64> = perm.iter().map(|&p| ty.shape[p]).collect();
    b.push(Prim::Transpose { perm }, &[x], &shape, ty.dtype);
}

/// The positions along a dim of a new tensor in another order, or some of them several times.
pub fn rows(b: &mut Builder) -> NodeId {
    let rank = 1 + b.random.below(3);
    let x = b.ranked(rank);
    let ty = b.ty(x);
    let axis = b.random.below(ty.shape.len());
    let n = ty.shape[axis];
    let mut from: Vec<u64> = (0..n).collect();
    match b.random.below(3) {
        0 => b.random.shuffle(&mut from),
        1 => from.rotate_left(n as usize / 3),
        _ => from = (0..n).map(|_| b.random.below(n as usize) as u64).collect(),
    }
    b.push(Prim::Rows { axis, from }, &[x], &ty.shape, ty.dtype)
}

/// The same as a step among others.
pub fn in_other_rows(b: &mut Builder) {
    rows(b);
}

/// Starts, steps and sizes inside `shape`.
fn places(random: &mut Random, shape: &[u64], steps: bool) -> (Vec<i64>, Vec<i64>, Vec<u64>) {
    let (mut start, mut step, mut sizes) = (vec![], vec![], vec![]);
    for &n in shape {
        let p = if steps { random.pick(&[1, 1, 1, 2, 3, -1, -2]) } else { 1i64 };
        if n == 0 || random.once_in(15) {
            start.push(0);
            step.push(p);
            sizes.push(0);
            continue;
        }
        let whole = random.once_in(3);
        let s = match (whole, p > 0) {
            (true, true) => 0,
            (true, false) => n as i64 - 1,
            _ => random.below(n as usize) as i64,
        };
        let most = if p > 0 { (n as i64 - s + p - 1) / p } else { s / -p + 1 };
        start.push(s);
        step.push(p);
        sizes.push(if whole { most as u64 } else { 1 + random.below(most as usize) as u64 });
    }
    (start, step, sizes)
}

pub fn slice(b: &mut Builder) {
    let x = any(b);
    let ty = b.ty(x);
    let (start, step, shape) = places(&mut b.random, &ty.shape, true);
    b.push(Prim::Slice { start, step }, &[x], &shape, ty.dtype);
}

/// Windows over one to three of the last dims.
pub fn windows(b: &mut Builder) {
    let x = match b.find(|t| !t.shape.is_empty()) {
        Some(x) => x,
        None => b.ranked(1),
    };
    let n = 1 + b.random.below(b.ty(x).shape.len().min(3));
    windows_of(b, x, n);
}

/// Windows over the last `n` dims of `x`; nothing where they would be too many elements.
pub fn windows_of(b: &mut Builder, x: NodeId, n: usize) -> Option<NodeId> {
    let ty = b.ty(x);
    let lead = ty.shape.len() - n;
    let (mut stride, mut dilation) = (vec![], vec![]);
    let mut shape = ty.shape[..lead].to_vec();
    let mut sizes = vec![];
    for &d in &ty.shape[lead..] {
        let (s, e) = (b.random.pick(&[1, 1, 1, 2, 3]), b.random.pick(&[1, 1, 1, 2]));
        let k = b.random.pick(&[1, 2, 3, 3, 5, 7]).min(d.div_ceil(e));
        let most = if k == 0 { 0 } else { (d - (k - 1) * e - 1) / s + 1 };
        shape.push(if b.random.once_in(4) { b.random.below(most as usize + 1) as u64 } else { most });
        sizes.push(k);
        stride.push(s);
        dilation.push(e);
    }
    shape.extend(sizes);
    b.affords(&shape).then(|| b.push(Prim::Windows { stride, dilation }, &[x], &shape, ty.dtype))
}

pub fn update_slice(b: &mut Builder) {
    let x = any(b);
    let ty = b.ty(x);
    let steps = b.random.once_in(2);
    let (start, step, shape) = places(&mut b.random, &ty.shape, steps);
    let y = b.like(&shape, ty.dtype);
    b.push(Prim::UpdateSlice { start, step }, &[x, y], &ty.shape, ty.dtype);
}

pub fn pad(b: &mut Builder) {
    let x = any(b);
    let ty = b.ty(x);
    let low: Vec<u64> = ty.shape.iter().map(|_| b.random.pick(&[0, 0, 1, 2, 16])).collect();
    let high: Vec<u64> = ty.shape.iter().map(|_| b.random.pick(&[0, 0, 1, 3])).collect();
    let shape: Vec<u64> = ty.shape.iter().zip(low.iter().zip(&high)).map(|(n, (l, h))| n + l + h).collect();
    if !b.affords(&shape) {
        return;
    }
    let fill = match b.find(|t| t.shape.is_empty() && t.dtype == ty.dtype) {
        Some(fill) if b.random.once_in(2) => fill,
        _ => b.scalar(ty.dtype),
    };
    b.push(Prim::Pad { low, high }, &[x, fill], &shape, ty.dtype);
}

pub fn concat(b: &mut Builder) {
    let Some(x) = b.find(|t| !t.shape.is_empty()) else { return };
    let ty = b.ty(x);
    let axis = b.random.below(ty.shape.len());
    let mut operands = vec![x];
    let mut shape = ty.shape.clone();
    for _ in 0..b.random.below(4) {
        let mut other = ty.shape.clone();
        if b.random.once_in(2) {
            other[axis] = b.random.pick(&[0, 1, 2, 3, 16]);
        }
        let mut whole = shape.clone();
        whole[axis] += other[axis];
        if !b.affords(&whole) {
            break;
        }
        shape = whole;
        let y = b.like(&other, ty.dtype);
        operands.push(y);
    }
    b.random.shuffle(&mut operands);
    b.push(Prim::Concat { axis }, &operands, &shape, ty.dtype);
}

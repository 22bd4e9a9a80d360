//! Groups of operations as composite operators expand: what fusion is made for.

use super::{Builder, matmul};
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction, Scalar, Steps};

/// A float tensor of rank 1 or more.
fn rows(b: &mut Builder) -> NodeId {
    let x = match b.find(|t| t.dtype.is_float() && !t.shape.is_empty()) {
        Some(x) => x,
        None => b.ranked(1),
    };
    let ty = b.ty(x);
    if ty.dtype.is_float() { x } else { b.cast_to(x, DType::F32) }
}

/// A reduction over `axes` and back, by a reshape or by a broadcast of the kept dims.
fn over(b: &mut Builder, kind: Reduction, x: NodeId, axes: &[usize]) -> NodeId {
    let ty = b.ty(x);
    let rank = ty.shape.len();
    let kept: Vec<usize> = (0..rank).filter(|i| !axes.contains(i)).collect();
    let small: Vec<u64> = kept.iter().map(|&i| ty.shape[i]).collect();
    let r = b.push(Prim::Reduce { kind, axes: axes.to_vec() }, &[x], &small, ty.dtype);
    if b.random.once_in(2) {
        return b.push(Prim::Broadcast { dims: kept }, &[r], &ty.shape, ty.dtype);
    }
    let ones: Vec<u64> = (0..rank).map(|i| if axes.contains(&i) { 1 } else { ty.shape[i] }).collect();
    let r = b.push(Prim::Reshape, &[r], &ones, ty.dtype);
    b.push(Prim::Broadcast { dims: (0..rank).collect() }, &[r], &ty.shape, ty.dtype)
}

fn trailing(b: &mut Builder, rank: usize) -> Vec<usize> {
    if b.random.once_in(5) {
        vec![b.random.below(rank)]
    } else {
        (rank - 1 - b.random.below(rank.min(2))..rank).collect()
    }
}

fn map(b: &mut Builder, op: MapOp, operands: &[NodeId]) -> NodeId {
    let dtype = b.ty(operands[0]).dtype;
    map_to(b, op, operands, dtype)
}

fn map_to(b: &mut Builder, op: MapOp, operands: &[NodeId], dtype: DType) -> NodeId {
    let shape = b.ty(operands[0]).shape;
    b.push(Prim::Map(op), operands, &shape, dtype)
}

pub fn softmax(b: &mut Builder) {
    let x = rows(b);
    let rank = b.ty(x).shape.len();
    let axes = trailing(b, rank);
    let m = over(b, Reduction::Max, x, &axes);
    let d = map(b, MapOp::sub, &[x, m]);
    let e = map(b, MapOp::exp, &[d]);
    let s = over(b, Reduction::Sum, e, &axes);
    map(b, MapOp::div, &[e, s]);
}

/// Layer norm without its parameters.
pub fn norm(b: &mut Builder) {
    let x = rows(b);
    let ty = b.ty(x);
    let axes = trailing(b, ty.shape.len());
    let n = axes.iter().map(|&a| ty.shape[a]).product::<u64>().max(1);
    let scale = b.push(Prim::Full { value: Scalar::F(1.0 / n as f64) }, &[], &ty.shape, ty.dtype);
    let s = over(b, Reduction::Sum, x, &axes);
    let mean = map(b, MapOp::mul, &[s, scale]);
    let d = map(b, MapOp::sub, &[x, mean]);
    let q = map(b, MapOp::square, &[d]);
    let s = over(b, Reduction::Sum, q, &axes);
    let v = map(b, MapOp::mul, &[s, scale]);
    let r = map(b, MapOp::rsqrt, &[v]);
    map(b, MapOp::mul, &[d, r]);
}

/// A product, a bias, an activation.
pub fn layer(b: &mut Builder) {
    let Some(x) = b.find(|t| t.dtype.is_float() && t.shape.len() >= 2) else { return };
    let ty = b.ty(x);
    let rank = ty.shape.len();
    let (batch, m, k) = (&ty.shape[..rank - 2], ty.shape[rank - 2], ty.shape[rank - 1]);
    let n = b.random.pick(&[1, 3, 8, 15, 16, 17, 33]);
    let shape = [batch, &[m, n]].concat();
    if !b.affords(&shape)
        || !b.affords(&[batch, &[k, n]].concat())
        || b.graph.ty(x).elems().unwrap_or(0) * n > b.scale.steps()
    {
        return;
    }
    let w = matmul::matrix(b, batch, k, n, ty.dtype);
    let accum = ty.dtype.accumulator();
    let y = b.push(Prim::dot(accum, Steps::All), &[x, w], &shape, ty.dtype);
    let bias = b.input(&[n], ty.dtype);
    let bias = b.push(Prim::Broadcast { dims: vec![rank - 1] }, &[bias], &shape, ty.dtype);
    let y = map(b, MapOp::add, &[y, bias]);
    let activation = b.random.pick(&[MapOp::relu, MapOp::relu, MapOp::sigmoid, MapOp::square]);
    map(b, activation, &[y]);
}

/// A product, reductions of its rows with elementwise steps, and a product of what becomes of
/// them: attention, or what resembles it.
pub fn attention(b: &mut Builder) {
    let sizes = [1, 2, 3, 7, 8, 13, 16, 17, 29, 33];
    let [s, t, d, e] = [0; 4].map(|_| b.random.pick(&sizes));
    let t = if b.random.once_in(5) { b.random.pick(&[64, 65, 130]) } else { t };
    let batch: Vec<u64> = (0..b.random.pick(&[0, 0, 1, 2])).map(|_| b.random.pick(&[1, 2, 3])).collect();
    let of = |m: u64, n: u64| [&batch[..], &[m, n]].concat();
    let steps = of(s, t).iter().product::<u64>() * (d + e);
    if steps > b.scale.steps() || ![of(s, t), of(t, d), of(t, e), of(s, e)].iter().all(|s| b.affords(s)) {
        return;
    }
    let dtype = b.random.pick(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::Bf16]);
    let accum = dtype.accumulator();
    let (q, k) = (matmul::matrix(b, &batch, s, d, dtype), matmul::matrix(b, &batch, d, t, dtype));
    let to = b.random.pick(&[dtype, accum]);
    let mut x = b.push(Prim::dot(accum, Steps::All), &[q, k], &of(s, t), to);
    if b.random.once_in(2) {
        let bias = b.like(&of(s, t), to);
        x = map(b, MapOp::add, &[x, bias]);
    }
    if b.random.once_in(3) {
        let (keep, other) = (b.like(&of(s, t), DType::Bool), b.full(&of(s, t), to));
        x = map_to(b, MapOp::r#where, &[keep, x, other], to);
    }
    let last = [batch.len() + 1];
    let kind = b.random.pick(&[Reduction::Max, Reduction::Sum]);
    let m = over(b, kind, x, &last);
    let shifted = map(b, MapOp::sub, &[x, m]);
    let raised = b.random.pick(&[MapOp::exp, MapOp::exp, MapOp::square, MapOp::relu]);
    let w = map(b, raised, &[shifted]);
    let sum = over(b, Reduction::Sum, w, &last);
    let p = if b.random.once_in(2) { map(b, MapOp::div, &[w, sum]) } else { w };
    let p = b.cast_to(p, dtype);
    let v = matmul::matrix(b, &batch, t, e, dtype);
    let steps = b.random.pick(&[Steps::All, Steps::All, Steps::To, Steps::From]);
    let y = b.push(Prim::dot(accum, steps), &[p, v], &of(s, e), dtype);
    if b.random.once_in(2) {
        b.cast_to(y, accum);
    }
}

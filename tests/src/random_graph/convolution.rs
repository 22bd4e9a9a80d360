//! Convolutions and pooling as their operators expand: padding, windows, a product or a reduction.

use super::{Builder, elems, view};
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction, Steps};

/// An input `[n, channels, d…]` with padding, and the windows over its one to three last dims:
/// `[n, channels, o…, k…]`.
fn padded_windows(b: &mut Builder, channels: u64, dtype: DType) -> Option<(NodeId, usize)> {
    let dims = b.random.pick(&[1, 2, 2, 2, 3]);
    let mut shape = vec![b.random.pick(&[1, 1, 2, 3]), channels];
    for _ in 0..dims {
        shape.push(b.random.pick(&[1, 3, 5, 7, 8, 14, 16, 17, 20, 33]));
    }
    if !b.affords(&shape) {
        return None;
    }
    let mut x = b.like(&shape, dtype);
    if b.random.once_in(2) {
        let low: Vec<u64> = (0..shape.len()).map(|i| if i < 2 { 0 } else { b.random.pick(&[0, 1, 1, 2, 3]) }).collect();
        let high: Vec<u64> = low.iter().map(|l| if *l > 0 && b.random.once_in(4) { l - 1 } else { *l }).collect();
        let padded: Vec<u64> = shape.iter().zip(low.iter().zip(&high)).map(|(n, (l, h))| n + l + h).collect();
        let fill = b.scalar(dtype);
        x = b.push(Prim::Pad { low, high }, &[x, fill], &padded, dtype);
    }
    view::windows_of(b, x, dims).map(|w| (w, dims))
}

/// Weights `[groups, out, depth]` times windows `[n, groups, depth, positions]`.
pub fn convolution(b: &mut Builder) {
    let groups = b.random.pick(&[1, 1, 1, 2, 3]);
    let (inside, out) = (b.random.pick(&[1, 2, 3, 4, 8]), b.random.pick(&[1, 2, 5, 8, 15, 16, 17]));
    let dtype = b.random.pick(&[DType::F32, DType::F32, DType::F32, DType::Bf16, DType::F64, DType::I8]);
    let Some((w, dims)) = padded_windows(b, groups * inside, dtype) else { return };
    let shape = b.ty(w).shape;
    let n = shape[0];
    let (o, k) = shape[2..].split_at(dims);
    let (places, depth) = (elems(o) as u64, inside * elems(k) as u64);
    let product = [n, groups, out, places];
    if !b.affords(&product) || product.iter().product::<u64>() * depth > b.scale.steps() {
        return;
    }
    // [n, c, o…, k…] -> [n, groups, c, k…, o…] -> [n, groups, depth, places]
    let split = [&[n, groups, inside], &shape[2..]].concat();
    let x = b.push(Prim::Reshape, &[w], &split, dtype);
    let perm: Vec<usize> = (0..3).chain(3 + dims..3 + 2 * dims).chain(3..3 + dims).collect();
    let turned: Vec<u64> = perm.iter().map(|&p| split[p]).collect();
    let x = b.push(Prim::Transpose { perm }, &[x], &turned, dtype);
    let x = b.push(Prim::Reshape, &[x], &[n, groups, depth, places], dtype);
    let weights = b.like(&[groups, out, depth], dtype);
    let weights = b.push(Prim::Broadcast { dims: vec![1, 2, 3] }, &[weights], &[n, groups, out, depth], dtype);
    let accum = dtype.accumulator();
    let y = b.push(Prim::dot(accum, Steps::All), &[weights, x], &product, dtype);
    let whole = [&[n, groups * out], o].concat();
    let y = b.push(Prim::Reshape, &[y], &whole, dtype);
    if b.random.once_in(2) {
        let bias = b.like(&[groups * out], dtype);
        let bias = b.push(Prim::Broadcast { dims: vec![1] }, &[bias], &whole, dtype);
        let y = b.push(Prim::Map(MapOp::add), &[y, bias], &whole, dtype);
        b.push(Prim::Map(MapOp::relu), &[y], &whole, dtype);
    }
}

/// The reduction of each window.
pub fn pool(b: &mut Builder) {
    let dtype = b.random.pick(&[DType::F32, DType::F32, DType::Bf16, DType::F64, DType::I32, DType::U8]);
    let channels = b.random.pick(&[1, 2, 3, 16]);
    let Some((w, dims)) = padded_windows(b, channels, dtype) else { return };
    let shape = b.ty(w).shape;
    let kind = b.random.pick(&[Reduction::Max, Reduction::Min, Reduction::Sum, Reduction::Prod]);
    let to = if matches!(kind, Reduction::Max | Reduction::Min) { dtype } else { dtype.accumulator() };
    let axes: Vec<usize> = (2 + dims..2 + 2 * dims).collect();
    b.push(Prim::Reduce { kind, axes }, &[w], &shape[..2 + dims], to);
}

//! Matrix products.

use super::{Builder, Scale};
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::prim::fold::DOT_LEAF;
use tessera_ops::prim::{Order, Prim, Steps};

fn size(b: &mut Builder) -> u64 {
    match b.random.below(40) {
        0 => 0,
        _ if b.scale == Scale::Large => b.random.pick(&[1, 64, 100, 129, 257, 300]),
        1 => b.random.pick(&[64, 65, 100]),
        _ => b.random.pick(&[1, 1, 2, 3, 4, 7, 13, 14, 15, 16, 17, 28, 29, 31, 32, 33]),
    }
}

/// A `[batch…, rows, columns]` operand, as it is or as a transpose.
pub fn matrix(b: &mut Builder, batch: &[u64], rows: u64, columns: u64, dtype: DType) -> NodeId {
    let rank = batch.len() + 2;
    let shape = [batch, &[rows, columns]].concat();
    if !b.random.once_in(3) {
        return b.like(&shape, dtype);
    }
    // All dims in another order, mostly the last two.
    let mut perm: Vec<usize> = (0..rank).collect();
    if b.random.once_in(4) {
        b.random.shuffle(&mut perm);
    } else {
        perm.swap(rank - 2, rank - 1);
    }
    let mut source = vec![0; rank];
    for (i, &p) in perm.iter().enumerate() {
        source[p] = shape[i];
    }
    let x = b.like(&source, dtype);
    b.push(Prim::Transpose { perm }, &[x], &shape, dtype)
}

/// Accumulators of products of a type.
pub fn accumulators(dtype: DType) -> &'static [DType] {
    match dtype {
        DType::F64 => &[DType::F64],
        DType::C64 => &[DType::C64],
        d if d.is_float() => &[DType::F32, DType::F32, DType::F32, DType::F64],
        _ => &[DType::I64, DType::I64, DType::I32],
    }
}

pub fn dot(b: &mut Builder) {
    let (mut batch, m, mut k, n) = (vec![], size(b), size(b), size(b));
    for _ in 0..b.random.pick(&[0, 0, 0, 1, 1, 2]) {
        batch.push(b.random.pick(&[1, 2, 3]));
    }
    if b.random.once_in(12) {
        k = b.random.pick(&[257, 1030, 2500]);
    }
    let mut dtype = b.dtype();
    let mut left = None;
    // Often the left operand is something that is there.
    if b.random.once_in(2)
        && let Some(x) = b.find(|t| t.shape.len() >= 2)
    {
        let ty = b.ty(x);
        let rank = ty.shape.len();
        (batch, k, dtype) = (ty.shape[..rank - 2].to_vec(), ty.shape[rank - 1], ty.dtype);
        left = Some((x, ty.shape[rank - 2]));
    }
    let m = left.map_or(m, |l| l.1);
    let shape = [&batch[..], &[m, n]].concat();
    let sides = [[&batch[..], &[m, k]].concat(), [&batch[..], &[k, n]].concat()];
    if !sides.iter().all(|s| b.affords(s)) || !b.affords(&shape) {
        return;
    }
    // Products cost m·k·n, which elements do not count.
    let steps = shape.iter().product::<u64>().saturating_mul(k);
    if steps > b.scale.steps() {
        return;
    }
    b.budget = b.budget.saturating_sub(steps / 20);
    let x = match left {
        Some((x, _)) => x,
        None => matrix(b, &batch, m, k, dtype),
    };
    let y = matrix(b, &batch, k, n, dtype);
    let accum = b.random.pick(accumulators(dtype));
    let to = match b.random.below(6) {
        _ if dtype == DType::C64 => dtype,
        0..=3 => dtype,
        4 => accum,
        _ => b.real(),
    };
    let steps = b.random.pick(&[[Steps::All; 6].as_slice(), &[Steps::To, Steps::From]].concat());
    let paired = dtype == DType::Bf16 && accum == DType::F32 && k.is_multiple_of(2) && steps == Steps::All;
    let order = if paired && b.random.once_in(2) { tessera_schedule::host().bf16 } else { Order::Chain };
    let leaf = b.random.pick(&[DOT_LEAF, DOT_LEAF, 2, 4, 6, 16, 48]);
    b.push(Prim::Dot { accum, steps, order, leaf }, &[x, y], &shape, to);
}

//! Reductions, positions of extremes, running sums.

use super::Builder;
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::prim::{Prim, Reduction};

/// Now and then a long axis, so that sums have several leaves.
fn operand(b: &mut Builder) -> NodeId {
    if b.random.once_in(6) {
        let long = b.random.pick(&[257, 4095, 4096, 4097, 9000]);
        let other = b.random.pick(&[1, 2, 3]);
        let shape = match b.random.below(3) {
            0 => vec![long],
            1 => vec![other, long],
            _ => vec![long, other],
        };
        if b.affords(&shape) {
            let dtype = b.real();
            return b.input(&shape, dtype);
        }
    }
    b.ranked(1)
}

fn kind_for(b: &mut Builder, dtype: DType) -> Reduction {
    use Reduction::*;
    match dtype {
        DType::Bool => b.random.pick(&[Any, All, Any, All, Sum, Max, Min, Prod]),
        DType::C64 => b.random.pick(&[Sum, Sum, Prod]),
        _ => b.random.pick(&[Sum, Sum, Sum, Prod, Max, Max, Min]),
    }
}

/// The type of the result: mostly that of the operand or its accumulator.
fn result(b: &mut Builder, kind: Reduction, dtype: DType) -> DType {
    match kind {
        Reduction::Any | Reduction::All => DType::Bool,
        _ if dtype == DType::C64 => DType::C64,
        _ => match b.random.below(10) {
            0..=5 => dtype,
            6..=8 => dtype.accumulator(),
            _ => b.real(),
        },
    }
}

pub fn reduce(b: &mut Builder) {
    let x = match b.find(|t| t.dtype == DType::C64) {
        Some(x) if b.random.once_in(2) => x,
        _ => operand(b),
    };
    let ty = b.ty(x);
    let kind = kind_for(b, ty.dtype);
    let to = result(b, kind, ty.dtype);
    let rank = ty.shape.len();
    let axes = match b.random.below(5) {
        0 if rank > 0 => vec![rank - 1],
        1 => (0..rank).collect(),
        2 if rank > 0 => vec![b.random.below(rank)],
        _ => {
            let mut axes: Vec<usize> = (0..rank).filter(|_| b.random.once_in(2)).collect();
            if b.random.once_in(4) {
                b.random.shuffle(&mut axes);
            }
            axes
        }
    };
    if axes.is_empty() && !b.random.once_in(4) {
        return;
    }
    let shape: Vec<u64> = (0..rank).filter(|i| !axes.contains(i)).map(|i| ty.shape[i]).collect();
    b.push(Prim::Reduce { kind, axes }, &[x], &shape, to);
}

pub fn arg_reduce(b: &mut Builder) {
    let x = operand(b);
    let ty = b.ty(x);
    let axis = b.random.below(ty.shape.len());
    if ty.shape[axis] == 0 {
        return;
    }
    let mut shape = ty.shape.clone();
    shape.remove(axis);
    let largest = b.random.once_in(2);
    let to = b.random.pick(&[DType::I64, DType::I64, DType::I32, DType::U8]);
    b.push(Prim::ArgReduce { largest, axis }, &[x], &shape, to);
}

pub fn cumulate(b: &mut Builder) {
    let x = operand(b);
    let ty = b.ty(x);
    let kind = kind_for(b, ty.dtype);
    let to = result(b, kind, ty.dtype);
    let axis = b.random.below(ty.shape.len());
    b.push(Prim::Cumulate { kind, axis }, &[x], &ty.shape, to);
}

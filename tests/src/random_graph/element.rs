//! Elementwise operations and what comes from nothing.

use super::Builder;
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::map::{Gives, MapOp, kind_of};
use tessera_ops::prim::{Prim, Scalar};

/// Any function of the table; expensive ones are rarer, their kernels take long to compile.
pub fn map(b: &mut Builder) {
    let mut op = b.random.pick(MapOp::ALL);
    if op.def().cost > 4 && !b.random.once_in(4) {
        op = b.random.pick(MapOp::ALL);
    }
    // Hundreds of instructions: fewer still.
    while op.def().cost > 150 && !b.random.once_in(3) {
        op = b.random.pick(MapOp::ALL);
    }
    apply(b, op);
}

/// `op` on an earlier node and what fits it.
pub fn apply(b: &mut Builder, op: MapOp) -> NodeId {
    let accepts = move |d: DType| kind_of(d).is_some_and(|k| op.def().takes.accepts(k));
    let x = match b.find(|t| accepts(t.dtype)) {
        Some(x) => x,
        None => {
            let dtype = [DType::F32, DType::I32, DType::Bool].into_iter().find(|&d| accepts(d)).unwrap_or(DType::F32);
            let x = b.operand();
            b.cast_to(x, dtype)
        }
    };
    let ty = b.ty(x);
    let mut operands: Vec<NodeId> =
        (0..op.def().arity)
            .map(|i| {
                if op == MapOp::r#where && i == 0 {
                    b.like(&ty.shape, DType::Bool)
                } else {
                    b.like(&ty.shape, ty.dtype)
                }
            })
            .collect();
    let at = if op == MapOp::r#where { 1 + b.random.below(2) } else { b.random.below(operands.len()) };
    operands[at] = x;
    if op == MapOp::copysign {
        operands[1] = without_nan(b, operands[1]);
    }
    let dtype = if op.def().gives == Gives::Bool { DType::Bool } else { ty.dtype };
    b.push(Prim::Map(op), &operands, &ty.shape, dtype)
}

/// The sign of a NaN is the machine's business, so nothing may make it visible.
fn without_nan(b: &mut Builder, x: NodeId) -> NodeId {
    let ty = b.ty(x);
    let nan = b.push(Prim::Map(MapOp::isnan), &[x], &ty.shape, DType::Bool);
    let one = b.push(Prim::Full { value: Scalar::F(1.0) }, &[], &ty.shape, ty.dtype);
    b.push(Prim::Map(MapOp::r#where), &[nan, one, x], &ty.shape, ty.dtype)
}

pub fn cast(b: &mut Builder) {
    let x = match b.find(|t| t.dtype == DType::C64) {
        Some(x) if b.random.once_in(3) => x,
        _ => b.operand(),
    };
    let (ty, to) = (b.ty(x), b.dtype());
    b.push(Prim::Cast, &[x], &ty.shape, to);
}

/// An input, a constant, a count, a literal.
pub fn source(b: &mut Builder) {
    let (shape, dtype) = (b.shape(), b.dtype());
    if !b.affords(&shape) {
        return;
    }
    if b.random.once_in(2) {
        b.made(&shape, dtype);
    } else {
        b.input(&shape, dtype);
    }
}

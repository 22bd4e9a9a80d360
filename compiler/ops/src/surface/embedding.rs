//! `embedding`, `take` and `one_hot`: rows by position.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred, Operand};
use super::*;
use crate::map::MapOp;
use crate::prim::Prim;

pub const EMBEDDING: Row =
    Row::new("embedding", &[req("ids", ParamKind::Tensor), req("table", ParamKind::Tensor)], infer_embedding, lower_embedding)
        .known_as(&["embed", "lookup"])
        .signature("n, v d -> n d")
        .doc(
            "The rows of `table` at the positions `ids`, ints of any shape.\n\n\
             A position out of range is an error at run time; negative positions count from the end.\n\n\
             ```tessera\nop.embedding(tokens, table)    # Tensor[B, T, i64], Tensor[V, D, f32] -> Tensor[B, T, D, f32]\n```",
        );

fn infer_embedding(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (ids, table) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    rule::indices(ids, 0).map_err(|e| {
        if table.dtype.is_some_and(DType::is_int) {
            e.help("the positions come first: `op.embedding(ids, table)`")
        } else {
            e
        }
    })?;
    rule::at_least_rank(table, 1, 1, "embedding")?;
    rule::one([&ids.shape[..], &table.shape[1..]].concat(), table.dtype)
}

/// The elements of `x` along `axis` at the positions of `index`, which replace the axis.
pub fn take(b: &mut dyn Build, x: Id, index: Id, axis: usize) -> Id {
    let index = expand::positions(b, index);
    let (from, at, dtype) = (b.shape(x), b.shape(index), b.dtype(x));
    let shape = [&from[..axis], &at, &from[axis + 1..]].concat();
    b.push(Prim::Take { axis }, &[x, index], shape, dtype)
}

fn lower_embedding(call: &mut Call) -> Lowered {
    let (ids, table) = (call.id(0)?, call.id(1)?);
    Ok(vec![take(call.b, table, ids, 0)])
}

pub const TAKE: Row = Row::new(
    "take",
    &[req("x", ParamKind::Tensor), req("indices", ParamKind::Operand), opt("axis", ParamKind::Axis, Default::None)],
    infer_take,
    lower_take,
)
.method()
.known_as(&["index_select"])
.doc(
    "The elements along an axis at the positions given, which replace the axis; without an axis, of the flattened tensor.\n\n\
     Positions are ints of any shape; negative ones count from the end. Out of range is an error at run time.\n\n\
     ```tessera\nop.take(x, op.array([0, 3]), axis=1)\n```",
);

fn infer_take(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (x, index) = (rule::tensor(args, 0)?, rule::operand(args, 1)?);
    match index {
        Operand::Tensor(t) => rule::indices(t, 1)?,
        Operand::Weak(Weak::Int) => {}
        Operand::Weak(_) => {
            return Err(OpError::new(Code::E0205, format!("positions must be ints, and this is a {}", index.label()))
                .arg(1, index.label()));
        }
    }
    if rule::absent(args, 2) {
        return rule::one(index.shape().to_vec(), x.dtype);
    }
    let axis = rule::axis(args, 2, x)?;
    rule::one([&x.shape[..axis], index.shape(), &x.shape[axis + 1..]].concat(), x.dtype)
}

fn lower_take(call: &mut Call) -> Lowered {
    let (t, mut x) = (call.ty(0)?, call.id(0)?);
    let shape: Vec<u64> =
        rule::operand(&call.sym, 1)?.shape().iter().filter_map(|s| s.as_const()).map(|n| n as u64).collect();
    let index = call.operand(1, &shape, DType::I64)?;
    let axis = if rule::absent(&call.sym, 2) {
        let count = call.b.shape(x).iter().product();
        x = expand::reshape(call.b, x, &[count]);
        0
    } else {
        rule::axis(&call.sym, 2, &t)?
    };
    Ok(vec![take(call.b, x, index, axis)])
}

pub const ONE_HOT: Row = Row::new(
    "one_hot",
    &[req("ids", ParamKind::Tensor), req("n", ParamKind::Int), opt("dtype", ParamKind::DType, Default::None)],
    infer_one_hot,
    lower_one_hot,
)
.known_as(&["onehot"])
.signature("b -> b n")
.doc(
    "1 at the position given along a new last axis of size `n`, 0 elsewhere; f32 by default.\n\n\
     A position out of range gives zeros.\n\n```tessera\nop.one_hot(op.array([0, 2]), 3)    # [[1. 0. 0.] [0. 0. 1.]]\n```",
);

fn infer_one_hot(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let ids = rule::tensor(args, 0)?;
    rule::indices(ids, 0)?;
    let n = rule::int(args, 1)?;
    if n.as_const().is_some_and(|v| v < 0) {
        return Err(rule::negative(n, 1));
    }
    let shape = [&ids.shape[..], std::slice::from_ref(n)].concat();
    rule::one(shape, Some(rule::dtype(args, 2)?.unwrap_or(DType::F32)))
}

fn lower_one_hot(call: &mut Call) -> Lowered {
    let ids = call.id(0)?;
    let shape = call.result().0;
    let b = &mut *call.b;
    let rank = shape.len();
    let ids = expand::positions(b, ids);
    let ids = expand::broadcast_dims(b, ids, &shape, (0..rank - 1).collect());
    let classes = expand::iota(b, &shape, rank - 1);
    Ok(vec![expand::map(b, MapOp::eq, &[ids, classes])])
}

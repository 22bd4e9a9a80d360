//! `zeros ones full empty` and their `_like` forms: constant tensors.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;

const SHAPED: &[Param] = &[req("shape", ParamKind::Shape), opt("dtype", ParamKind::DType, Default::None)];
const LIKE: &[Param] = &[req("x", ParamKind::Tensor), opt("dtype", ParamKind::DType, Default::None)];

pub const ZEROS: Row = Row::new("zeros", SHAPED, infer, |c| lower(c, 0))
    .elementwise()
    .doc("A tensor of zeros; f32 unless `dtype` says otherwise.\n\n```tessera\nop.zeros((B, D), dtype=bf16)\n```");

pub const ONES: Row = Row::new("ones", SHAPED, infer, |c| lower(c, 1))
    .elementwise()
    .doc("A tensor of ones; f32 unless `dtype` says otherwise.\n\n```tessera\nop.ones((3,))\n```");

pub const EMPTY: Row = Row::new("empty", SHAPED, infer, |c| lower(c, 0))
    .elementwise()
    .doc("A tensor to be overwritten. Its elements are 0, so that results never depend on old memory.");

pub const FULL: Row = Row::new(
    "full",
    &[req("shape", ParamKind::Shape), req("value", ParamKind::Operand), opt("dtype", ParamKind::DType, Default::None)],
    infer_full,
    |call| {
        let (shape, dtype) = call.result();
        Ok(vec![call.operand(1, &shape, dtype)?])
    },
)
.elementwise()
.known_as(&["fill"])
.doc(
    "A tensor whose elements are all `value`, a number or a tensor of rank 0.\n\n\
     Without `dtype` a float gives f32, an int i64, a bool bool.\n\n```tessera\nop.full((2, 2), 2.5)\n```",
);

pub const ZEROS_LIKE: Row = Row::new("zeros_like", LIKE, infer_like, |c| lower(c, 0))
    .elementwise()
    .doc("Zeros with the shape and dtype of `x`; `dtype` changes the latter.\n\n```tessera\nop.zeros_like(x)\n```");

pub const ONES_LIKE: Row = Row::new("ones_like", LIKE, infer_like, |c| lower(c, 1))
    .elementwise()
    .doc("Ones with the shape and dtype of `x`; `dtype` changes the latter.");

pub const EMPTY_LIKE: Row = Row::new("empty_like", LIKE, infer_like, |c| lower(c, 0))
    .elementwise()
    .doc("As `empty`, with the shape and dtype of `x`.");

pub const FULL_LIKE: Row = Row::new(
    "full_like",
    &[req("x", ParamKind::Tensor), req("value", ParamKind::Operand), opt("dtype", ParamKind::DType, Default::None)],
    |_, args, _| {
        let x = rule::tensor(args, 0)?;
        rule::number(args, 1)?;
        rule::one(x.shape.clone(), rule::dtype(args, 2)?.or(x.dtype))
    },
    |call| {
        let (shape, dtype) = call.result();
        Ok(vec![call.operand(1, &shape, dtype)?])
    },
)
.elementwise()
.doc("A tensor like `x` whose elements are all `value`.");

fn infer(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    rule::one(rule::shape(args, 0)?, Some(rule::dtype(args, 1)?.unwrap_or(DType::F32)))
}

fn infer_like(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::one(x.shape.clone(), rule::dtype(args, 1)?.or(x.dtype))
}

fn infer_full(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let shape = rule::shape(args, 0)?;
    let value = rule::number(args, 1)?;
    let natural = match value {
        rule::Operand::Tensor(t) => t.dtype,
        rule::Operand::Weak(w) => Some(rule::weak_dtype(w)),
    };
    rule::one(shape, rule::dtype(args, 2)?.or(natural))
}

fn lower(call: &mut Call, value: i64) -> Lowered {
    let (shape, dtype) = call.result();
    Ok(vec![expand::full(call.b, &shape, dtype, Scalar::I(value))])
}

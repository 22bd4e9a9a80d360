//! `where` and `clip`: elementwise choice.

use super::expand;
use super::row::{Call, Lowered, Row, meet, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::{MapOp, Takes};

pub const WHERE: Row = Row::new(
    "where",
    &[req("condition", ParamKind::Operand), req("x", ParamKind::Operand), req("y", ParamKind::Operand)],
    infer_where,
    lower_where,
)
.elementwise()
.known_as(&["select", "cond", "if_else"])
.doc(
    "Elements of `x` where the condition holds, of `y` elsewhere.\n\n\
     The three operands broadcast; `x` and `y` meet in one dtype, in which a Python scalar is weak. A condition that is \
     not bool holds where it is not 0. Both `x` and `y` are computed everywhere.\n\n\
     ```tessera\nop.where(x > 0, x, -1)\n```",
);

fn infer_where(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let condition = (0, rule::operand(args, 0)?);
    let (operands, dtype) = meet(args, &[1, 2])?;
    let shape = rule::broadcast_all(cx, &[&[condition], &operands[..]].concat())?;
    rule::one(shape, dtype)
}

fn lower_where(call: &mut Call) -> Lowered {
    let shape = call.result().0;
    let (_, dtype) = meet(&call.sym, &[1, 2])?;
    let dtype = dtype.unwrap_or(DType::F32);
    let condition = call.operand(0, &shape, DType::Bool)?;
    let (x, y) = (call.operand(1, &shape, dtype)?, call.operand(2, &shape, dtype)?);
    Ok(vec![expand::select(call.b, condition, x, y)])
}

pub const CLIP: Row = Row::new(
    "clip",
    &[req("x", ParamKind::Operand), opt("min", ParamKind::Operand, Default::None), opt("max", ParamKind::Operand, Default::None)],
    infer_clip,
    lower_clip,
)
.elementwise()
.method()
.known_as(&["clamp", "clip_by_value"])
.doc(
    "Elements limited to the range from `min` to `max`; `None` leaves a side open.\n\n\
     The operands broadcast. The same as `minimum(maximum(x, min), max)`, so `max` wins where the bounds cross, and NaN \
     stays NaN.\n\n```tessera\nop.clip(x, -1, 2)\n```",
);

/// The positions of the operands that are given.
fn given(args: &[SymArg]) -> Vec<usize> {
    (0..3).filter(|&i| i == 0 || !rule::absent(args, i)).collect()
}

fn infer_clip(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (operands, joined) = meet(args, &given(args))?;
    let shape = rule::broadcast_all(cx, &operands)?;
    rule::one(shape, joined.map(|d| rule::operand_dtype("clip", Takes::Number, d, &operands)).transpose()?)
}

fn lower_clip(call: &mut Call) -> Lowered {
    let shape = call.result().0;
    let (operands, joined) = meet(&call.sym, &given(&call.sym))?;
    let dtype = rule::operand_dtype("clip", Takes::Number, joined.unwrap_or(DType::F32), &operands)?;
    let mut x = call.operand(0, &shape, dtype)?;
    for (i, op) in [(1, MapOp::maximum), (2, MapOp::minimum)] {
        if !rule::absent(&call.sym, i) {
            let bound = call.operand(i, &shape, dtype)?;
            x = expand::map(call.b, op, &[x, bound]);
        }
    }
    Ok(vec![x])
}

//! `sort argsort topk`: order along an axis.

use super::expand;
use super::gather::take_along;
use super::reduce::no_complex;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::prim::Prim;

const PARAMS: &[Param] = &[
    req("x", ParamKind::Tensor),
    opt("axis", ParamKind::Axis, Default::Int(-1)),
    opt("descending", ParamKind::Bool, Default::Bool(false)),
];

pub const SORT: Row = Row::new("sort", PARAMS, |_, a, _| infer("sort", a, None), |c| lower(c, false))
    .method()
    .doc("The elements in ascending (or descending) order along an axis. Stable; NaN comes last.\n\n```tessera\nop.sort(x, axis=0)\n```");

pub const ARGSORT: Row = Row::new("argsort", PARAMS, |_, a, _| infer("argsort", a, Some(DType::I64)), |c| lower(c, true))
    .method()
    .doc("The positions (i64) of the elements that `sort` would give, in order.\n\n```tessera\nop.argsort(scores, descending=True)\n```");

fn infer(name: &str, args: &[SymArg], gives: Option<DType>) -> Inferred {
    let x = rule::tensor(args, 0)?;
    no_complex(name, x, 0)?;
    rule::axis(args, 1, x)?;
    rule::late_flag(args, 2)?;
    rule::one(x.shape.clone(), gives.or(x.dtype))
}

/// The operand with an order on its elements: bool counts as 0 and 1.
pub fn ordered(b: &mut dyn Build, x: Id) -> Id {
    if b.dtype(x) == DType::Bool { expand::cast(b, x, DType::U8) } else { x }
}

fn lower(call: &mut Call, positions: bool) -> Lowered {
    let (t, x) = (call.ty(0)?, call.id(0)?);
    let (axis, descending) = (rule::axis(&call.sym, 1, &t)?, rule::flag(&call.sym, 2)?);
    let b = &mut *call.b;
    let x = ordered(b, x);
    let (shape, dtype) = (b.shape(x), b.dtype(x));
    Ok(vec![if positions {
        b.push(Prim::ArgSort { axis, descending }, &[x], shape, DType::I64)
    } else {
        b.push(Prim::Sort { axis, descending }, &[x], shape, dtype)
    }])
}

pub const TOPK: Row = Row::new(
    "topk",
    &[
        req("x", ParamKind::Tensor),
        req("k", ParamKind::Int),
        opt("axis", ParamKind::Axis, Default::Int(-1)),
        opt("largest", ParamKind::Bool, Default::Bool(true)),
    ],
    infer_topk,
    lower_topk,
)
.method()
.known_as(&["top_k"])
.doc(
    "The `k` largest (or smallest) elements along an axis in order, and their positions (i64).\n\n\
     The first one comes first among equals; NaN counts as neither large nor small.\n\n\
     ```tessera\nvalues, ids = op.topk(logits, 5)\n```",
);

fn infer_topk(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    no_complex("topk", x, 0)?;
    let (k, axis) = (rule::int(args, 1)?, rule::axis(args, 2, x)?);
    rule::late_flag(args, 3)?;
    if k.as_const().is_some_and(|n| n < 0) {
        return Err(rule::negative(k, 1));
    }
    let size = &x.shape[axis];
    let text = || format!("the {k} largest of {size} elements along axis {axis}");
    rule::require_reach(cx, size, k, Code::E0202, text, |e| e.arg(0, x.to_string()).arg(1, format!("k is {k}")))?;
    let mut shape = x.shape.clone();
    shape[axis] = k.clone();
    Ok(OpTypes::Many(vec![rule::typed(shape.clone(), x.dtype), rule::typed(shape, Some(DType::I64))]))
}

fn lower_topk(call: &mut Call) -> Lowered {
    let (t, x) = (call.ty(0)?, call.id(0)?);
    let axis = rule::axis(&call.sym, 2, &t)?;
    let k = rule::int_const(&call.sym, 1, "`k`")? as u64;
    let descending = rule::flag(&call.sym, 3)?;
    let b = &mut *call.b;
    let keys = ordered(b, x);
    let shape = b.shape(x);
    let order = b.push(Prim::ArgSort { axis, descending }, &[keys], shape, DType::I64);
    let order = expand::slice(b, order, axis, 0, k);
    Ok(vec![take_along(b, x, order, axis), order])
}

//! `argmax` and `argmin`: where the extremum is.

use super::expand;
use super::reduce::{no_complex, not_empty};
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::prim::Prim;

const PARAMS: &[Param] = &[
    req("x", ParamKind::Tensor),
    opt("axis", ParamKind::Axis, Default::None),
    opt("keepdims", ParamKind::Bool, Default::Bool(false)),
];

pub const ARGMAX: Row = Row::new("argmax", PARAMS, |_, a, _| infer("argmax", a), |c| lower(c, true))
    .method()
    .known_as(&["arg_max"])
    .signature("a b -> a")
    .doc(
        "Position of the largest element along an axis, or in the flattened tensor.\n\n\
         Gives i64. The first one wins among equals; NaN counts as largest.\n\n```tessera\nop.argmax(logits, axis=-1)\n```",
    );

pub const ARGMIN: Row = Row::new("argmin", PARAMS, |_, a, _| infer("argmin", a), |c| lower(c, false))
    .method()
    .known_as(&["arg_min"])
    .signature("a b -> a")
    .doc("Position of the smallest element along an axis, or in the flattened tensor. As `argmax`; NaN counts as smallest.");

fn infer(name: &str, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    no_complex(name, x, 0)?;
    let keep = rule::flag(args, 2)?;
    let axes = if rule::absent(args, 1) { (0..x.rank()).collect() } else { vec![rule::axis(args, 1, x)?] };
    not_empty(name, x, &axes)?;
    rule::one(rule::reduced(&x.shape, &axes, keep), Some(DType::I64))
}

fn lower(call: &mut Call, largest: bool) -> Lowered {
    let (t, mut x) = (call.ty(0)?, call.id(0)?);
    let out = call.result().0;
    if call.b.dtype(x) == DType::Bool {
        x = expand::cast(call.b, x, DType::U8);
    }
    let axis = if rule::absent(&call.sym, 1) {
        let count = call.b.shape(x).iter().product();
        x = expand::reshape(call.b, x, &[count]);
        0
    } else {
        rule::axis(&call.sym, 1, &t)?
    };
    let mut shape = call.b.shape(x);
    shape.remove(axis);
    let at = call.b.push(Prim::ArgReduce { largest, axis }, &[x], shape, DType::I64);
    Ok(vec![expand::reshape(call.b, at, &out)])
}

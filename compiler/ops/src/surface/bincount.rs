//! `bincount`: how often each int occurs.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;
use crate::prim::Prim;

pub const BINCOUNT: Row = Row::new(
    "bincount",
    &[req("x", ParamKind::Tensor), req("length", ParamKind::Int), opt("weights", ParamKind::Tensor, Default::None)],
    infer,
    lower,
)
.method()
.doc(
    "How often each of the ints below `length` occurs in `x` (i64), or the sums of the `weights` of its elements.\n\n\
     Weights have the shape of `x`; floats keep their dtype and are added in ascending position, ints give i64. An \
     element that is negative, or not below `length`, is an error at run time.\n\n\
     ```tessera\nop.bincount(labels, 10)\n```",
);

fn infer(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::indices(x, 0)?;
    let length = rule::int(args, 1)?;
    if length.as_const().is_some_and(|n| n < 0) {
        return Err(rule::negative(length, 1));
    }
    let dtype = match rule::optional_tensor(args, 2)? {
        None => Some(DType::I64),
        Some(weights) => {
            reduce::no_complex("bincount", weights, 2)?;
            rule::same_shape(cx, (0, x), (2, weights))?;
            weights.dtype.map(|d| if d.is_float() { d } else { DType::I64 })
        }
    };
    rule::one(vec![length.clone()], dtype)
}

fn lower(call: &mut Call) -> Lowered {
    let (x, weights, shape) = (call.id(0)?, call.optional_id(2), call.result().0);
    let b = &mut *call.b;
    let count = b.shape(x).iter().product();
    let x = expand::positions(b, x);
    let x = expand::reshape(b, x, &[count]);
    // A negative int is no position from the end.
    let (zero, end) = (expand::like(b, x, 0.0), expand::full(b, &[count], DType::I64, Scalar::I(shape[0] as i64)));
    let below = expand::map(b, MapOp::lt, &[x, zero]);
    let at = expand::select(b, below, end, x);
    let own = weights.map(|w| b.dtype(w)).filter(|d| d.is_float());
    let wide = own.map_or(DType::I64, DType::compute);
    let terms = match weights {
        Some(w) => {
            let w = expand::cast(b, w, wide);
            expand::reshape(b, w, &[count])
        }
        None => expand::full(b, &[count], DType::I64, Scalar::I(1)),
    };
    let start = expand::full(b, &shape, wide, Scalar::I(0));
    Ok(vec![b.push(Prim::ScatterAddAlong { axis: 0 }, &[start, at, terms], shape, wide)])
}

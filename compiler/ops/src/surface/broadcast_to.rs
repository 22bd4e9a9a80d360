//! `expand` and `broadcast_to`: NumPy's broadcasting by hand.

use super::expand as build;
use super::row::{Call, Lowered, Row, req};
use super::rule::{self, Inferred};
use super::*;

pub const EXPAND: Row = Row::new(
    "expand",
    &[req("x", ParamKind::Tensor), req("shape", ParamKind::Shape)],
    |cx, a, _| infer(cx, a, true),
    lower,
)
.elementwise()
.method()
.doc(
    "The tensor repeated along dims of size 1, and along new leading dims, to the shape given. -1 keeps a size.\n\n\
         ```tessera\nop.expand(x, (2, 3))    # Tensor[1, 3, f32] -> Tensor[2, 3, f32]\n```",
);

pub const BROADCAST_TO: Row = Row::new(
    "broadcast_to",
    &[req("x", ParamKind::Tensor), req("shape", ParamKind::Shape)],
    |cx, a, _| infer(cx, a, false),
    lower,
)
.elementwise()
.method()
.doc("The tensor broadcast to the shape given, as in arithmetic.\n\n```tessera\nop.broadcast_to(bias, (B, D))\n```");

fn infer(cx: &mut InferCx, args: &[SymArg], keep: bool) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let mut shape = rule::ints(args, 1)?;
    let lead = shape.len().saturating_sub(x.rank());
    for (i, size) in shape.iter_mut().enumerate() {
        match size.as_const() {
            Some(-1) if keep && i >= lead => *size = x.shape[i - lead].clone(),
            Some(n) if n < 0 => return Err(rule::negative(size, 1)),
            _ => {}
        }
    }
    rule::broadcast_to(cx, x, &shape, 1)?;
    rule::one(shape, x.dtype)
}

fn lower(call: &mut Call) -> Lowered {
    let (x, out) = (call.id(0)?, call.result().0);
    Ok(vec![build::broadcast_to(call.b, x, &out)])
}

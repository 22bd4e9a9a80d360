//! `dropout`: random zeros.

use super::expand;
use super::random::{key_arg, unit};
use super::row::{Call, Lowered, Row, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;

pub const DROPOUT: Row = Row::new(
    "dropout",
    &[req("x", ParamKind::Tensor), req("rate", ParamKind::Float), req("key", ParamKind::Key)],
    infer,
    lower,
)
.doc(
    "Each element zeroed with probability `rate`, the others divided by `1 - rate`.\n\n\
     Which elements depends on the key alone (see `random`): the same key drops the same elements again. There is no \
     training mode: leave the call out to evaluate. (Srivastava et al., 2014.)\n\n\
     ```tessera\nop.dropout(x, 0.1, key)\n```",
);

fn infer(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::float(args, 1)?;
    if let Some(SymArg::Float(Some(rate))) = args.get(1)
        && !(0.0..=1.0).contains(rate)
    {
        return Err(
            OpError::new(Code::E0711, format!("a rate is a probability, and {rate} is none")).arg(1, "from 0 to 1")
        );
    }
    key_arg(cx, args, 2)?;
    rule::one(x.shape.clone(), rule::as_float("dropout", x, 0)?)
}

fn lower(call: &mut Call) -> Lowered {
    let key = call.id(2)?;
    let x = call.wide(0)?;
    let (shape, dtype) = (call.b.shape(x), call.b.dtype(x));
    let rate = call.operand(1, &shape, DType::F32)?;
    let b = &mut *call.b;
    let u = unit(b, key, &shape, DType::F32);
    let keep = expand::map(b, MapOp::ge, &[u, rate]);
    let rate = expand::cast(b, rate, dtype);
    let one = expand::like(b, x, 1.0);
    let share = expand::map(b, MapOp::sub, &[one, rate]);
    let scaled = expand::map(b, MapOp::div, &[x, share]);
    let zero = expand::like(b, x, 0.0);
    Ok(vec![expand::select(b, keep, scaled, zero)])
}

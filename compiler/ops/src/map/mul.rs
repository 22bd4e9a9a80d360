use super::{Gives, MapDef, Takes};
use crate::scalar::{FloatOp, IntOp, Kind};

pub const DEF: MapDef = MapDef {
    name: "mul",
    doc: "The product of two operands. Integers wrap around; for bool it is `and`.",
    arity: 2,
    takes: Takes::Any,
    gives: Gives::Same,
    body: |w, x| match w.kind(x[0]) {
        Kind::F32 | Kind::F64 => w.float(FloatOp::Mul, x[0], x[1]),
        Kind::Bool => w.int(IntOp::And, x[0], x[1]),
        _ => w.int(IntOp::Mul, x[0], x[1]),
    },
    gradient: Some(|g, x, _, c| vec![Some(g.mul(c, x[1])), Some(g.mul(c, x[0]))]),
    ulps: 0.5,
    cost: 1,
};

use super::{Gives, MapDef, Takes};
use crate::scalar::{FloatOp, IntOp, Kind};

pub const DEF: MapDef = MapDef {
    name: "add",
    doc: "The sum of two operands. Integers wrap around; for bool it is `or`.",
    arity: 2,
    takes: Takes::Any,
    gives: Gives::Same,
    body: |w, x| match w.kind(x[0]) {
        Kind::F32 | Kind::F64 => w.float(FloatOp::Add, x[0], x[1]),
        Kind::Bool => w.int(IntOp::Or, x[0], x[1]),
        _ => w.int(IntOp::Add, x[0], x[1]),
    },
    gradient: Some(|_, _, _, c| vec![Some(c), Some(c)]),
    ulps: 0.5,
    cost: 1,
};

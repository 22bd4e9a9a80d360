use super::{Gives, MapDef, Takes};
use crate::scalar::{FloatOp, IntOp, Kind};

pub const DEF: MapDef = MapDef {
    name: "sub",
    doc: "The difference of two operands. Integers wrap around.",
    arity: 2,
    takes: Takes::Number,
    gives: Gives::Same,
    body: |w, x| match w.kind(x[0]) {
        Kind::F32 | Kind::F64 => w.float(FloatOp::Sub, x[0], x[1]),
        _ => w.int(IntOp::Sub, x[0], x[1]),
    },
    gradient: Some(|g, _, _, c| vec![Some(c), Some(g.neg(c))]),
    ulps: 0.5,
    cost: 1,
};

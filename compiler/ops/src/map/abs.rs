use super::{Gives, MapDef, MapOp, Takes};
use crate::scalar::{Cmp, IntOp, Kind};

pub const DEF: MapDef = MapDef {
    name: "abs",
    doc: "The magnitude. The smallest integer wraps to itself.",
    arity: 1,
    takes: Takes::Number,
    gives: Gives::Same,
    body: |w, x| match w.kind(x[0]) {
        Kind::F32 | Kind::F64 => w.abs(x[0]),
        Kind::U8 => x[0],
        _ => {
            let zero = w.number(0, x[0]);
            let minus = w.int(IntOp::Sub, zero, x[0]);
            let below = w.cmp(Cmp::Lt, x[0], zero);
            w.select(below, minus, x[0])
        }
    },
    gradient: Some(|g, x, _, c| {
        let sign = g.map(MapOp::sign, x);
        vec![Some(g.mul(c, sign))]
    }),
    ulps: 0.0,
    cost: 1,
};

use super::{Gives, MapDef, Takes};
use crate::scalar::IntOp;

pub const DEF: MapDef = MapDef {
    name: "square",
    doc: "The operand times itself. Integers wrap around.",
    arity: 1,
    takes: Takes::Number,
    gives: Gives::Same,
    body: |w, x| {
        if w.is_float(x[0]) { w.mul(x[0], x[0]) } else { w.int(IntOp::Mul, x[0], x[0]) }
    },
    gradient: Some(|g, x, _, c| {
        let twice = g.scale(x[0], 2.0);
        vec![Some(g.mul(c, twice))]
    }),
    ulps: 0.5,
    cost: 1,
};

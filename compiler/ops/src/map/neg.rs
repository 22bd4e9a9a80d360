use super::{Gives, MapDef, Takes};
use crate::scalar::IntOp;

pub const DEF: MapDef = MapDef {
    name: "neg",
    doc: "The operand with its sign flipped. Integers wrap around.",
    arity: 1,
    takes: Takes::Number,
    gives: Gives::Same,
    body: |w, x| {
        if w.is_float(x[0]) {
            return w.neg(x[0]);
        }
        let zero = w.number(0, x[0]);
        w.int(IntOp::Sub, zero, x[0])
    },
    gradient: Some(|g, _, _, c| vec![Some(g.neg(c))]),
    ulps: 0.0,
    cost: 1,
};

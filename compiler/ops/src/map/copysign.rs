use super::{Gives, MapDef, Takes};

pub const DEF: MapDef = MapDef {
    name: "copysign",
    doc: "The magnitude of operand 0 with the sign of operand 1. Counts the sign of zeros and NaN.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let magnitude = w.abs(x[0]);
        w.with_sign(magnitude, x[1])
    },
    ulps: 0.0,
    cost: 3,
};

use super::{Gives, MapDef, MapOp, Takes};

pub const DEF: MapDef = MapDef {
    name: "copysign",
    doc: "The magnitude of operand 0 with the sign of operand 1. Counts the sign of zeros; a NaN has none and counts as positive.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let magnitude = w.abs(x[0]);
        // Which sign an operation gives a NaN is the processor's choice.
        let nan = w.is_nan(x[1]);
        let sign = w.select(nan, magnitude, x[1]);
        w.with_sign(magnitude, sign)
    },
    gradient: Some(|g, x, _, c| {
        let one = g.like(x[0], 1.0);
        let (from, to) = (g.map(MapOp::copysign, &[one, x[0]]), g.map(MapOp::copysign, &[one, x[1]]));
        let turn = g.mul(from, to);
        vec![Some(g.mul(c, turn)), None]
    }),
    ulps: 0.0,
    cost: 3,
};

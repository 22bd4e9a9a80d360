use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::divide;
use crate::scalar::IntOp;

pub const DEF: MapDef = MapDef {
    name: "mod",
    doc: "The remainder of floor division, with the sign of the divisor. Integers modulo zero give 0.",
    arity: 2,
    takes: Takes::Number,
    gives: Gives::Same,
    body: |w, x| {
        if w.is_float(x[0]) { divide::float_mod(w, x[0], x[1]) } else { w.int(IntOp::FloorMod, x[0], x[1]) }
    },
    gradient: Some(|g, x, _, c| {
        let turns = g.map(MapOp::floor_div, x);
        let turned = g.mul(c, turns);
        vec![Some(c), Some(g.neg(turned))]
    }),
    ulps: 1.0,
    cost: 30,
};

use super::{Gives, MapDef, Takes};
use crate::elementary::divide;
use crate::scalar::IntOp;

pub const DEF: MapDef = MapDef {
    name: "floor_div",
    doc: "The quotient rounded down. Integers divided by zero give 0.",
    arity: 2,
    takes: Takes::Number,
    gives: Gives::Same,
    body: |w, x| {
        if w.is_float(x[0]) { divide::float_floor_div(w, x[0], x[1]) } else { w.int(IntOp::FloorDiv, x[0], x[1]) }
    },
    gradient: None,
    ulps: 1.0,
    cost: 30,
};

use super::{Gives, MapDef, Takes};
use crate::elementary::pow;

pub const DEF: MapDef = MapDef {
    name: "pow",
    doc: "Operand 0 to the power of operand 1. Floats follow IEEE 754; integers wrap around, and a negative integer exponent gives 0.",
    arity: 2,
    takes: Takes::Number,
    gives: Gives::Same,
    body: |w, x| {
        if w.is_float(x[0]) { pow::pow(w, x[0], x[1]) } else { pow::int_pow(w, x[0], x[1]) }
    },
    ulps: 2.0,
    cost: 60,
};

use super::{Gives, MapDef, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "exp2",
    doc: "Two to the power of the operand. Exact for integers.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::exp2(w, x[0]),
    ulps: 1.0,
    cost: 12,
};

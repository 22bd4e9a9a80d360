use super::{Gives, MapDef, Takes};
use crate::elementary::trig;

pub const DEF: MapDef = MapDef {
    name: "atan2",
    doc: "The angle of the point (operand 1, operand 0), between −π and π.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| trig::atan2(w, x[0], x[1]),
    ulps: 2.0,
    cost: 35,
};

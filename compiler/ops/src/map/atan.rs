use super::{Gives, MapDef, Takes};
use crate::elementary::trig;

pub const DEF: MapDef = MapDef {
    name: "atan",
    doc: "The inverse tangent.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| trig::atan(w, x[0]),
    ulps: 1.5,
    cost: 22,
};

use super::{Gives, MapDef, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "sinh",
    doc: "The hyperbolic sine.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::sinh(w, x[0]),
    ulps: 2.5,
    cost: 30,
};

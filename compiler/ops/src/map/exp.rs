use super::{Gives, MapDef, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "exp",
    doc: "The exponential.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::exp(w, x[0]),
    ulps: 1.5,
    cost: 10,
};

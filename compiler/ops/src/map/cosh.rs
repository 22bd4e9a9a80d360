use super::{Gives, MapDef, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "cosh",
    doc: "The hyperbolic cosine.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::cosh(w, x[0]),
    ulps: 2.0,
    cost: 24,
};

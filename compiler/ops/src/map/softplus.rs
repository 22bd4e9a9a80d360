use super::{Gives, MapDef, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "softplus",
    doc: "`ln(1 + exp(x))`.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::softplus(w, x[0]),
    ulps: 2.5,
    cost: 40,
};

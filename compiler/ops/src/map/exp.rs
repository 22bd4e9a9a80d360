use super::{Gives, MapDef, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "exp",
    doc: "The exponential.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::exp(w, x[0]),
    gradient: Some(|g, _, y, c| vec![Some(g.mul(c, y))]),
    ulps: 1.5,
    cost: 10,
};

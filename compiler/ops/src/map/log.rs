use super::{Gives, MapDef, Takes};
use crate::elementary::log;

pub const DEF: MapDef = MapDef {
    name: "log",
    doc: "The natural logarithm. −∞ at 0, NaN below.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| log::log(w, x[0]),
    gradient: Some(|g, x, _, c| vec![Some(g.div(c, x[0]))]),
    ulps: 1.0,
    cost: 14,
};

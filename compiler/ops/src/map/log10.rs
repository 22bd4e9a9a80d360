use super::{Gives, MapDef, Takes};
use crate::elementary::log;

pub const DEF: MapDef = MapDef {
    name: "log10",
    doc: "The logarithm to base 10. −∞ at 0, NaN below.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| log::log10(w, x[0]),
    gradient: Some(|g, x, _, c| {
        let x = g.scale(x[0], std::f64::consts::LN_10);
        vec![Some(g.div(c, x))]
    }),
    ulps: 1.0,
    cost: 15,
};

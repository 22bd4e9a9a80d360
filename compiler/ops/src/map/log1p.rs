use super::{Gives, MapDef, Takes};
use crate::elementary::log;

pub const DEF: MapDef = MapDef {
    name: "log1p",
    doc: "The natural logarithm of one plus the operand, accurate near 0.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| log::log1p(w, x[0]),
    gradient: Some(|g, x, _, c| {
        let x = g.plus(x[0], 1.0);
        vec![Some(g.div(c, x))]
    }),
    ulps: 1.5,
    cost: 20,
};

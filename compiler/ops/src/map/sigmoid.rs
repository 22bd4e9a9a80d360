use super::{Gives, MapDef, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "sigmoid",
    doc: "`1 / (1 + exp(-x))`. Keeps its relative accuracy far on the left.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::sigmoid(w, x[0]),
    gradient: Some(|g, _, y, c| {
        let rest = g.one_minus(y);
        let slope = g.mul(y, rest);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 3.0,
    cost: 16,
};

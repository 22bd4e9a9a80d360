use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "softplus",
    doc: "`ln(1 + exp(x))`.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::softplus(w, x[0]),
    gradient: Some(|g, x, _, c| {
        let slope = g.map(MapOp::sigmoid, x);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 2.5,
    cost: 40,
};

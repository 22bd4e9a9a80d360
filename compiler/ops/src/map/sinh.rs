use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "sinh",
    doc: "The hyperbolic sine.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::sinh(w, x[0]),
    gradient: Some(|g, x, _, c| {
        let slope = g.map(MapOp::cosh, x);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 2.5,
    cost: 30,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "cosh",
    doc: "The hyperbolic cosine.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::cosh(w, x[0]),
    gradient: Some(|g, x, _, c| {
        let slope = g.map(MapOp::sinh, x);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 2.0,
    cost: 24,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{in_f64, inverse};

pub const DEF: MapDef = MapDef {
    name: "acosh",
    doc: "The inverse hyperbolic cosine. NaN below 1.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| inverse::acosh(w, x[0])),
    gradient: Some(|g, x, _, c| {
        let (below, above) = (g.plus(x[0], -1.0), g.plus(x[0], 1.0));
        let product = g.mul(below, above);
        let slope = g.map(MapOp::rsqrt, &[product]);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 2.0,
    cost: 45,
};

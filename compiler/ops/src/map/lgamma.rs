use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{gamma, in_f64};

pub const DEF: MapDef = MapDef {
    name: "lgamma",
    doc: "The logarithm of the absolute value of the gamma function. Of negative numbers the bound is of the sum of two logarithms, which may be larger than the result.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| gamma::lgamma(w, x[0])),
    gradient: Some(|g, x, _, c| {
        let slope = g.map(MapOp::digamma, x);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 4.0,
    cost: 190,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{gamma, in_f64};

pub const DEF: MapDef = MapDef {
    name: "digamma",
    doc: "The derivative of `lgamma`. NaN at negative integers. Below ½ the bound is of the sum of two terms, which may be larger than the result.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| gamma::digamma(w, x[0])),
    gradient: Some(|g, x, _, c| {
        let one = g.like(x[0], 1.0);
        let slope = g.map(MapOp::polygamma, &[one, x[0]]);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 4.0,
    cost: 170,
};

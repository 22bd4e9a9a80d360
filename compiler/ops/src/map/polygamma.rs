use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{gamma, in_f64};

pub const DEF: MapDef = MapDef {
    name: "polygamma",
    doc: "The derivative of order operand 0 of the digamma function at operand 1, for positive numbers: ∞ at 0, NaN below, and for orders that are no integers from 0 on. The order counts as a constant.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| gamma::polygamma(w, x[0], x[1])),
    gradient: Some(|g, x, _, c| {
        let next = g.plus(x[0], 1.0);
        let slope = g.map(MapOp::polygamma, &[next, x[1]]);
        vec![None, Some(g.mul(c, slope))]
    }),
    ulps: 64.0,
    cost: 900,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{gamma, in_f64};

pub const DEF: MapDef = MapDef {
    name: "betaln",
    doc: "The logarithm of the beta function of two positive numbers, `lgamma(a) + lgamma(b) − lgamma(a + b)` without the loss of digits for large ones. The bound is of the largest of the terms.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| gamma::betaln(w, x[0], x[1])),
    gradient: Some(|g, x, _, c| {
        let sum = g.add(x[0], x[1]);
        let psi = g.map(MapOp::digamma, &[sum]);
        let slope = |g: &mut dyn super::gradient::Steps, v| {
            let own = g.map(MapOp::digamma, &[v]);
            let slope = g.sub(own, psi);
            g.mul(c, slope)
        };
        vec![Some(slope(g, x[0])), Some(slope(g, x[1]))]
    }),
    ulps: 32.0,
    cost: 420,
};

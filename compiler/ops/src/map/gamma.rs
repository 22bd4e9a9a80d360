use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{gamma, in_f64};

pub const DEF: MapDef = MapDef {
    name: "gamma",
    doc: "The gamma function, `(n − 1)!` at integers. NaN at negative integers, ±∞ at ±0.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| gamma::gamma(w, x[0])),
    gradient: Some(|g, x, y, c| {
        let psi = g.map(MapOp::digamma, x);
        let slope = g.mul(y, psi);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 8.0,
    cost: 200,
};

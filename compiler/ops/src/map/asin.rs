use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::trig;

pub const DEF: MapDef = MapDef {
    name: "asin",
    doc: "The inverse sine. NaN outside [−1, 1].",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| trig::asin(w, x[0]),
    gradient: Some(|g, x, _, c| {
        let rest = g.one_minus_square(x[0]);
        let slope = g.map(MapOp::rsqrt, &[rest]);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 1.5,
    cost: 25,
};

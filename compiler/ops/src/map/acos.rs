use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::trig;

pub const DEF: MapDef = MapDef {
    name: "acos",
    doc: "The inverse cosine. NaN outside [−1, 1].",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| trig::acos(w, x[0]),
    gradient: Some(|g, x, _, c| {
        let rest = g.one_minus_square(x[0]);
        let slope = g.map(MapOp::rsqrt, &[rest]);
        let product = g.mul(c, slope);
        vec![Some(g.neg(product))]
    }),
    ulps: 1.5,
    cost: 30,
};

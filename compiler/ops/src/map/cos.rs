use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::trig;

pub const DEF: MapDef = MapDef {
    name: "cos",
    doc: "The cosine of an angle in radians.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| trig::cos(w, x[0]),
    gradient: Some(|g, x, _, c| {
        let sin = g.map(MapOp::sin, x);
        let product = g.mul(c, sin);
        vec![Some(g.neg(product))]
    }),
    ulps: 1.0,
    cost: 40,
};

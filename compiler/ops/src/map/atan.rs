use super::{Gives, MapDef, Takes};
use crate::elementary::trig;

pub const DEF: MapDef = MapDef {
    name: "atan",
    doc: "The inverse tangent.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| trig::atan(w, x[0]),
    gradient: Some(|g, x, _, c| {
        let square = g.mul(x[0], x[0]);
        let below = g.plus(square, 1.0);
        vec![Some(g.div(c, below))]
    }),
    ulps: 1.5,
    cost: 22,
};

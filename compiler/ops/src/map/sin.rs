use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::trig;

pub const DEF: MapDef = MapDef {
    name: "sin",
    doc: "The sine of an angle in radians.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| trig::sin(w, x[0]),
    gradient: Some(|g, x, _, c| {
        let slope = g.map(MapOp::cos, x);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 1.0,
    cost: 40,
};

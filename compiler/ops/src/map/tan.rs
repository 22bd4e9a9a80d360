use super::{Gives, MapDef, Takes};
use crate::elementary::trig;

pub const DEF: MapDef = MapDef {
    name: "tan",
    doc: "The tangent of an angle in radians.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| trig::tan(w, x[0]),
    gradient: Some(|g, _, y, c| {
        let square = g.mul(y, y);
        let slope = g.plus(square, 1.0);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 2.0,
    cost: 45,
};

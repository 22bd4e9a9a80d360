use super::{Gives, MapDef, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "expm1",
    doc: "The exponential less one, accurate near 0.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::expm1(w, x[0]),
    gradient: Some(|g, _, y, c| {
        let slope = g.plus(y, 1.0);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 2.0,
    cost: 12,
};

use super::{Gives, MapDef, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "tanh",
    doc: "The hyperbolic tangent.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::tanh(w, x[0]),
    gradient: Some(|g, _, y, c| {
        let slope = g.one_minus_square(y);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 2.0,
    cost: 20,
};

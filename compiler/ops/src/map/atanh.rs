use super::{Gives, MapDef, Takes};
use crate::elementary::{in_f64, inverse};

pub const DEF: MapDef = MapDef {
    name: "atanh",
    doc: "The inverse hyperbolic tangent. ±∞ at ±1, NaN outside.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| inverse::atanh(w, x[0])),
    gradient: Some(|g, x, _, c| {
        let below = g.one_minus_square(x[0]);
        vec![Some(g.div(c, below))]
    }),
    ulps: 2.0,
    cost: 40,
};

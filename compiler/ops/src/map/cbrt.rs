use super::{Gives, MapDef, Takes};
use crate::elementary::{in_f64, inverse};

pub const DEF: MapDef = MapDef {
    name: "cbrt",
    doc: "The cube root, also of negative numbers.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| inverse::cbrt(w, x[0])),
    gradient: Some(|g, _, y, c| {
        let square = g.mul(y, y);
        let below = g.scale(square, 3.0);
        vec![Some(g.div(c, below))]
    }),
    ulps: 1.0,
    cost: 45,
};

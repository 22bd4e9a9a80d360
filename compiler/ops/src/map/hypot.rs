use super::{Gives, MapDef, Takes};
use crate::elementary::hypot;

pub const DEF: MapDef = MapDef {
    name: "hypot",
    doc: "`√(a² + b²)`, without overflow on the way.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| hypot::hypot(w, x[0], x[1]),
    gradient: Some(|g, x, y, c| {
        let part = g.div(c, y);
        vec![Some(g.mul(part, x[0])), Some(g.mul(part, x[1]))]
    }),
    ulps: 1.0,
    cost: 16,
};

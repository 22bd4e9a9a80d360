use super::{Gives, MapDef, Takes};

pub const DEF: MapDef = MapDef {
    name: "sqrt",
    doc: "The square root. NaN below zero.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| w.sqrt(x[0]),
    gradient: Some(|g, _, y, c| {
        let half = g.scale(c, 0.5);
        vec![Some(g.div(half, y))]
    }),
    ulps: 0.5,
    cost: 8,
};

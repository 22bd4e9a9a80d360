use super::{Gives, MapDef, Takes};

pub const DEF: MapDef = MapDef {
    name: "div",
    doc: "The quotient of two floats. IEEE 754: division by zero gives an infinity or NaN.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| w.div(x[0], x[1]),
    gradient: Some(|g, x, y, c| {
        let left = g.div(c, x[1]);
        let right = g.mul(left, y);
        vec![Some(left), Some(g.neg(right))]
    }),
    ulps: 0.5,
    cost: 8,
};

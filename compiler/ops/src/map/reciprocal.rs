use super::{Gives, MapDef, Takes};

pub const DEF: MapDef = MapDef {
    name: "reciprocal",
    doc: "One divided by the operand.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let one = w.f(1.0, x[0]);
        w.div(one, x[0])
    },
    gradient: Some(|g, _, y, c| {
        let square = g.mul(y, y);
        let product = g.mul(c, square);
        vec![Some(g.neg(product))]
    }),
    ulps: 0.5,
    cost: 8,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "silu",
    doc: "`x · sigmoid(x)`, also known as swish.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::silu(w, x[0]),
    gradient: Some(|g, x, y, c| {
        // s + y(1 − s), with s the sigmoid.
        let s = g.map(MapOp::sigmoid, x);
        let rest = g.one_minus(s);
        let second = g.mul(y, rest);
        let slope = g.add(s, second);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 3.5,
    cost: 18,
};

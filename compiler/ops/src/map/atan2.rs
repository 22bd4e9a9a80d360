use super::{Gives, MapDef, Takes};
use crate::elementary::trig;

pub const DEF: MapDef = MapDef {
    name: "atan2",
    doc: "The angle of the point (operand 1, operand 0), between −π and π.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| trig::atan2(w, x[0], x[1]),
    gradient: Some(|g, x, _, c| {
        let (a, b) = (g.mul(x[0], x[0]), g.mul(x[1], x[1]));
        let squares = g.add(a, b);
        let part = g.div(c, squares);
        let right = g.mul(part, x[0]);
        vec![Some(g.mul(part, x[1])), Some(g.neg(right))]
    }),
    ulps: 2.0,
    cost: 35,
};

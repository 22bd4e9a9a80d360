use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{in_f64, log};

pub const DEF: MapDef = MapDef {
    name: "logaddexp",
    doc: "`ln(exp(a) + exp(b))`, which neither overflows nor underflows. The bound is of the larger of the operand and the result.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| log::log_add_exp(w, x[0], x[1])),
    gradient: Some(|g, x, _, c| {
        // Of two equal infinities, half each.
        let distance = g.sub(x[0], x[1]);
        let equal = g.map(MapOp::eq, &[x[0], x[1]]);
        let zero = g.like(x[0], 0.0);
        let distance = g.select(equal, zero, distance);
        let first = g.map(MapOp::sigmoid, &[distance]);
        let back = g.neg(distance);
        let second = g.map(MapOp::sigmoid, &[back]);
        vec![Some(g.mul(c, first)), Some(g.mul(c, second))]
    }),
    ulps: 1.5,
    cost: 50,
};

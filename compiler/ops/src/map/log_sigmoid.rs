use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "log_sigmoid",
    doc: "The logarithm of `sigmoid`, which does not underflow: `−ln(1 + exp(−x))`.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let back = w.neg(x[0]);
        let y = exp::softplus(w, back);
        w.neg(y)
    },
    gradient: Some(|g, x, _, c| {
        let back = g.neg(x[0]);
        let slope = g.map(MapOp::sigmoid, &[back]);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 2.5,
    cost: 40,
};

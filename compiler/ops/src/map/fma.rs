use super::{Gives, MapDef, Takes};
use crate::scalar::IntOp;

pub const DEF: MapDef = MapDef {
    name: "fma",
    doc: "Operand 0 times operand 1 plus operand 2, rounded once. Integers wrap around.",
    arity: 3,
    takes: Takes::Number,
    gives: Gives::Same,
    body: |w, x| {
        if w.is_float(x[0]) {
            return w.fma(x[0], x[1], x[2]);
        }
        let product = w.int(IntOp::Mul, x[0], x[1]);
        w.int(IntOp::Add, product, x[2])
    },
    gradient: Some(|g, x, _, c| vec![Some(g.mul(c, x[1])), Some(g.mul(c, x[0])), Some(c)]),
    ulps: 0.5,
    cost: 1,
};

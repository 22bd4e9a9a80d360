use super::{Gives, MapDef, MapOp, Takes};
use crate::scalar::Cmp;

pub const DEF: MapDef = MapDef {
    name: "relu",
    doc: "The operand where it is positive, else 0. NaN stays.",
    arity: 1,
    takes: Takes::Number,
    gives: Gives::Same,
    body: |w, x| {
        let zero = w.number(0, x[0]);
        let low = w.cmp(Cmp::Le, x[0], zero);
        w.select(low, zero, x[0])
    },
    gradient: Some(|g, x, _, c| {
        let zero = g.like(c, 0.0);
        let off = g.map(MapOp::le, &[x[0], zero]);
        vec![Some(g.select(off, zero, c))]
    }),
    ulps: 0.0,
    cost: 1,
};

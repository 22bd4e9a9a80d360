use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{
    gammainc::{self, Steps},
    in_f64,
};

pub const DEF: MapDef = MapDef {
    name: "gammaincc",
    doc: "The regularised upper incomplete gamma function: one minus `gammainc`, with the digits of its tail.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let steps = Steps::of(w.kind(x[0]));
        in_f64(w, x, |w, x| gammainc::gammaincc(w, x[0], x[1], steps))
    },
    gradient: Some(|g, x, _, c| {
        let (a, b) = (g.map(MapOp::gammainc_da, x), g.map(MapOp::gammainc_dx, x));
        let (a, b) = (g.mul(c, a), g.mul(c, b));
        vec![Some(g.neg(a)), Some(g.neg(b))]
    }),
    ulps: 512.0,
    cost: 900,
};

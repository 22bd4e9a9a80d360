use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{
    gammainc::{self, Steps},
    in_f64,
};

pub const DEF: MapDef = MapDef {
    name: "gammainc_dx",
    doc: "The derivative of `gammainc` by operand 1: the density of the gamma distribution, `x^(a − 1) exp(−x) / Γ(a)`.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let steps = Steps::of(w.kind(x[0]));
        in_f64(w, x, |w, x| gammainc::gammainc_dx(w, x[0], x[1], steps))
    },
    gradient: Some(|g, x, y, c| {
        let ln = g.map(MapOp::log, &[x[1]]);
        let psi = g.map(MapOp::digamma, &[x[0]]);
        let by_a = g.sub(ln, psi);
        let by_a = g.mul(y, by_a);
        let less = g.plus(x[0], -1.0);
        let quotient = g.div(less, x[1]);
        let by_x = g.plus(quotient, -1.0);
        let by_x = g.mul(y, by_x);
        vec![Some(g.mul(c, by_a)), Some(g.mul(c, by_x))]
    }),
    ulps: 512.0,
    cost: 200,
};

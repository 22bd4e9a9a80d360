use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{
    gammainc::{self, Steps},
    in_f64,
};

pub const DEF: MapDef = MapDef {
    name: "gammainc_da",
    doc: "The derivative of `gammainc` by operand 0, for positive parameters. Its own derivative by operand 0 is not known, and NaN.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let steps = Steps::of(w.kind(x[0]));
        in_f64(w, x, |w, x| gammainc::gammainc_da(w, x[0], x[1], steps))
    },
    gradient: Some(|g, x, _, c| {
        let density = g.map(MapOp::gammainc_dx, x);
        let ln = g.map(MapOp::log, &[x[1]]);
        let psi = g.map(MapOp::digamma, &[x[0]]);
        let by_x = g.sub(ln, psi);
        let by_x = g.mul(density, by_x);
        let nan = g.like(c, f64::NAN);
        vec![Some(nan), Some(g.mul(c, by_x))]
    }),
    ulps: 512.0,
    cost: 2600,
};

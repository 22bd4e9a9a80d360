use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{betainc, in_f64};

pub const DEF: MapDef = MapDef {
    name: "betainc_da",
    doc: "The derivative of `betainc` by operand 0. Its own derivatives by operands 0 and 1 are not known, and NaN.",
    arity: 3,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let n = betainc::steps(w.kind(x[0]));
        in_f64(w, x, |w, x| betainc::betainc_da(w, x[0], x[1], x[2], n))
    },
    gradient: Some(|g, x, _, c| {
        let density = g.map(MapOp::betainc_dx, x);
        let sum = g.add(x[0], x[1]);
        let joint = g.map(MapOp::digamma, &[sum]);
        let own = g.map(MapOp::digamma, &[x[0]]);
        let ln = g.map(MapOp::log, &[x[2]]);
        let slope = g.sub(joint, own);
        let slope = g.add(slope, ln);
        let by_x = g.mul(density, slope);
        let nan = g.like(c, f64::NAN);
        vec![Some(nan), Some(nan), Some(g.mul(c, by_x))]
    }),
    ulps: 512.0,
    cost: 4000,
};

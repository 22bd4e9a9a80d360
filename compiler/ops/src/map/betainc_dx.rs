use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{betainc, in_f64};

pub const DEF: MapDef = MapDef {
    name: "betainc_dx",
    doc: "The derivative of `betainc` by operand 2: the density of the beta distribution.",
    arity: 3,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| betainc::betainc_dx(w, x[0], x[1], x[2])),
    gradient: Some(|g, x, y, c| {
        let sum = g.add(x[0], x[1]);
        let joint = g.map(MapOp::digamma, &[sum]);
        let own = g.map(MapOp::digamma, &[x[0]]);
        let ln = g.map(MapOp::log, &[x[2]]);
        let slope = g.sub(joint, own);
        let slope = g.add(slope, ln);
        let other = g.map(MapOp::digamma, &[x[1]]);
        let minus = g.neg(x[2]);
        let ln_rest = g.map(MapOp::log1p, &[minus]);
        let slope_b = g.sub(joint, other);
        let slope_b = g.add(slope_b, ln_rest);
        let (a, b) = (g.plus(x[0], -1.0), g.plus(x[1], -1.0));
        let rest = g.one_minus(x[2]);
        let (first, second) = (g.div(a, x[2]), g.div(b, rest));
        let slope_x = g.sub(first, second);
        let scaled = g.mul(c, y);
        vec![Some(g.mul(scaled, slope)), Some(g.mul(scaled, slope_b)), Some(g.mul(scaled, slope_x))]
    }),
    ulps: 512.0,
    cost: 500,
};

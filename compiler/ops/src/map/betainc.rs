use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{betainc, in_f64};

pub const DEF: MapDef = MapDef {
    name: "betainc",
    doc: "The regularised incomplete beta function of operands 0 and 1 (the parameters) at operand 2: the distribution function of the beta distribution. NaN where a parameter is not positive and finite, or the argument outside [0, 1]. By Didonato and Morris' continued fraction (1992), whose steps are enough for parameters up to 10⁴; beyond, the error grows.",
    arity: 3,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let n = betainc::steps(w.kind(x[0]));
        in_f64(w, x, |w, x| betainc::betainc(w, x[0], x[1], x[2], n))
    },
    gradient: Some(|g, x, _, c| {
        // I_x(a, b) = 1 − I_(1 − x)(b, a).
        let by_a = g.map(MapOp::betainc_da, x);
        let rest = g.one_minus(x[2]);
        let by_b = g.map(MapOp::betainc_da, &[x[1], x[0], rest]);
        let by_x = g.map(MapOp::betainc_dx, x);
        let back = g.mul(c, by_b);
        vec![Some(g.mul(c, by_a)), Some(g.neg(back)), Some(g.mul(c, by_x))]
    }),
    ulps: 512.0,
    cost: 1500,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{
    gammainc::{self, Steps},
    in_f64,
};

pub const DEF: MapDef = MapDef {
    name: "gammainc",
    doc: "The regularised lower incomplete gamma function of operand 0 (the parameter) and operand 1: the distribution function of the gamma distribution. NaN where an operand is negative. Ways by region, each of few steps: a series, a continued fraction, Temme's expansion (1979).",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let steps = Steps::of(w.kind(x[0]));
        in_f64(w, x, |w, x| gammainc::gammainc(w, x[0], x[1], steps))
    },
    gradient: Some(|g, x, _, c| {
        let (a, b) = (g.map(MapOp::gammainc_da, x), g.map(MapOp::gammainc_dx, x));
        vec![Some(g.mul(c, a)), Some(g.mul(c, b))]
    }),
    ulps: 512.0,
    cost: 900,
};

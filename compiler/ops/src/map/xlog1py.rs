use super::{Gives, MapDef, MapOp, Takes, xlogy};
use crate::elementary::log;

pub const DEF: MapDef = MapDef {
    name: "xlog1py",
    doc: "`a · ln(1 + b)`, and 0 where `a` is 0 and `b` is no NaN.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let ln = log::log1p(w, x[1]);
        xlogy::times(w, x, ln)
    },
    gradient: Some(|g, x, _, c| {
        let ln = g.map(MapOp::log1p, &[x[1]]);
        let above = g.plus(x[1], 1.0);
        xlogy::pull(g, x[0], (ln, above), c)
    }),
    ulps: 2.0,
    cost: 24,
};

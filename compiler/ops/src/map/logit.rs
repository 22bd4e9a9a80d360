use super::{Gives, MapDef, Takes};
use crate::elementary::{in_f64, log};

pub const DEF: MapDef = MapDef {
    name: "logit",
    doc: "`ln(p / (1 − p))`, the inverse of `sigmoid`. −∞ at 0, ∞ at 1, NaN outside.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| log::logit(w, x[0])),
    gradient: Some(|g, x, _, c| {
        let rest = g.one_minus(x[0]);
        let below = g.mul(x[0], rest);
        vec![Some(g.div(c, below))]
    }),
    ulps: 3.0,
    cost: 50,
};

use super::{Gives, MapDef, Takes};
use crate::scalar::Cmp;

pub const DEF: MapDef = MapDef {
    name: "isfinite",
    doc: "Whether the operand is neither NaN nor an infinity.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Bool,
    body: |w, x| {
        let a = w.abs(x[0]);
        w.cmp_c(Cmp::Lt, a, f64::INFINITY)
    },
    gradient: None,
    ulps: 0.0,
    cost: 2,
};

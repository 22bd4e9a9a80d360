use super::{Gives, MapDef, Takes};
use crate::scalar::Cmp;

pub const DEF: MapDef = MapDef {
    name: "ne",
    doc: "Whether the operands are different. With NaN it is true.",
    arity: 2,
    takes: Takes::Any,
    gives: Gives::Bool,
    body: |w, x| w.cmp(Cmp::Ne, x[0], x[1]),
    gradient: None,
    ulps: 0.0,
    cost: 1,
};

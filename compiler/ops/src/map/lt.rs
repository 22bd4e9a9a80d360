use super::{Gives, MapDef, Takes};
use crate::scalar::Cmp;

pub const DEF: MapDef = MapDef {
    name: "lt",
    doc: "Whether the operands are in ascending order. With NaN it is false.",
    arity: 2,
    takes: Takes::Any,
    gives: Gives::Bool,
    body: |w, x| w.cmp(Cmp::Lt, x[0], x[1]),
    gradient: None,
    ulps: 0.0,
    cost: 1,
};

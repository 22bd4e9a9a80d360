use super::{Gives, MapDef, Takes};
use crate::scalar::IntOp;

pub const DEF: MapDef = MapDef {
    name: "logical_and",
    doc: "Whether both operands hold.",
    arity: 2,
    takes: Takes::Bool,
    gives: Gives::Bool,
    body: |w, x| w.int(IntOp::And, x[0], x[1]),
    gradient: None,
    ulps: 0.0,
    cost: 1,
};

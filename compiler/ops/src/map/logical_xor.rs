use super::{Gives, MapDef, Takes};
use crate::scalar::IntOp;

pub const DEF: MapDef = MapDef {
    name: "logical_xor",
    doc: "Whether exactly one operand holds.",
    arity: 2,
    takes: Takes::Bool,
    gives: Gives::Bool,
    body: |w, x| w.int(IntOp::Xor, x[0], x[1]),
    gradient: None,
    ulps: 0.0,
    cost: 1,
};

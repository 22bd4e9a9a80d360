use super::{Gives, MapDef, Takes};
use crate::scalar::IntOp;

pub const DEF: MapDef = MapDef {
    name: "bit_and",
    doc: "The bitwise and of two operands.",
    arity: 2,
    takes: Takes::IntOrBool,
    gives: Gives::Same,
    body: |w, x| w.int(IntOp::And, x[0], x[1]),
    gradient: None,
    ulps: 0.0,
    cost: 1,
};

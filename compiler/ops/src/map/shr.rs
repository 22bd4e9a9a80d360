use super::{Gives, MapDef, Takes};
use crate::scalar::IntOp;

pub const DEF: MapDef = MapDef {
    name: "shr",
    doc: "The bits of operand 0 moved down by operand 1, keeping the sign. Amounts that are negative or not below the width give 0 or −1.",
    arity: 2,
    takes: Takes::Int,
    gives: Gives::Same,
    body: |w, x| w.int(IntOp::Shr, x[0], x[1]),
    gradient: None,
    ulps: 0.0,
    cost: 1,
};

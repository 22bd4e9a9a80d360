use super::{Gives, MapDef, Takes};
use crate::scalar::{IntOp, Kind};

pub const DEF: MapDef = MapDef {
    name: "bit_not",
    doc: "The operand with every bit flipped. For bool it is `not`.",
    arity: 1,
    takes: Takes::IntOrBool,
    gives: Gives::Same,
    body: |w, x| {
        if w.kind(x[0]) == Kind::Bool { w.not(x[0]) } else { w.int_c(IntOp::Xor, x[0], -1) }
    },
    gradient: None,
    ulps: 0.0,
    cost: 1,
};

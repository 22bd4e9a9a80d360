use super::{Gives, MapDef, Takes};

pub const DEF: MapDef = MapDef {
    name: "logical_not",
    doc: "Whether the operand does not hold.",
    arity: 1,
    takes: Takes::Bool,
    gives: Gives::Bool,
    body: |w, x| w.not(x[0]),
    gradient: None,
    ulps: 0.0,
    cost: 1,
};

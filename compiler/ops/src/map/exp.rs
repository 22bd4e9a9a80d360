use super::{Gives, MapDef, Takes};

pub const DEF: MapDef = MapDef {
    name: "exp",
    doc: "The exponential.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |_, x| x[0],
    ulps: 1.0,
    cost: 10,
};

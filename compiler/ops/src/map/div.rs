use super::{Gives, MapDef, Takes};

pub const DEF: MapDef = MapDef {
    name: "div",
    doc: "The quotient of two floats. IEEE 754: division by zero gives an infinity or NaN.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| w.div(x[0], x[1]),
    ulps: 0.5,
    cost: 8,
};

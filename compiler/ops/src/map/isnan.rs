use super::{Gives, MapDef, Takes};

pub const DEF: MapDef = MapDef {
    name: "isnan",
    doc: "Whether the operand is NaN.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Bool,
    body: |w, x| w.is_nan(x[0]),
    gradient: None,
    ulps: 0.0,
    cost: 1,
};

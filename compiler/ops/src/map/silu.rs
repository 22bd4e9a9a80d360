use super::{Gives, MapDef, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "silu",
    doc: "`x · sigmoid(x)`, also known as swish.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::silu(w, x[0]),
    ulps: 3.5,
    cost: 18,
};

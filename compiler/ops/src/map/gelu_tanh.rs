use super::{Gives, MapDef, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "gelu_tanh",
    doc: "`½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))`, the approximation of GELU.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::gelu_tanh(w, x[0]),
    ulps: 4.0,
    cost: 26,
};

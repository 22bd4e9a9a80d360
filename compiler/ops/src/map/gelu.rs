use super::{Gives, MapDef, Takes};
use crate::elementary::erf;

pub const DEF: MapDef = MapDef {
    name: "gelu",
    doc: "`x · Φ(x)` with the normal distribution function Φ: the exact GELU.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| erf::gelu(w, x[0]),
    ulps: 7.0,
    cost: 29,
};

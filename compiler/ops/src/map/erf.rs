use super::{Gives, MapDef, Takes};
use crate::elementary::erf;

pub const DEF: MapDef = MapDef {
    name: "erf",
    doc: "The error function.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| erf::erf(w, x[0]),
    ulps: 1.5,
    cost: 28,
};

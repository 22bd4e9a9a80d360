use super::{Gives, MapDef, Takes};
use crate::elementary::trig;

pub const DEF: MapDef = MapDef {
    name: "asin",
    doc: "The inverse sine. NaN outside [−1, 1].",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| trig::asin(w, x[0]),
    ulps: 1.5,
    cost: 25,
};

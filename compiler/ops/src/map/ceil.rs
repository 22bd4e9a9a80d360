use super::{Gives, MapDef, Takes};
use crate::scalar::FloatFn;

pub const DEF: MapDef = MapDef {
    name: "ceil",
    doc: "The smallest integer not below the operand. Integers stay as they are.",
    arity: 1,
    takes: Takes::Number,
    gives: Gives::Same,
    body: |w, x| if w.is_float(x[0]) { w.float_fn(FloatFn::Ceil, x[0]) } else { x[0] },
    gradient: None,
    ulps: 0.0,
    cost: 1,
};

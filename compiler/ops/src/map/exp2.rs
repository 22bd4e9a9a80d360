use super::{Gives, MapDef, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "exp2",
    doc: "Two to the power of the operand. Exact for integers.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::exp2(w, x[0]),
    gradient: Some(|g, _, y, c| {
        let slope = g.scale(y, std::f64::consts::LN_2);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 1.0,
    cost: 12,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{in_f64, normal};

pub const DEF: MapDef = MapDef {
    name: "ndtri",
    doc: "The inverse of the normal distribution function: the quantile of a probability. −∞ at 0, ∞ at 1, NaN outside. By Wichura's algorithm AS 241 (1988).",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| normal::ndtri(w, x[0])),
    gradient: Some(|g, _, y, c| {
        let square = g.mul(y, y);
        let exponent = g.scale(square, 0.5);
        let growth = g.map(MapOp::exp, &[exponent]);
        let slope = g.scale(growth, 2.506_628_274_631_000_7);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 4.0,
    cost: 90,
};

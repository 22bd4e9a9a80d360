use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{in_f64, normal};

pub const DEF: MapDef = MapDef {
    name: "ndtr",
    doc: "The distribution function of the normal distribution, with the digits of its left tail.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| normal::ndtr(w, x[0])),
    gradient: Some(|g, x, _, c| {
        let square = g.mul(x[0], x[0]);
        let exponent = g.scale(square, -0.5);
        let bell = g.map(MapOp::exp, &[exponent]);
        let slope = g.scale(bell, 0.398_942_280_401_432_7);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 5.0,
    cost: 60,
};

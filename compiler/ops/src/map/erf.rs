use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::erf;

pub const DEF: MapDef = MapDef {
    name: "erf",
    doc: "The error function.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| erf::erf(w, x[0]),
    gradient: Some(|g, x, _, c| {
        let square = g.mul(x[0], x[0]);
        let negative = g.neg(square);
        let bell = g.map(MapOp::exp, &[negative]);
        let slope = g.scale(bell, std::f64::consts::FRAC_2_SQRT_PI);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 1.5,
    cost: 28,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{in_f64, normal};

pub const DEF: MapDef = MapDef {
    name: "log_ndtr",
    doc: "The logarithm of the normal distribution function, which does not underflow.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| normal::log_ndtr(w, x[0])),
    gradient: Some(|g, x, y, c| {
        // The density over the distribution function.
        let square = g.mul(x[0], x[0]);
        let exponent = g.scale(square, -0.5);
        let exponent = g.plus(exponent, -0.918_938_533_204_672_8);
        let exponent = g.sub(exponent, y);
        let slope = g.map(MapOp::exp, &[exponent]);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 5.0,
    cost: 110,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{in_f64, normal};

/// From here on to the left the series below is exact to the last digits of f64.
const FAR: f64 = -14.0;
/// Its terms, the last one first.
const TAIL: [f64; 9] = [2027025.0, -135135.0, 10395.0, -945.0, 105.0, -15.0, 3.0, -1.0, 1.0];

pub const DEF: MapDef = MapDef {
    name: "log_ndtr",
    doc: "The logarithm of the normal distribution function, which does not underflow.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| normal::log_ndtr(w, x[0])),
    gradient: Some(|g, x, y, c| {
        // The density over the distribution function: far on the left |x| over Σ (−1)^k (2k − 1)!! x^(−2k), where the
        // difference of the two logarithms has no digits left.
        let limit = g.like(x[0], FAR);
        let is_far = g.map(MapOp::lt, &[x[0], limit]);
        let far = g.select(is_far, x[0], limit);
        let inverse = g.map(MapOp::reciprocal, &[far]);
        let z = g.mul(inverse, inverse);
        let mut series = g.like(x[0], TAIL[0]);
        for &term in &TAIL[1..] {
            let product = g.mul(series, z);
            series = g.plus(product, term);
        }
        let left = g.div(far, series);
        let left = g.neg(left);
        let square = g.mul(x[0], x[0]);
        let exponent = g.scale(square, -0.5);
        let exponent = g.plus(exponent, -0.918_938_533_204_672_8);
        let exponent = g.sub(exponent, y);
        let zero = g.like(x[0], 0.0);
        let exponent = g.select(is_far, zero, exponent);
        let near = g.map(MapOp::exp, &[exponent]);
        let slope = g.select(is_far, left, near);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 5.0,
    cost: 110,
};

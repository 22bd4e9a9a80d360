use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::erf;

pub const DEF: MapDef = MapDef {
    name: "gelu",
    doc: "`x · Φ(x)` with the normal distribution function Φ: the exact GELU.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| erf::gelu(w, x[0]),
    gradient: Some(|g, x, _, c| {
        // Φ(x) + x φ(x), with the normal distribution Φ and its density φ.
        let scaled = g.scale(x[0], std::f64::consts::FRAC_1_SQRT_2);
        let erf = g.map(MapOp::erf, &[scaled]);
        let half = g.scale(erf, 0.5);
        let cumulative = g.plus(half, 0.5);
        let square = g.mul(x[0], x[0]);
        let exponent = g.scale(square, -0.5);
        let bell = g.map(MapOp::exp, &[exponent]);
        let density = g.scale(bell, 0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2);
        let moved = g.mul(x[0], density);
        let slope = g.add(cumulative, moved);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 7.0,
    cost: 29,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{in_f64, trig};

pub const DEF: MapDef = MapDef {
    name: "sinc",
    doc: "`sin(πx) / (πx)`, and 1 at 0: NumPy's `sinc`.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| trig::sinc(w, x[0])),
    gradient: Some(|g, x, y, c| {
        // (cos πx − sinc x)/x; near 0, where that loses its digits, the series Σ (−1)^k 2k (πx)^(2k) / ((2k + 1)! x).
        let pi = std::f64::consts::PI;
        let angle = g.scale(x[0], pi);
        let cos = g.map(MapOp::cos, &[angle]);
        let rest = g.sub(cos, y);
        let size = g.map(MapOp::abs, x);
        let limit = g.like(x[0], 0.3);
        let is_near = g.map(MapOp::lt, &[size, limit]);
        let one = g.like(x[0], 1.0);
        let below = g.select(is_near, one, x[0]);
        let far = g.div(rest, below);
        let square = g.mul(x[0], x[0]);
        let mut series = g.like(x[0], 0.0);
        let mut coefficients = vec![];
        let mut term = 1.0;
        for k in 1..=9 {
            let k = f64::from(k);
            term *= -pi * pi / (2.0 * k * (2.0 * k + 1.0));
            coefficients.push(2.0 * k * term);
        }
        for value in coefficients.into_iter().rev() {
            let product = g.mul(series, square);
            series = g.plus(product, value);
        }
        let near = g.mul(series, x[0]);
        let slope = g.select(is_near, near, far);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 3.0,
    cost: 60,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::exp;

pub const DEF: MapDef = MapDef {
    name: "gelu_tanh",
    doc: "`½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))`, the approximation of GELU.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| exp::gelu_tanh(w, x[0]),
    gradient: Some(|g, x, _, c| {
        // ½(1 + t) + ½x(1 − t²)√(2/π)(1 + 3·0.044715x²), with t the tangent of the value.
        let root = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
        let square = g.mul(x[0], x[0]);
        let inner = g.scale(square, 0.044715 * root);
        let inner = g.plus(inner, root);
        let u = g.mul(x[0], inner);
        let t = g.map(MapOp::tanh, &[u]);
        let rest = g.one_minus_square(t);
        let growth = g.scale(square, 0.5 * 3.0 * 0.044715 * root);
        let growth = g.plus(growth, 0.5 * root);
        let growth = g.mul(x[0], growth);
        let second = g.mul(rest, growth);
        let first = g.scale(t, 0.5);
        let first = g.plus(first, 0.5);
        let slope = g.add(first, second);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 4.0,
    cost: 26,
};

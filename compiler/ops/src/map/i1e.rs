use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{
    bessel::{self, Scale},
    in_f64,
};

pub const DEF: MapDef = MapDef {
    name: "i1e",
    doc: "The modified Bessel function of the first kind of order 1, multiplied by `exp(-abs(x))`.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| bessel::i1(w, x[0], Scale::Exponential)),
    gradient: Some(|g, x, y, c| {
        // ½ at 0, by a way that has a derivative itself.
        let (zero, half, one) = (g.like(x[0], 0.0), g.like(x[0], 0.5), g.like(x[0], 1.0));
        let origin = g.map(MapOp::eq, &[x[0], zero]);
        let below = g.select(origin, one, x[0]);
        let sign = g.map(MapOp::sign, x);
        let inverse = g.map(MapOp::reciprocal, &[below]);
        let sum = g.add(sign, inverse);
        let less = g.mul(y, sum);
        let order_0 = g.map(MapOp::i0e, x);
        let slope = g.sub(order_0, less);
        let slope = g.select(origin, half, slope);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 5.0,
    cost: 90,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{
    bessel::{self, Scale},
    in_f64,
};

pub const DEF: MapDef = MapDef {
    name: "i1",
    doc: "The modified Bessel function of the first kind of order 1.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| bessel::i1(w, x[0], Scale::Plain)),
    gradient: Some(|g, x, y, c| {
        // ½ at 0, by a way that has a derivative itself.
        let (zero, half, one) = (g.like(x[0], 0.0), g.like(x[0], 0.5), g.like(x[0], 1.0));
        let origin = g.map(MapOp::eq, &[x[0], zero]);
        let below = g.select(origin, one, x[0]);
        let less = g.div(y, below);
        let order_0 = g.map(MapOp::i0, x);
        let slope = g.sub(order_0, less);
        let slope = g.select(origin, half, slope);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 5.0,
    cost: 90,
};

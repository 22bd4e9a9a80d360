use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{
    bessel::{self, Scale},
    in_f64,
};

pub const DEF: MapDef = MapDef {
    name: "i0",
    doc: "The modified Bessel function of the first kind of order 0.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| bessel::i0(w, x[0], Scale::Plain)),
    gradient: Some(|g, x, _, c| {
        let slope = g.map(MapOp::i1, x);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 5.0,
    cost: 90,
};

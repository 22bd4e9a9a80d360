use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{
    bessel::{self, Scale},
    in_f64,
};

pub const DEF: MapDef = MapDef {
    name: "i0e",
    doc: "The modified Bessel function of the first kind of order 0, multiplied by `exp(-abs(x))`.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| bessel::i0(w, x[0], Scale::Exponential)),
    gradient: Some(|g, x, y, c| {
        let (first, sign) = (g.map(MapOp::i1e, x), g.map(MapOp::sign, x));
        let less = g.mul(sign, y);
        let slope = g.sub(first, less);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 5.0,
    cost: 90,
};

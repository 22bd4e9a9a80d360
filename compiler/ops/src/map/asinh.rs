use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{in_f64, inverse};

pub const DEF: MapDef = MapDef {
    name: "asinh",
    doc: "The inverse hyperbolic sine.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| inverse::asinh(w, x[0])),
    gradient: Some(|g, x, _, c| {
        let one = g.like(x[0], 1.0);
        let root = g.map(MapOp::hypot, &[x[0], one]);
        vec![Some(g.div(c, root))]
    }),
    ulps: 2.0,
    cost: 45,
};

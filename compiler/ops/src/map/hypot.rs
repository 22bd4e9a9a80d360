use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::hypot;

pub const DEF: MapDef = MapDef {
    name: "hypot",
    doc: "`√(a² + b²)`, without overflow on the way.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| hypot::hypot(w, x[0], x[1]),
    gradient: Some(|g, x, y, c| {
        // At the origin, which has no direction, zero: the derivative of an `abs` of 0.
        let zero = g.like(y, 0.0);
        let origin = g.map(MapOp::eq, &[y, zero]);
        let part = g.div(c, y);
        let part = g.select(origin, zero, part);
        vec![Some(g.mul(part, x[0])), Some(g.mul(part, x[1]))]
    }),
    ulps: 1.0,
    cost: 16,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::log;
use crate::scalar::Cmp;

pub const DEF: MapDef = MapDef {
    name: "xlogy",
    doc: "`a · ln(b)`, and 0 where `a` is 0 and `b` is no NaN.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let ln = log::log(w, x[1]);
        let product = w.mul(x[0], ln);
        let zero = w.f(0.0, x[0]);
        let none = w.cmp(Cmp::Eq, x[0], zero);
        let unordered = w.is_nan(x[1]);
        let ordered = w.not(unordered);
        let none = w.both(none, ordered);
        w.select(none, zero, product)
    },
    gradient: Some(|g, x, _, c| {
        let zero = g.like(x[0], 0.0);
        let none = g.map(MapOp::eq, &[x[0], zero]);
        let ln = g.map(MapOp::log, &[x[1]]);
        let finite = g.map(MapOp::isfinite, &[ln]);
        let bounded = g.select(finite, ln, zero);
        let first = g.select(none, bounded, ln);
        let one = g.like(x[0], 1.0);
        let below = g.select(none, one, x[1]);
        let second = g.div(x[0], below);
        let second = g.select(none, zero, second);
        vec![Some(g.mul(c, first)), Some(g.mul(c, second))]
    }),
    ulps: 2.0,
    cost: 18,
};

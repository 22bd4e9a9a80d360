use super::gradient::{Step, Steps};
use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::log;
use crate::scalar::{Cmp, Val, Writer};

pub const DEF: MapDef = MapDef {
    name: "xlogy",
    doc: "`a · ln(b)`, and 0 where `a` is 0 and `b` is no NaN.",
    arity: 2,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let ln = log::log(w, x[1]);
        times(w, x, ln)
    },
    gradient: Some(|g, x, _, c| {
        let ln = g.map(MapOp::log, &[x[1]]);
        pull(g, x[0], (ln, x[1]), c)
    }),
    ulps: 2.0,
    cost: 18,
};

/// Operand 0 times a logarithm of operand 1, and 0 where operand 0 is 0 and the other no NaN.
pub fn times(w: &mut Writer, x: &[Val], ln: Val) -> Val {
    let product = w.mul(x[0], ln);
    let zero = w.f(0.0, x[0]);
    let none = w.cmp(Cmp::Eq, x[0], zero);
    let unordered = w.is_nan(x[1]);
    let ordered = w.not(unordered);
    let none = w.both(none, ordered);
    w.select(none, zero, product)
}

/// The cotangents of `a` and `of` for `a · ln(of)`, by a way that has a derivative itself where `a` is 0.
pub fn pull(g: &mut dyn Steps, a: Step, (ln, of): (Step, Step), c: Step) -> Vec<Option<Step>> {
    let (zero, one) = (g.like(a, 0.0), g.like(a, 1.0));
    let none = g.map(MapOp::eq, &[a, zero]);
    let finite = g.map(MapOp::isfinite, &[ln]);
    let bounded = g.select(finite, ln, zero);
    let first = g.select(none, bounded, ln);
    let below = g.select(none, one, of);
    let second = g.div(a, below);
    let second = g.select(none, zero, second);
    vec![Some(g.mul(c, first)), Some(g.mul(c, second))]
}

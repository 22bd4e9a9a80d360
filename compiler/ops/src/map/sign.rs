use super::{Gives, MapDef, Takes};
use crate::scalar::{Cmp, Kind};

pub const DEF: MapDef = MapDef {
    name: "sign",
    doc: "−1, 0 or 1 by the sign of the operand. 0 for both zeros, NaN for NaN.",
    arity: 1,
    takes: Takes::Number,
    gives: Gives::Same,
    body: |w, x| {
        let zero = w.number(0, x[0]);
        let one = w.number(1, x[0]);
        let above = w.cmp(Cmp::Gt, x[0], zero);
        // What is neither above nor below is a zero or NaN: `x + 0` is +0 or NaN.
        let rest = if w.is_float(x[0]) { w.add(x[0], zero) } else { zero };
        let rest = if w.kind(x[0]) == Kind::U8 {
            rest
        } else {
            let minus = w.number(-1, x[0]);
            let below = w.cmp(Cmp::Lt, x[0], zero);
            w.select(below, minus, rest)
        };
        w.select(above, one, rest)
    },
    gradient: None,
    ulps: 0.0,
    cost: 2,
};

use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::pow;

pub const DEF: MapDef = MapDef {
    name: "pow",
    doc: "Operand 0 to the power of operand 1. Floats follow IEEE 754; integers wrap around, and a negative integer exponent gives 0.",
    arity: 2,
    takes: Takes::Number,
    gives: Gives::Same,
    body: |w, x| {
        if w.is_float(x[0]) { pow::pow(w, x[0], x[1]) } else { pow::int_pow(w, x[0], x[1]) }
    },
    gradient: Some(|g, x, y, c| {
        // Where the exponent is 0 the base does not count, and where the base is not positive
        // the exponent has no derivative.
        let (one, zero) = (g.like(x[0], 1.0), g.like(x[0], 0.0));
        let less = g.sub(x[1], one);
        let power = g.map(MapOp::pow, &[x[0], less]);
        let slope = g.mul(x[1], power);
        let flat = g.map(MapOp::eq, &[x[1], zero]);
        let slope = g.select(flat, zero, slope);
        let positive = g.map(MapOp::gt, &[x[0], zero]);
        let base = g.select(positive, x[0], one);
        let log = g.map(MapOp::log, &[base]);
        let growth = g.mul(y, log);
        vec![Some(g.mul(c, slope)), Some(g.mul(c, growth))]
    }),
    ulps: 1.0,
    cost: 60,
};

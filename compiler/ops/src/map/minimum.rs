use super::{Gives, MapDef, MapOp, Takes};
use crate::scalar::{FloatOp, IntOp, Kind};

pub const DEF: MapDef = MapDef {
    name: "minimum",
    doc: "The smaller of two operands. NaN if either is NaN; −0 is below +0; for bool it is `and`.",
    arity: 2,
    takes: Takes::Any,
    gives: Gives::Same,
    body: |w, x| match w.kind(x[0]) {
        Kind::F32 | Kind::F64 => w.float(FloatOp::Min, x[0], x[1]),
        Kind::Bool => w.int(IntOp::And, x[0], x[1]),
        _ => w.int(IntOp::Min, x[0], x[1]),
    },
    gradient: Some(|g, x, _, c| {
        // Of two equal operands the first counts, and of a number and a NaN the NaN.
        let (first, nan) = (g.map(MapOp::le, x), g.map(MapOp::ne, &[x[0], x[0]]));
        let first = g.map(MapOp::logical_or, &[first, nan]);
        g.either(first, c)
    }),
    ulps: 0.5,
    cost: 1,
};

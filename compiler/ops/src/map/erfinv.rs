use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{in_f64, normal};

pub const DEF: MapDef = MapDef {
    name: "erfinv",
    doc: "The inverse of the error function. ±∞ at ±1, NaN outside. By Wichura's algorithm AS 241 (1988).",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| normal::erfinv(w, x[0])),
    gradient: Some(|g, _, y, c| {
        let square = g.mul(y, y);
        let growth = g.map(MapOp::exp, &[square]);
        let slope = g.scale(growth, 1.0 / std::f64::consts::FRAC_2_SQRT_PI);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 4.0,
    cost: 90,
};

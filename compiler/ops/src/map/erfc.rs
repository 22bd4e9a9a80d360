use super::{Gives, MapDef, MapOp, Takes};
use crate::elementary::{in_f64, normal};

pub const DEF: MapDef = MapDef {
    name: "erfc",
    doc: "One minus the error function, with the digits of its tail.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| in_f64(w, x, |w, x| normal::erfc(w, x[0])),
    gradient: Some(|g, x, _, c| {
        let square = g.mul(x[0], x[0]);
        let negative = g.neg(square);
        let bell = g.map(MapOp::exp, &[negative]);
        let slope = g.scale(bell, -std::f64::consts::FRAC_2_SQRT_PI);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 5.0,
    cost: 60,
};

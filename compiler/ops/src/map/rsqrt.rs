use super::{Gives, MapDef, Takes};

pub const DEF: MapDef = MapDef {
    name: "rsqrt",
    doc: "One divided by the square root.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let one = w.f(1.0, x[0]);
        let root = w.sqrt(x[0]);
        w.div(one, root)
    },
    gradient: Some(|g, _, y, c| {
        let square = g.mul(y, y);
        let cube = g.mul(square, y);
        let slope = g.scale(cube, -0.5);
        vec![Some(g.mul(c, slope))]
    }),
    ulps: 1.5,
    cost: 16,
};

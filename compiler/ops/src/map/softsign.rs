use super::{Gives, MapDef, MapOp, Takes};

pub const DEF: MapDef = MapDef {
    name: "softsign",
    doc: "`x / (1 + |x|)`.",
    arity: 1,
    takes: Takes::Float,
    gives: Gives::Same,
    body: |w, x| {
        let size = w.abs(x[0]);
        let below = w.add_c(size, 1.0);
        let y = w.div(x[0], below);
        // Of an infinity it is ±1.
        let one = w.f(1.0, x[0]);
        let end = w.with_sign(one, x[0]);
        let endless = w.cmp_c(crate::scalar::Cmp::Eq, size, f64::INFINITY);
        w.select(endless, end, y)
    },
    gradient: Some(|g, x, _, c| {
        let size = g.map(MapOp::abs, x);
        let below = g.plus(size, 1.0);
        let part = g.div(c, below);
        vec![Some(g.div(part, below))]
    }),
    ulps: 1.5,
    cost: 8,
};

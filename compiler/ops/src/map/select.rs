use super::{Gives, MapDef, Takes};

pub const DEF: MapDef = MapDef {
    name: "where",
    doc: "Operand 1 where the bool operand 0 holds, else operand 2.",
    arity: 3,
    takes: Takes::Any,
    gives: Gives::Same,
    body: |w, x| w.select(x[0], x[1], x[2]),
    gradient: Some(|g, x, _, c| {
        let mut sides = vec![None];
        sides.extend(g.either(x[0], c));
        sides
    }),
    ulps: 0.0,
    cost: 1,
};

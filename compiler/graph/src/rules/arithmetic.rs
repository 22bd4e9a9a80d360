//! Rules of elementwise arithmetic that hold bit for bit.

use super::{Class, Rewrite, Rule};
use tessera_base::DType;
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Scalar};

pub const RULES: &[Rule] = &[
    Rule { name: "mul_one", doc: "x * 1 = x", class: Class::Exact, apply: mul_one },
    Rule { name: "div_one", doc: "x / 1 = x", class: Class::Exact, apply: div_one },
    Rule {
        name: "add_zero",
        doc: "x + 0 = x for integers; x + -0.0 = x for floats",
        class: Class::Exact,
        apply: add_zero,
    },
    Rule { name: "sub_zero", doc: "x - 0 = x", class: Class::Exact, apply: sub_zero },
    Rule { name: "neg_neg", doc: "-(-x) = x", class: Class::Exact, apply: neg_neg },
    Rule { name: "where_full", doc: "a constant condition chooses its arm", class: Class::Exact, apply: where_full },
    Rule {
        name: "cast_same",
        doc: "a cast to the type it has already is nothing",
        class: Class::Exact,
        apply: cast_same,
    },
    Rule {
        name: "cast_cast",
        doc: "widening and back is nothing; two widenings are one",
        class: Class::Exact,
        apply: cast_cast,
    },
    Rule {
        name: "cast_full",
        doc: "an integer constant that the target type holds exactly is written in it",
        class: Class::Exact,
        apply: cast_full,
    },
];

/// The constant that fills a node, seen through broadcasts and reshapes.
fn constant(g: &Graph, id: NodeId) -> Option<Scalar> {
    match &g.node(id).prim {
        Prim::Full { value } => Some(*value),
        Prim::Broadcast { .. } | Prim::Reshape => constant(g, g.node(id).operands[0]),
        _ => None,
    }
}

fn is(g: &Graph, id: NodeId, float: f64, int: i64) -> bool {
    match constant(g, id) {
        Some(Scalar::F(x)) => x.to_bits() == float.to_bits(),
        Some(Scalar::I(n)) => n == int,
        None => false,
    }
}

/// Whether the node is this function, and gives its operand's bits where it changes no value:
/// arithmetic in e5m2 saturates infinities.
fn map(n: &Node, op: MapOp) -> bool {
    n.prim == Prim::Map(op) && n.ty.dtype != DType::F8E5M2
}

fn mul_one(g: &Graph, n: &Node) -> Option<Rewrite> {
    if !map(n, MapOp::mul) {
        return None;
    }
    let other = [(0, 1), (1, 0)].into_iter().find(|&(one, _)| is(g, n.operands[one], 1.0, 1));
    other.map(|(_, x)| Rewrite::Value(n.operands[x]))
}

fn div_one(g: &Graph, n: &Node) -> Option<Rewrite> {
    (map(n, MapOp::div) && is(g, n.operands[1], 1.0, 1)).then(|| Rewrite::Value(n.operands[0]))
}

fn add_zero(g: &Graph, n: &Node) -> Option<Rewrite> {
    if !map(n, MapOp::add) {
        return None;
    }
    let other = [(0, 1), (1, 0)].into_iter().find(|&(zero, _)| is(g, n.operands[zero], -0.0, 0));
    other.map(|(_, x)| Rewrite::Value(n.operands[x]))
}

fn sub_zero(g: &Graph, n: &Node) -> Option<Rewrite> {
    (map(n, MapOp::sub) && is(g, n.operands[1], 0.0, 0)).then(|| Rewrite::Value(n.operands[0]))
}

fn neg_neg(g: &Graph, n: &Node) -> Option<Rewrite> {
    let inner = g.node(*n.operands.first()?);
    (map(n, MapOp::neg) && map(inner, MapOp::neg)).then(|| Rewrite::Value(inner.operands[0]))
}

fn where_full(g: &Graph, n: &Node) -> Option<Rewrite> {
    if n.prim != Prim::Map(MapOp::parse("where")?) {
        return None;
    }
    match constant(g, n.operands[0])? {
        Scalar::I(c) => Some(Rewrite::Value(n.operands[if c != 0 { 1 } else { 2 }])),
        Scalar::F(_) => None,
    }
}

fn cast_same(g: &Graph, n: &Node) -> Option<Rewrite> {
    let x = *n.operands.first()?;
    (n.prim == Prim::Cast && g.ty(x).dtype == n.ty.dtype).then_some(Rewrite::Value(x))
}

fn cast_cast(g: &Graph, n: &Node) -> Option<Rewrite> {
    let middle = g.node(*n.operands.first()?);
    if n.prim != Prim::Cast || middle.prim != Prim::Cast {
        return None;
    }
    let first = middle.operands[0];
    let (from, via) = (g.ty(first).dtype, middle.ty.dtype);
    // The first step must lose nothing; then only the last step counts.
    if !from.widens_to(via) || from == DType::Bool {
        return None;
    }
    if from == n.ty.dtype {
        // Casts to fp8 saturate: an infinity of e5m2 does not come back.
        return (from != DType::F8E5M2).then_some(Rewrite::Value(first));
    }
    let mut node = n.clone();
    node.operands = vec![first];
    (from.is_float() == via.is_float()).then_some(Rewrite::Node(node))
}

fn cast_full(g: &Graph, n: &Node) -> Option<Rewrite> {
    let Prim::Full { value } = g.node(*n.operands.first()?).prim else { return None };
    if n.prim != Prim::Cast {
        return None;
    }
    // Small integers are exact in every type but fp8, where 16 is the limit.
    let small = match value {
        Scalar::I(i) => i,
        Scalar::F(x) if x.fract() == 0.0 && x.abs() <= 16.0 && (x != 0.0 || x.is_sign_positive()) => x as i64,
        Scalar::F(_) => return None,
    };
    let (from, to) = (g.ty(n.operands[0]).dtype, n.ty.dtype);
    let value = match small {
        // It wraps around in the operand.
        i64::MIN..=-1 if from == DType::U8 => return None,
        0..=1 if to == DType::Bool => Scalar::I(small),
        0..=16 if to.is_int() => Scalar::I(small),
        -16..=16 if to.is_float() => Scalar::F(small as f64),
        _ => return None,
    };
    let mut node = n.clone();
    node.prim = Prim::Full { value };
    node.operands.clear();
    Some(Rewrite::Node(node))
}

//! Rules that round otherwise than the program says: policy `fast`.
//!
//! Each keeps a bound: a contraction rounds once where two roundings stood; a division by a
//! repeated divisor becomes a product with its reciprocal, which costs one rounding more and
//! asks that the reciprocal be a normal number.

use super::{Class, NEW, Rewrite, Rule};
use tessera_base::DType;
use tessera_ir::graph::{Graph, Node, NodeId, Policy};
use tessera_ops::map::MapOp;
use tessera_ops::prim::Prim;

pub const RULES: &[Rule] = &[
    Rule {
        name: "mul_add",
        doc: "x * y + z is one fused multiply-add: one rounding instead of two",
        class: Class::Approximates,
        apply: mul_add,
    },
    Rule {
        name: "div_broadcast",
        doc: "x / y with one y for many x is x * (1 / y): one rounding more",
        class: Class::Approximates,
        apply: div_broadcast,
    },
];

/// How many quotients share a divisor at least.
const SHARED_MIN: u64 = 8;

fn is_map(n: &Node, op: MapOp) -> bool {
    let wide = matches!(n.ty.dtype, DType::F32 | DType::F64 | DType::Bf16 | DType::F16);
    n.prim == Prim::Map(op) && n.policy == Policy::Fast && wide
}

fn mul_add(g: &Graph, n: &Node) -> Option<Rewrite> {
    if !is_map(n, MapOp::add) {
        return None;
    }
    let (product, other) = [(0, 1), (1, 0)].into_iter().find(|&(p, _)| is_map(g.node(n.operands[p]), MapOp::mul))?;
    let mut node = n.clone();
    node.prim = Prim::Map(MapOp::fma);
    node.operands = g.node(n.operands[product]).operands.clone();
    node.operands.push(n.operands[other]);
    Some(Rewrite::Node(node))
}

fn div_broadcast(g: &Graph, n: &Node) -> Option<Rewrite> {
    if !is_map(n, MapOp::div) {
        return None;
    }
    let divisor = g.node(n.operands[1]);
    let Prim::Broadcast { .. } = divisor.prim else { return None };
    let shared = g.ty(divisor.operands[0]);
    if n.ty.elems()? < shared.elems()?.saturating_mul(SHARED_MIN) {
        return None;
    }
    let reciprocal = Node {
        prim: Prim::Map(MapOp::reciprocal),
        operands: vec![divisor.operands[0]],
        ty: shared.clone(),
        ..n.clone()
    };
    let repeated = Node { operands: vec![NodeId(NEW)], ..divisor.clone() };
    let product = Node { prim: Prim::Map(MapOp::mul), operands: vec![n.operands[0], NodeId(NEW + 1)], ..n.clone() };
    Some(Rewrite::Nodes(vec![reciprocal, repeated, product]))
}

#[cfg(test)]
mod tests {
    use crate::optimise;
    use tessera_ir::graph::Graph;
    use tessera_ir::graph_text::parse;

    fn graph(policy: &str) -> Graph {
        let text = r#"
"tessera.graph"() ({
  %0 = "tessera.graph.input"() {index=0} : Tensor[4, 64, f32]
  %1 = "tessera.graph.input"() {index=1} : Tensor[4, 1, f32]
  %2 = "tessera.graph.broadcast"(%1) {dims=[0, 1]} : Tensor[4, 64, f32]
  %3 = "tessera.graph.mul"(%0, %0) {policy="POLICY"} : Tensor[4, 64, f32]
  %4 = "tessera.graph.add"(%2, %3) {policy="POLICY"} : Tensor[4, 64, f32]
  %5 = "tessera.graph.div"(%4, %2) {policy="POLICY"} : Tensor[4, 64, f32]
  "tessera.graph.return"(%5)
})"#;
        optimise(&parse(&text.replace("POLICY", policy)).unwrap_or_else(|e| panic!("{e:?}")))
    }

    #[test]
    fn products_are_contracted_and_divisors_inverted_when_allowed() {
        let fast = graph("fast").to_string();
        assert!(
            fast.contains("graph.fma") && fast.contains("graph.reciprocal") && !fast.contains("graph.div"),
            "{fast}"
        );
        let exact = graph("deterministic").to_string();
        assert!(!exact.contains("graph.fma") && exact.contains("graph.div"), "{exact}");
    }
}

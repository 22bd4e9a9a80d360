//! Computes equal expressions once (common subexpressions).
//!
//! Before: `%1 = exp(%0)`, `%2 = exp(%0)`, `%3 = add(%1, %2)`.
//! After: `%1 = exp(%0)`, `%2 = add(%1, %1)`.

use crate::rebuild::Rebuild;
use std::collections::BTreeMap;
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ops::prim::Prim;

pub fn run(old: &Graph) -> Graph {
    let mut new = Rebuild::new(old);
    new.graph.bodies = old.bodies.iter().map(run).collect();
    // By operands, so that only few candidates are compared in full.
    let mut seen: BTreeMap<Vec<NodeId>, Vec<NodeId>> = BTreeMap::new();
    for id in old.ids() {
        let node = new.renamed(old.node(id));
        let candidates = seen.entry(node.operands.clone()).or_default();
        let equal = candidates.iter().copied().find(|&c| same(new.graph.node(c), &node));
        let target = equal.unwrap_or_else(|| {
            let t = new.graph.push(node);
            candidates.push(t);
            t
        });
        new.set(id, target);
    }
    new.finish(old)
}

/// Equal meaning: everything but where it comes from.
fn same(a: &Node, b: &Node) -> bool {
    let bits = |n: &Node| {
        if let Prim::Full { value: tessera_ops::prim::Scalar::F(x) } = n.prim { Some(x.to_bits()) } else { None }
    };
    a.ty == b.ty
        && a.results == b.results
        && a.policy == b.policy
        && bits(a) == bits(b)
        && (bits(a).is_some() || a.prim == b.prim)
        // What is computed again on purpose stays apart.
        && a.again() == b.again()
}

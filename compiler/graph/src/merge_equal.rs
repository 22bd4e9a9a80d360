//! Computes equal expressions once (common subexpressions).
//!
//! Before: `%1 = exp(%0)`, `%2 = exp(%0)`, `%3 = add(%1, %2)`.
//! After: `%1 = exp(%0)`, `%2 = add(%1, %1)`.
//!
//! No directive is lost: equal work that is to be laid out in two ways is done twice. Work with directives and the
//! same work without any is one, with the directives. What is no work (views, constants) is one whatever they say.

use crate::rebuild::Rebuild;
use std::collections::BTreeMap;
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::hints::KernelHints;
use tessera_ir::prim::row;
use tessera_ops::prim::Prim;

pub fn run(old: &Graph) -> Graph {
    let mut new = Rebuild::new(old);
    new.graph.bodies = old.bodies.iter().map(run).collect();
    // By operands, so that only few candidates are compared in full.
    let mut seen: BTreeMap<Vec<NodeId>, Vec<NodeId>> = BTreeMap::new();
    for id in old.ids() {
        let node = new.renamed(old.node(id));
        let candidates = seen.entry(node.operands.clone()).or_default();
        let equal = candidates
            .iter()
            .copied()
            .find(|&c| same(new.graph.node(c), &node) && laid_out_as_one(&new.graph, new.graph.node(c), &node));
        let target = match equal {
            Some(t) => {
                if asked(&new.graph, new.graph.node(t)).is_none() {
                    new.graph.nodes[t.0 as usize].origin.kernel = node.origin.kernel;
                }
                t
            }
            None => {
                let t = new.graph.push(node);
                candidates.push(t);
                t
            }
        };
        new.set(id, target);
    }
    new.finish(old)
}

/// The directives that a node is under, if there are any.
fn asked<'g>(g: &'g Graph, node: &Node) -> Option<&'g KernelHints> {
    g.kernels.get(node.origin.kernel? as usize).filter(|hints| !hints.is_empty())
}

/// Whether one node can follow what both are asked for.
fn laid_out_as_one(g: &Graph, a: &Node, b: &Node) -> bool {
    let is_work = row(&a.prim).flags().work;
    match (asked(g, a), asked(g, b)) {
        (Some(a), Some(b)) => !is_work || a.asks_as(b),
        _ => true,
    }
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

//! Applies the exact rewrite rules until none fits.
//!
//! Before: `%1 = transpose(%0) {perm=[1, 0]}`, `%2 = transpose(%1) {perm=[1, 0]}`.
//! After: `%0`.

use crate::rebuild::Rebuild;
use crate::rules::{self, Class, Rewrite};
use tessera_ir::graph::{Graph, NodeId};

/// Rewrites of one node before the pass moves on: rules shrink, so this is never reached.
const STEPS_MAX: usize = 64;

pub fn run(old: &Graph) -> Graph {
    let mut new = Rebuild::new(old);
    new.graph.bodies = old.bodies.iter().map(run).collect();
    for id in old.ids() {
        let mut node = new.renamed(old.node(id));
        let mut value: Option<NodeId> = None;
        for _ in 0..STEPS_MAX {
            let hit = rules::all().filter(|r| r.class == Class::Exact).find_map(|r| (r.apply)(&new.graph, &node));
            match hit {
                None => break,
                Some(Rewrite::Value(v)) => {
                    value = Some(v);
                    break;
                }
                Some(Rewrite::Node(n)) => node = n,
            }
        }
        let target = value.unwrap_or_else(|| new.graph.push(node));
        new.set(id, target);
    }
    new.finish(old)
}

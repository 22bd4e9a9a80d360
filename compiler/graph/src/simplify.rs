//! Applies the rewrite rules until none fits: exact ones, and others under the policy `fast`.
//!
//! Before: `%1 = transpose(%0) {perm=[1, 0]}`, `%2 = transpose(%1) {perm=[1, 0]}`.
//! After: `%0`.

use crate::rebuild::Rebuild;
use crate::rules::{self, Class, NEW, Rewrite};
use tessera_ir::graph::{Graph, NodeId, Policy};

/// Rewrites of one node before the pass moves on: rules shrink, so this is never reached.
const STEPS_MAX: usize = 64;

pub fn run(old: &Graph) -> Graph {
    let mut new = Rebuild::new(old);
    new.graph.bodies = old.bodies.iter().map(run).collect();
    for id in old.ids() {
        let mut node = new.renamed(old.node(id));
        let mut value: Option<NodeId> = None;
        for _ in 0..STEPS_MAX {
            let allowed = |class| class == Class::Exact || node.policy == Policy::Fast;
            let hit = rules::all().filter(|r| allowed(r.class)).find_map(|r| (r.apply)(&new.graph, &node));
            match hit {
                None => break,
                Some(Rewrite::Value(v)) => {
                    value = Some(v);
                    break;
                }
                Some(Rewrite::Node(n)) => node = n,
                Some(Rewrite::Nodes(nodes)) => {
                    let mut made: Vec<NodeId> = vec![];
                    let mut nodes = nodes.into_iter().peekable();
                    while let Some(mut n) = nodes.next() {
                        for o in n.operands.iter_mut().filter(|o| o.0 >= NEW) {
                            *o = made[(o.0 - NEW) as usize];
                        }
                        match nodes.peek() {
                            Some(_) => made.push(new.graph.push(n)),
                            None => node = n,
                        }
                    }
                }
            }
        }
        let target = value.unwrap_or_else(|| new.graph.push(node));
        new.set(id, target);
    }
    new.finish(old)
}

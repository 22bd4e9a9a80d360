//! Drops what no output needs, in loops what no turn does. Inputs stay: they are the graph's signature. So do
//! exchanges, which others need.
//!
//! Before: `%1 = exp(%0)`, `%2 = neg(%0)`, `return %2`.
//! After: `%1 = neg(%0)`, `return %1`.

use crate::rebuild::Rebuild;
use tessera_ir::graph::Graph;
use tessera_ir::prim::row;
use tessera_ops::prim::Prim;

pub fn run(old: &Graph) -> Graph {
    let mut used = vec![false; old.nodes.len()];
    for o in &old.outputs {
        used[o.0 as usize] = true;
    }
    for id in old.ids().collect::<Vec<_>>().into_iter().rev() {
        used[id.0 as usize] |= row(&old.node(id).prim).flags().kept;
        if used[id.0 as usize] {
            for o in &old.node(id).operands {
                used[o.0 as usize] = true;
            }
        }
    }
    let mut new = Rebuild::new(old);
    new.graph.bodies = old.bodies.iter().map(run).collect();
    for id in old.ids() {
        if used[id.0 as usize] || matches!(old.node(id).prim, Prim::Input(_)) {
            let node = new.renamed(old.node(id));
            let target = new.graph.push(node);
            new.set(id, target);
        }
    }
    new.finish(old)
}

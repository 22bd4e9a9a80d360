//! Values that follow from positions alone, as the masks of sliding windows do.

use std::collections::BTreeSet;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::Role;
use tessera_ir::prim::row;

/// Steps that are computed again for each reader, at most.
const STEPS_MAX: usize = 16;

/// Whether a node is a few plain steps on positions and numbers (`is_number`: given when the kernel starts). A loop computes
/// these where it needs them, and neither waits for a kernel before it nor reads what that one wrote.
pub fn of_positions(g: &Graph, id: NodeId, role: &dyn Fn(NodeId) -> Role, is_number: &dyn Fn(NodeId) -> bool) -> bool {
    let (mut todo, mut steps) = (vec![id], BTreeSet::new());
    while let Some(id) = todo.pop() {
        let n = g.node(id);
        match role(id) {
            Role::View => todo.extend(&n.operands),
            Role::Element if row(&n.prim).flags().step && row(&n.prim).flags().cheap => {
                if steps.insert(id) {
                    todo.extend(&n.operands);
                }
            }
            _ if is_number(id) => {}
            _ => return false,
        }
        if steps.len() > STEPS_MAX {
            return false;
        }
    }
    true
}

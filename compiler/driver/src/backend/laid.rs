//! A graph on its way to a plan: its groups, with kernels that are not code yet, and its places in memory.

use std::collections::BTreeSet;
use std::rc::Rc;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::{Group, MemoryPlan, Partition};
use tessera_ir::schedule::Schedule;
use tessera_ir::tile;
use tessera_ops::prim::{Prim, Scalar};
use tessera_tile::Lowered;

/// A group with the kernels that compute it.
pub struct Planned {
    pub group: Group,
    /// Of a kernel that is tuned: the schedule of the cost model and of directives.
    pub start: Option<Schedule>,
    pub schedule: Option<Schedule>,
    pub lowered: Option<Rc<Lowered>>,
}

/// A graph in groups, with its places in memory, before its kernels are code.
pub struct Laid {
    pub planned: Vec<Planned>,
    pub partition: Partition,
    pub memory: MemoryPlan,
}

impl Laid {
    pub fn kernels(&self) -> impl Iterator<Item = &tile::Kernel> {
        self.planned.iter().flat_map(|p| p.lowered.iter().flat_map(|l| &l.steps)).map(|s| &s.kernel)
    }
}

/// Outputs that are zero, and that nothing in the graph reads.
pub fn zeros(graph: &Graph) -> BTreeSet<NodeId> {
    let read: BTreeSet<NodeId> = graph.nodes.iter().flat_map(|n| n.operands.iter().copied()).collect();
    let once = |id: &NodeId| graph.outputs.iter().filter(|o| *o == id).count() == 1;
    // A negative zero has other bits.
    let zero = |id: &NodeId| match graph.node(*id).prim {
        Prim::Full { value: Scalar::I(n) } => n == 0,
        Prim::Full { value: Scalar::F(x) } => x.to_bits() == 0,
        _ => false,
    };
    graph.outputs.iter().filter(|id| once(id) && !read.contains(id) && zero(id)).copied().collect()
}

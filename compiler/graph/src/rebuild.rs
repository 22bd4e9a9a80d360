//! Building a new graph from an old one, node by node.

use tessera_ir::graph::{Graph, Node, NodeId};

/// A graph under construction and where each old node went.
pub struct Rebuild {
    pub graph: Graph,
    /// New id by old id.
    pub map: Vec<Option<NodeId>>,
}

impl Rebuild {
    /// An empty graph with the inputs and loop bodies of `old`.
    pub fn new(old: &Graph) -> Rebuild {
        let graph = Graph {
            name: old.name.clone(),
            inputs: old.inputs.clone(),
            bodies: old.bodies.clone(),
            kernels: old.kernels.clone(),
            memory: old.memory,
            nodes: Vec::with_capacity(old.nodes.len()),
            outputs: vec![],
            derivatives: Default::default(),
        };
        Rebuild { graph, map: vec![None; old.nodes.len()] }
    }

    /// The old node with its operands renamed. Operands come before their users, so they are
    /// mapped already; one that was left out keeps its number and the verifier complains.
    pub fn renamed(&self, node: &Node) -> Node {
        let mut node = node.clone();
        for o in &mut node.operands {
            *o = self.map[o.0 as usize].unwrap_or(*o);
        }
        node
    }

    /// Records that the old node is now `new`.
    pub fn set(&mut self, old: NodeId, new: NodeId) {
        self.map[old.0 as usize] = Some(new);
    }

    /// Finishes with the outputs of `old`.
    pub fn finish(mut self, old: &Graph) -> Graph {
        self.graph.outputs = old.outputs.iter().map(|o| self.map[o.0 as usize].unwrap_or(*o)).collect();
        self.graph
    }
}

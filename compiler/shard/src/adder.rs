//! Nodes in place of another: what rewrites a graph before it is laid out builds with.

use std::ops::Range;
use tessera_base::{DType, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType, Reason};
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Build, Id};

/// The pass that makes what devices add up in any order.
pub const SUMMANDS: &str = "summands";

/// Adds nodes in place of another.
pub struct Adder<'a> {
    pub graph: &'a mut Graph,
    pub like: &'a Node,
}

impl Adder<'_> {
    /// States that a node holds what each device has summed, where their order decides the last bits.
    pub fn holds_summands(&mut self, id: Id) {
        let node = &mut self.graph.nodes[id.0 as usize];
        if node.ty.dtype.is_float() {
            node.origin.reason = Some(Reason::Pass(SUMMANDS));
        }
    }

    /// What devices found along the dims `nodes`, for all of which it goes on: the axes `free` share out another dim, the
    /// one that is `preferred` if they divide it, else the longest that they divide; where there is none each device gets
    /// everything. `lies`: how the other dims are split.
    pub fn share_out(
        &mut self,
        x: Id,
        lies: Sharding,
        nodes: Range<usize>,
        free: Vec<String>,
        preferred: Option<usize>,
    ) -> Id {
        let (shape, mut dims) = (self.shape(x), lies.dims.clone());
        let size = |axes: &[String]| -> u64 { axes.iter().filter_map(|a| lies.mesh.as_ref()?.size(a)).product() };
        let even = |d: &usize| !nodes.contains(d) && shape[*d].is_multiple_of(size(&dims[*d]) * size(&free));
        let longest = || (0..shape.len()).filter(even).max_by_key(|&d| shape[d] / size(&dims[d]));
        if let Some(d) = preferred.filter(even).or_else(longest) {
            dims[d].extend(free);
        }
        let sharding = Sharding { dims, ..lies.clone() }.normal(shape.len());
        let ty = NodeType { sharding, ..NodeType::new(shape, self.dtype(x)) };
        self.typed(Prim::Layout, &[x], ty)
    }

    /// A node whose type says how it lies.
    pub fn typed(&mut self, prim: Prim, operands: &[Id], ty: NodeType) -> Id {
        let operands = operands.iter().map(|id| NodeId(id.0)).collect();
        let (origin, policy) = (self.like.origin.of_pass("shard"), self.like.policy);
        Id(self.graph.push(Node { prim, operands, ty, results: vec![], origin, policy }).0)
    }
}

impl Build for Adder<'_> {
    fn shape(&self, id: Id) -> Vec<u64> {
        self.graph.ty(NodeId(id.0)).shape.clone()
    }

    fn dtype(&self, id: Id) -> DType {
        self.graph.ty(NodeId(id.0)).dtype
    }

    fn push(&mut self, prim: Prim, operands: &[Id], shape: Vec<u64>, dtype: DType) -> Id {
        self.typed(prim, operands, NodeType::new(shape, dtype))
    }
}

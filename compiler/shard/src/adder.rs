//! Nodes in place of another: what rewrites a graph before it is laid out builds with.

use tessera_base::DType;
use tessera_ir::graph::{Graph, Node, NodeId, NodeType, Origin, Reason};
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Build, Id};

/// Adds nodes in place of another.
pub struct Adder<'a> {
    pub graph: &'a mut Graph,
    pub like: &'a Node,
}

impl Adder<'_> {
    fn origin(&self) -> Origin {
        Origin { span: self.like.origin.span, reason: Some(Reason::Pass("shard")), kernel: None }
    }

    /// A node whose type says how it lies.
    pub fn typed(&mut self, prim: Prim, operands: &[Id], ty: NodeType) -> Id {
        let operands = operands.iter().map(|id| NodeId(id.0)).collect();
        let (origin, policy) = (self.origin(), self.like.policy);
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

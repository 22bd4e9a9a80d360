//! Elementwise work behind a product in a kernel: `A @ B + C` of 16-bit tensors adds in f32 and
//! rounds once, where the value leaves the kernel or goes into another kind of operator.

use super::Tracer;
use std::sync::Arc;
use tessera_base::DType;
use tessera_ir::graph::{Node, NodeId, NodeType, Origin, Reason};
use tessera_ops::prim::Prim;
use tessera_ops::surface::Id;

/// Marks the rounding at the end of such a computation; one that the program writes stays.
const ROUNDING: &str = "rounding of an epilogue";

impl Tracer<'_> {
    /// The result of an operator that was expanded from node `first_new` on, computed in f32 and
    /// rounded where it is elementwise on a product; otherwise as it is.
    pub(super) fn epilogue(&mut self, id: Id, first_new: usize) -> Id {
        let graph = &self.level().graph;
        let node = graph.node(NodeId(id.0)).clone();
        let elementwise = matches!(&node.prim, Prim::Map(op) if op.def().arity == node.operands.len());
        let narrow = |d: DType| d.is_float() && d.bytes() < 4;
        let same = node.operands.iter().all(|&o| graph.ty(o).dtype == node.ty.dtype);
        if !elementwise || !same || !narrow(node.ty.dtype) || (id.0 as usize) < first_new {
            return id;
        }
        let wide: Vec<Option<NodeId>> = node.operands.iter().map(|&o| self.wide(o)).collect();
        if wide.iter().all(Option::is_none) {
            return id;
        }
        let mut operands = vec![];
        for (&o, wide) in node.operands.iter().zip(wide) {
            let shape = self.level().graph.ty(o).shape.clone();
            operands.push(match wide {
                Some(w) => w,
                None => self.add(&node, Prim::Cast, vec![o], shape, DType::F32, Some(Reason::Widen)),
            });
        }
        let shape = node.ty.shape.clone();
        let result =
            self.add(&node, node.prim.clone(), operands, shape.clone(), DType::F32, node.origin.reason.clone());
        let rounding = Some(Reason::Expansion(Arc::from(ROUNDING)));
        Id(self.add(&node, Prim::Cast, vec![result], shape, node.ty.dtype, rounding).0)
    }

    /// Whether a node is the rounding at the end of an epilogue.
    pub(super) fn is_rounding(&mut self, id: Id) -> bool {
        let node = self.level().graph.node(NodeId(id.0));
        matches!(&node.origin.reason, Some(Reason::Expansion(of)) if **of == *ROUNDING)
    }

    /// The f32 value that a node of this kernel rounds, if it is a product, an epilogue of one,
    /// or a view of such.
    fn wide(&mut self, id: NodeId) -> Option<NodeId> {
        let kernel = self.kernel_function(self.kernel);
        let graph = &self.level().graph;
        let node = graph.node(id).clone();
        // Directives of a part of the kernel change no result.
        if kernel.is_none() || self.kernel_function(node.origin.kernel) != kernel {
            return None;
        }
        let shape = node.ty.shape.clone();
        match &node.prim {
            Prim::Dot { accum: DType::F32, .. } => Some(self.add(
                &node,
                node.prim.clone(),
                node.operands.clone(),
                shape,
                DType::F32,
                node.origin.reason.clone(),
            )),
            Prim::Cast if self.is_rounding(Id(id.0)) => node.operands.first().copied(),
            Prim::Reshape | Prim::Transpose { .. } | Prim::Slice { .. } | Prim::Broadcast { .. } => {
                let inner = self.wide(*node.operands.first()?)?;
                Some(self.add(&node, node.prim.clone(), vec![inner], shape, DType::F32, node.origin.reason.clone()))
            }
            _ => None,
        }
    }

    fn add(
        &mut self,
        like: &Node,
        prim: Prim,
        operands: Vec<NodeId>,
        shape: Vec<u64>,
        dtype: DType,
        reason: Option<Reason>,
    ) -> NodeId {
        let origin = Origin { reason, ..like.origin.clone() };
        self.level().graph.push(Node { prim, operands, ty: NodeType::new(shape, dtype), origin, ..like.clone() })
    }
}

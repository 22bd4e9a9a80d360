//! Adding nodes to a graph on behalf of a derivative, and what the rule of a primitive is given for it.

use crate::graph::{Calls, Graph, Input, Node, NodeId, NodeType, Origin, Policy, Reason};
use tessera_base::{DType, Span};
use tessera_ops::prim::{Prim, Scalar};
use tessera_ops::surface::{Body, Build, Derivative, Id, Loop, expand};

/// Nodes added through it have the place and the policy of the node that is differentiated.
pub struct Writer<'g> {
    pub graph: &'g mut Graph,
    pub span: Span,
    pub calls: Calls,
    pub policy: Policy,
    /// Marks computations that are kept apart from equal ones.
    pub again: Option<u32>,
    /// The kernel that they belong to.
    pub kernel: Option<u32>,
}

impl Build for Writer<'_> {
    fn shape(&self, id: Id) -> Vec<u64> {
        self.graph.ty(NodeId(id.0)).shape.clone()
    }

    fn dtype(&self, id: Id) -> DType {
        self.graph.ty(NodeId(id.0)).dtype
    }

    fn push(&mut self, prim: Prim, operands: &[Id], shape: Vec<u64>, dtype: DType) -> Id {
        let operands = operands.iter().map(|id| NodeId(id.0)).collect();
        Id(self.node(prim, operands, NodeType::new(shape, dtype), vec![]).0)
    }

    fn again(&mut self, on: bool) {
        self.again = on.then_some(self.graph.nodes.len() as u32);
    }

    fn hold(&mut self, x: Id) {
        self.graph.derivatives.hold(NodeId(x.0));
    }

    fn derive(&mut self, d: Derivative) {
        self.graph.derivatives.add_steps(d);
    }

    fn scan(&mut self, l: Loop, body: Body) -> Option<Vec<Id>> {
        let mut inside = Graph { name: "body".into(), ..Graph::default() };
        let operands: Vec<NodeId> =
            [l.carry, l.sequences, l.constants].into_iter().flatten().map(|id| NodeId(id.0)).collect();
        let rows = l.carry.len()..l.carry.len() + l.sequences.len();
        let (span, calls) = (self.span, self.calls.clone());
        let mut w = Writer { span, calls, kernel: self.kernel, ..Writer::new(&mut inside, self.policy) };
        let mut inputs = vec![];
        for (i, operand) in operands.iter().enumerate() {
            let ty = self.graph.ty(*operand);
            let shape = if rows.contains(&i) { ty.shape.get(1..)?.to_vec() } else { ty.shape.clone() };
            let ty = NodeType::new(shape, ty.dtype);
            w.graph.inputs.push(Input { name: format!("x{i}").into(), ty: ty.clone(), scalar: false });
            inputs.push(Id(w.node(Prim::Input(i as u32), vec![], ty, vec![]).0));
        }
        let outputs: Vec<NodeId> = body(&mut w, &inputs).into_iter().map(|id| NodeId(id.0)).collect();
        let result = |(i, o): (usize, &NodeId)| match i < l.carry.len() {
            true => inside.ty(*o).unsharded(),
            false => inside.ty(*o).stacked(l.trips),
        };
        let results: Vec<NodeType> = outputs.iter().enumerate().map(result).collect();
        inside.outputs = outputs;
        self.graph.bodies.push(inside);
        let prim = Prim::Scan {
            body: self.graph.bodies.len() as u32 - 1,
            carry: l.carry.len(),
            sequences: l.sequences.len(),
            trips: l.trips,
            reversed: false,
            until: false,
        };
        let looped = self.node(prim, operands, results.first()?.clone(), results.clone());
        (0..results.len()).map(|index| Some(Id(self.get(looped, index)?.0))).collect()
    }
}

impl<'g> Writer<'g> {
    /// A way to add nodes that come from nowhere.
    pub fn new(graph: &'g mut Graph, policy: Policy) -> Writer<'g> {
        Writer { graph, span: Span::NONE, calls: Calls::default(), policy, again: None, kernel: None }
    }

    /// A way to add nodes that come from where another one does.
    pub fn of(graph: &'g mut Graph, origin: &Origin, policy: Policy) -> Writer<'g> {
        Writer { span: origin.span, calls: origin.calls.clone(), ..Writer::new(graph, policy) }
    }

    /// Adds a node; `results` are the types of one with several.
    pub fn node(&mut self, prim: Prim, operands: Vec<NodeId>, ty: NodeType, results: Vec<NodeType>) -> NodeId {
        let reason = Some(self.again.map_or(Reason::Derivative, Reason::Again));
        let origin = Origin { span: self.span, calls: self.calls.clone(), reason, kernel: self.kernel };
        self.graph.push(Node { prim, operands, ty, results, origin, policy: self.policy })
    }

    /// Result `index` of a node with several.
    pub fn get(&mut self, node: NodeId, index: usize) -> Option<NodeId> {
        let ty = self.graph.node(node).results.get(index)?.clone();
        Some(self.node(Prim::Get { index }, vec![node], ty, vec![]))
    }
}

/// Whether values of the type have derivatives.
pub fn smooth(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}

/// A tensor of zeros of a node's type.
pub fn zeros_like(w: &mut Writer, id: NodeId) -> NodeId {
    let ty = w.graph.ty(id).clone();
    NodeId(expand::full(w, &ty.shape, ty.dtype, Scalar::F(0.0)).0)
}

/// Cotangents of the operands, or why there are none.
pub type Pulled = Result<Vec<Option<Id>>, &'static str>;

/// One application of the rule of a primitive.
pub struct At<'a, 'g> {
    pub w: &'a mut Writer<'g>,
    /// Operands.
    pub x: Vec<Id>,
    /// The result.
    pub y: Id,
    /// Cotangent of the result, of its type.
    pub c: Id,
    /// Which operands' cotangents are asked for.
    pub needed: &'a [bool],
}

impl At<'_, '_> {
    pub fn shape(&self, id: Id) -> Vec<u64> {
        self.w.shape(id)
    }

    pub fn dtype(&self, id: Id) -> DType {
        self.w.dtype(id)
    }

    /// Zeros of the type of a node.
    pub fn zeros(&mut self, like: Id) -> Id {
        let (shape, dtype) = (self.shape(like), self.dtype(like));
        self.zeros_of(&shape, dtype)
    }

    pub fn zeros_of(&mut self, shape: &[u64], dtype: DType) -> Id {
        expand::full(self.w, shape, dtype, Scalar::F(0.0))
    }

    /// Adds a primitive of the type of another node.
    pub fn like(&mut self, like: Id, prim: Prim, operands: &[Id]) -> Id {
        let (shape, dtype) = (self.shape(like), self.dtype(like));
        self.w.push(prim, operands, shape, dtype)
    }
}

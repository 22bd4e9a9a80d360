//! The graphs under construction: one, and one more for each loop body that is being traced.

use super::Tracer;
use super::ranges::Range;
use super::scalar::{Known, ScalarExpr};
use super::turns::Turn;
use super::value::{Scalar, Tensor};
use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_base::{DType, Span};
use tessera_ir::graph::{Calls, Graph, Input, Node, NodeId, NodeType, Origin, Policy, Reason};
use tessera_ops::prim::{self, Prim};
use tessera_ops::surface::{Build, Derivative, Id};

/// A graph under construction.
#[derive(Default)]
pub struct Level {
    pub graph: Graph,
    /// Input nodes for argument leaves (outermost graph only).
    leaves: BTreeMap<u32, NodeId>,
    /// Input nodes for scalars (outermost graph only).
    scalars: Vec<(Arc<ScalarExpr>, NodeId)>,
    /// What each input of the outermost graph is.
    pub sources: Vec<super::InputSource>,
    /// Nodes of the graph outside that this one uses, in the order of their inputs, and the
    /// inputs that hold them (loop bodies only).
    pub outer: Vec<(NodeId, NodeId)>,
    /// Bounds of host numbers among the nodes.
    ranges: BTreeMap<NodeId, Range>,
    /// What must be computed even where no one reads it, for it may fail.
    pub checks: Vec<NodeId>,
    /// Of the body of a loop over positions.
    pub turn: Option<Turn>,
}

impl Level {
    /// Adds an input.
    pub fn input(&mut self, name: &str, ty: NodeType, scalar: bool, span: Span) -> NodeId {
        let n = self.graph.inputs.len() as u32;
        self.graph.inputs.push(Input { name: name.into(), ty: ty.clone(), scalar });
        self.graph.push(Node {
            prim: Prim::Input(n),
            operands: vec![],
            // Where it lies, the input says.
            ty: NodeType { sharding: Default::default(), ..ty },
            results: vec![],
            origin: Origin { span, ..Origin::default() },
            policy: Policy::default(),
        })
    }
}

/// How far a graph under construction has come.
pub struct Mark {
    nodes: usize,
    inputs: usize,
    bodies: usize,
    scalars: usize,
    sources: usize,
    outer: usize,
    checks: usize,
    wanted: usize,
}

impl Level {
    /// Between which bounds a host number among the nodes lies.
    pub fn range(&self, id: NodeId) -> Range {
        self.ranges.get(&id).copied().unwrap_or(Range::Unknown)
    }

    pub fn set_range(&mut self, id: NodeId, range: Range) {
        self.ranges.insert(id, range);
    }

    pub fn mark(&self) -> Mark {
        Mark {
            nodes: self.graph.nodes.len(),
            inputs: self.graph.inputs.len(),
            bodies: self.graph.bodies.len(),
            scalars: self.scalars.len(),
            sources: self.sources.len(),
            outer: self.outer.len(),
            checks: self.checks.len(),
            wanted: self.turn.as_ref().map_or(0, |t| t.wanted.len()),
        }
    }

    /// Forgets what was added after the mark.
    pub fn reset(&mut self, mark: &Mark) {
        self.graph.nodes.truncate(mark.nodes);
        self.graph.inputs.truncate(mark.inputs);
        self.graph.bodies.truncate(mark.bodies);
        self.scalars.truncate(mark.scalars);
        self.sources.truncate(mark.sources);
        self.outer.truncate(mark.outer);
        self.checks.truncate(mark.checks);
        if let Some(turn) = &mut self.turn {
            turn.wanted.truncate(mark.wanted);
        }
        self.ranges.retain(|id, _| (id.0 as usize) < mark.nodes);
        self.graph.derivatives.truncate(NodeId(mark.nodes as u32));
        self.leaves.retain(|_, id| (id.0 as usize) < mark.nodes);
    }
}

/// Adds nodes on behalf of an operator.
pub struct Adder<'a> {
    pub graph: &'a mut Graph,
    pub span: Span,
    pub policy: Policy,
    /// The operator that is being expanded.
    pub of: Arc<str>,
    pub kernel: Option<u32>,
    pub calls: Calls,
}

impl Build for Adder<'_> {
    fn shape(&self, id: Id) -> Vec<u64> {
        self.graph.ty(NodeId(id.0)).shape.clone()
    }

    fn dtype(&self, id: Id) -> DType {
        self.graph.ty(NodeId(id.0)).dtype
    }

    fn push(&mut self, prim: Prim, operands: &[Id], shape: Vec<u64>, dtype: DType) -> Id {
        let operands: Vec<NodeId> = operands.iter().map(|id| NodeId(id.0)).collect();
        let weak = operands.first().is_some_and(|&o| self.is_scalar(o));
        let reason = match &prim {
            Prim::Broadcast { .. } => Reason::Broadcast,
            Prim::Cast if weak => Reason::WeakScalar,
            Prim::Cast => Reason::Widen,
            Prim::Full { .. } => Reason::WeakScalar,
            _ => Reason::Expansion(self.of.clone()),
        };
        let id = self.graph.push(Node {
            prim,
            operands,
            ty: NodeType::new(shape, dtype),
            results: vec![],
            origin: Origin { span: self.span, calls: self.calls.clone(), reason: Some(reason), kernel: self.kernel },
            policy: self.policy,
        });
        Id(id.0)
    }

    fn hold(&mut self, x: Id) {
        self.graph.derivatives.hold(NodeId(x.0));
    }

    fn derive(&mut self, d: Derivative) {
        self.graph.derivatives.add_steps(d);
    }
}

impl Adder<'_> {
    fn is_scalar(&self, id: NodeId) -> bool {
        matches!(self.graph.node(id).prim, Prim::Input(n) if self.graph.inputs[n as usize].scalar)
    }
}

impl Tracer<'_> {
    pub(super) fn level(&mut self) -> &mut Level {
        // There is always the outermost graph.
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    pub(super) fn depth(&self) -> u32 {
        self.levels.len() as u32 - 1
    }

    /// Type of a tensor.
    pub(super) fn ty(&self, t: Tensor) -> NodeType {
        match t {
            Tensor::Leaf(n) => self.leaf_types[n as usize].clone(),
            Tensor::Node { level, id } => self.levels[level as usize].graph.ty(id).clone(),
        }
    }

    /// The node of the innermost graph that holds the tensor.
    pub(super) fn node(&mut self, t: Tensor) -> NodeId {
        self.node_at(t, self.depth())
    }

    /// The node of the graph at a depth that holds the tensor, which is made there or further out.
    pub(super) fn node_at(&mut self, t: Tensor, depth: u32) -> NodeId {
        let (level, id) = match t {
            Tensor::Leaf(n) => (0, self.leaf_node(n)),
            Tensor::Node { level, id } => (level, id),
        };
        (level + 1..=depth).fold(id, |id, level| self.import(level as usize, id))
    }

    pub(super) fn leaf_node(&mut self, leaf: u32) -> NodeId {
        if let Some(&id) = self.levels[0].leaves.get(&leaf) {
            return id;
        }
        let (ty, name) = (self.leaf_types[leaf as usize].clone(), self.leaf_names[leaf as usize].clone());
        let top = &mut self.levels[0];
        let id = top.input(&name, ty, false, Span::NONE);
        top.leaves.insert(leaf, id);
        top.sources.push(super::InputSource::Tensor(leaf));
        id
    }

    /// The input of a loop body that holds a node of the graph outside.
    fn import(&mut self, level: usize, outer: NodeId) -> NodeId {
        if let Some((_, id)) = self.levels[level].outer.iter().find(|(o, _)| *o == outer) {
            return *id;
        }
        let ty = self.levels[level - 1].graph.ty(outer).unsharded();
        let body = &mut self.levels[level];
        let id = body.input("constant", ty, false, Span::NONE);
        body.outer.push((outer, id));
        id
    }

    /// A node that holds a scalar: rank 0, f64, i64 or bool.
    pub(super) fn scalar_node(&mut self, s: &Scalar, span: Span) -> NodeId {
        match s {
            Scalar::Known(v) => {
                let value = match *v {
                    Known::Int(n) => prim::Scalar::I(n),
                    Known::Float(x) => prim::Scalar::F(x),
                    Known::Bool(b) => prim::Scalar::I(b as i64),
                };
                let dtype = v.kind().dtype();
                NodeId(self.adder("", span).push(Prim::Full { value }, &[], vec![], dtype).0)
            }
            Scalar::Late(e, _) => {
                let known = self.levels[0].scalars.iter().find(|(k, _)| Arc::ptr_eq(k, e) || k == e).map(|(_, id)| *id);
                let id = known.unwrap_or_else(|| {
                    let top = &mut self.levels[0];
                    let name = format!("scalar{}", top.scalars.len());
                    let id = top.input(&name, NodeType::new(vec![], e.kind().dtype()), true, span);
                    top.scalars.push((e.clone(), id));
                    top.sources.push(super::InputSource::Scalar(e.clone()));
                    id
                });
                self.node(Tensor::Node { level: 0, id })
            }
            Scalar::Node(_, t) => self.node(*t),
        }
    }

    /// Where nodes come from that a place of the text makes.
    pub(super) fn origin(&self, span: Span) -> Origin {
        Origin { span, calls: self.calls.clone(), reason: None, kernel: self.kernel }
    }

    /// A way to add nodes to the innermost graph.
    pub(super) fn adder(&mut self, of: &str, span: Span) -> Adder<'_> {
        let (policy, kernel, calls) = (self.policy, self.kernel, self.calls.clone());
        Adder { graph: &mut self.level().graph, span, policy, of: of.into(), kernel, calls }
    }

    /// A node of the innermost graph as a value.
    pub(super) fn tensor(&self, id: NodeId) -> Tensor {
        Tensor::Node { level: self.depth(), id }
    }

    pub(super) fn tensor_id(&self, id: Id) -> Tensor {
        self.tensor(NodeId(id.0))
    }
}

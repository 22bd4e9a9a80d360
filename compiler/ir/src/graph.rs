//! Graph IR: a tensor program as a directed acyclic graph with concrete shapes.
//!
//! Append-only and in topological order: a node's operands come before it. Passes rebuild.

pub mod derivatives;

use crate::hints::KernelHints;
use derivatives::Derivatives;
use std::fmt;
use std::sync::Arc;
use tessera_base::{DType, Sharding, Span};
use tessera_ops::prim::Prim;

/// A node, printed as `%7`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// Concrete shape and element type of a node's result.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NodeType {
    pub shape: Vec<u64>,
    pub dtype: DType,
    pub sharding: Sharding,
}

impl NodeType {
    pub fn new(shape: Vec<u64>, dtype: DType) -> NodeType {
        NodeType { shape, dtype, sharding: Sharding::default() }
    }

    /// The same wherever it lies.
    pub fn unsharded(&self) -> NodeType {
        NodeType::new(self.shape.clone(), self.dtype)
    }

    /// The type of so many values of this one, stacked along a new first dim.
    pub fn stacked(&self, count: u64) -> NodeType {
        NodeType::new([&[count][..], &self.shape].concat(), self.dtype)
    }

    /// Number of elements; `None` on overflow of 64 bits.
    pub fn elems(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d))
    }

    pub fn bytes(&self) -> Option<u64> {
        self.elems()?.checked_mul(self.dtype.bytes() as u64)
    }
}

/// The order that sums keep: see the numerics chapter of the documentation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Policy {
    #[default]
    Deterministic,
    Fast,
    KahanSum,
}

/// Why a node exists that the program does not spell out. `tessera explain` prints it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// An operand of another shape.
    Broadcast,
    /// An operand of another element type, exactly widened.
    Widen,
    /// A Python scalar took the tensor's element type.
    WeakScalar,
    /// Part of a composite operator.
    Expansion(Arc<str>),
    /// Made by a pass.
    Pass(&'static str),
    /// Part of a derivative.
    Derivative,
    /// Computed a second time instead of being kept for a derivative; the number tells one
    /// such computation from the others, so that they are not merged.
    Again(u32),
    /// Computed a second time, so that a graph needs no more memory than it may; the number as above.
    Memory(u32),
}

/// Where the calls stand that led to a place, outermost first. What one call computes shares them.
pub type Calls = Arc<[Span]>;

/// Where a node comes from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    pub span: Span,
    /// The calls that were traced into the graph to get there. No meaning, text or key has them.
    pub calls: Calls,
    pub reason: Option<Reason>,
    /// The kernel that the node belongs to, by position in [`Graph::kernels`].
    pub kernel: Option<u32>,
}

impl Origin {
    /// Of what a pass makes in place of a node, in no kernel of the program's.
    pub fn of_pass(&self, name: &'static str) -> Origin {
        Origin { reason: Some(Reason::Pass(name)), kernel: None, ..self.clone() }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    pub prim: Prim,
    pub operands: Vec<NodeId>,
    pub ty: NodeType,
    /// Types of all results of a node with several (`Scan`); empty otherwise.
    pub results: Vec<NodeType>,
    pub origin: Origin,
    pub policy: Policy,
}

impl Node {
    /// The number of the computation that the node was repeated for.
    pub fn again(&self) -> Option<u32> {
        match self.origin.reason {
            Some(Reason::Again(number) | Reason::Memory(number)) => Some(number),
            _ => None,
        }
    }
}

/// What the caller passes.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    pub name: Arc<str>,
    pub ty: NodeType,
    /// A host scalar (rank 0, f64, i64 or bool), passed by value and not as a tensor.
    pub scalar: bool,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Graph {
    pub name: String,
    pub inputs: Vec<Input>,
    pub nodes: Vec<Node>,
    pub outputs: Vec<NodeId>,
    /// Bodies of loops.
    pub bodies: Vec<Graph>,
    /// What kernels ask of the scheduler.
    pub kernels: Vec<KernelHints>,
    /// Bytes that what lies between the inputs and the outputs may take, where there is a bound.
    pub memory: Option<u64>,
    /// What is known about derivatives beyond those of the primitives. Only tracing fills and
    /// reads it; passes drop it.
    pub derivatives: Derivatives,
}

impl Graph {
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub fn ty(&self, id: NodeId) -> &NodeType {
        &self.node(id).ty
    }

    pub fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }
}

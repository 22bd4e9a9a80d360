//! What a row states: the columns, and the words that they are written in.

pub use crate::body::{self, Asked, Body, Refusal, part_type};
pub use crate::graph::{Graph, Node, NodeId, NodeType, Policy};
pub use crate::group::Role;
pub use crate::index::{Index, Term, Var, delinear, linear, row_major};
pub use crate::lift::{Lift, Lifted, Value};
pub use crate::links::{Link, Reach, first_of_sorted, reshaped};
pub use crate::schedule::{Guard, ValueId, ValueOp};
pub use crate::writer::{At, Pulled, Writer};
pub use std::cmp::Ordering;
pub use std::ops::Range;
pub use std::sync::Arc;
pub use tessera_abi::check as abi;
pub use tessera_base::{Blocks, DType, Monoid};
pub use tessera_ops::map::MapOp;
pub use tessera_ops::prim::{self, Prim, Reduction, Scalar, Steps};
pub use tessera_ops::surface::{Build, Id, expand};

/// A primitive with its attributes: one row of the table. Every column is required, so that a primitive which does not
/// state one does not compile. Attributes are the row's own; operands and result come with the [`Site`].
pub trait Primitive {
    /// How the dims belong together: one link for each dim of each operand.
    fn links(&self, at: Site) -> Vec<Vec<Link>>;

    /// Whether the operation on summands (or on what is compared) is that of the whole.
    fn keeps_partial(&self, at: Site, of: Summand) -> bool;

    /// The primitive that makes a box of the result from these boxes of its operands; `None` where it is this one.
    fn of_box(&self, result: &[Range<u64>], operands: &[Vec<Range<u64>>]) -> Option<Prim>;

    /// Cotangents of the operands from that of the result, or why there are none. Those that are not needed may be left out,
    /// and an operand without one has none.
    fn pull(&self, at: &mut At) -> Pulled;

    /// The form whose operands have so many more dims in front.
    fn lifted(&self, dims: usize) -> Lifted;

    /// The node for many values, with other primitives: where its form does not do, or something does better. Asked before
    /// [`Primitive::lifted`]; where neither gives anything the node is written out, once for each value.
    fn batch(&self, lift: &mut Lift, node: &Node) -> Option<Id>;

    /// What the node can be in a kernel.
    fn role(&self, at: Site) -> Role;

    /// A part of the result at an index, as values of a kernel's body; or why kernels have no such value, and the reference
    /// kernel runs or one of the runtime.
    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal>;
}

/// A primitive where it stands.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    pub g: &'a Graph,
    pub node: &'a Node,
}

impl<'a> Site<'a> {
    /// How many operands there are.
    pub fn count(&self) -> usize {
        self.node.operands.len()
    }

    /// The shape of an operand; that of a scalar where there is none, which the verifier tells.
    pub fn shape(&self, operand: usize) -> &'a [u64] {
        let Site { g, node } = *self;
        node.operands.get(operand).map_or(&[][..], |&o| &g.ty(o).shape)
    }

    pub fn rank(&self, operand: usize) -> usize {
        self.shape(operand).len()
    }

    /// The element type of an operand that is there.
    pub fn dtype(&self, operand: usize) -> DType {
        self.g.ty(self.node.operands[operand]).dtype
    }

    /// The shape of the result.
    pub fn result(&self) -> &'a [u64] {
        let node = self.node;
        &node.ty.shape
    }

    /// Whether the result or an operand holds complex numbers.
    pub fn is_complex(&self) -> bool {
        self.node.ty.dtype == DType::C64 || (0..self.count()).any(|i| self.dtype(i) == DType::C64)
    }

    /// Whether the result has no elements.
    pub fn is_empty(&self) -> bool {
        self.node.ty.elems() == Some(0)
    }

    /// The dims of an operand are those of the result.
    pub fn pass(&self, operand: usize) -> Vec<Link> {
        (0..self.rank(operand)).map(Link::Pass).collect()
    }

    /// The same but for one of them.
    pub fn pass_but(&self, operand: usize, axis: usize, link: Link) -> Vec<Link> {
        (0..self.rank(operand)).map(|d| if d == axis { link } else { Link::Pass(d) }).collect()
    }

    /// Any position of an operand may be needed for any of the result.
    pub fn whole(&self, operand: usize) -> Vec<Link> {
        vec![Link::Whole; self.rank(operand)]
    }

    /// The links of the first operand; of the others any position may be needed.
    pub fn others_whole(&self, first: Vec<Link>) -> Vec<Vec<Link>> {
        [first].into_iter().chain((1..self.count()).map(|i| self.whole(i))).collect()
    }
}

/// An operand that is partial along an axis of a mesh.
#[derive(Clone, Copy)]
pub struct Summand {
    pub monoid: Monoid,
    /// Which one it is.
    pub operand: usize,
    /// The others lie along the axis as it does.
    pub others_alike: bool,
    /// The others are the same everywhere along it.
    pub others_same: bool,
}

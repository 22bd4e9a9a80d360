//! What a row states: the columns, and the words that they are written in.

pub use crate::body::{self, Asked, Body, Refusal, part_type};
pub use crate::graph::{Graph, Node, NodeId, NodeType, Policy};
pub use crate::group::Role;
pub use crate::index::{Index, Term, Var, delinear, linear, regrouped, row_major};
pub use crate::lift::{Lift, Lifted, Value};
pub use crate::links::{Link, Reach, first_of_sorted, reshaped};
pub use crate::part;
pub use crate::schedule::{Guard, ValueId, ValueOp};
pub use crate::text::{Attr, Attrs, Op, TextError};
pub use crate::writer::{At, Pulled, Writer};
pub use std::borrow::Cow;
pub use std::cmp::Ordering;
pub use std::ops::Range;
pub use std::sync::Arc;
pub use tessera_abi::check as abi;
pub use tessera_base::{Blocks, DType, Monoid};
pub use tessera_ops::map::MapOp;
pub use tessera_ops::prim::{self, Order, Prim, Reduction, Scalar, Steps};
pub use tessera_ops::reference::{self, ArrayRef, EvalError, Summation, TypeRef, elems, rule, rule::*};
pub use tessera_ops::surface::{Build, Id, expand};

/// A primitive with its attributes: one row of the table. Every column is required, so that a primitive which does not
/// state one does not compile. Attributes are the row's own; operands and result come with the [`Site`].
pub trait Primitive {
    /// Whether the operands fit and the result has the type that they give: lower case, without a full stop. Where several
    /// element types are possible for the result (reductions, products, conversions) any real one passes.
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check;

    /// What it asks of the graph around it, beyond the types of its operands.
    fn stands(&self, at: Site) -> rule::Check;

    /// Its name in text, and its attributes.
    fn text(&self, at: Site, put: &mut Attrs) -> Word;

    /// The primitive of a name of its own; `None` for other names.
    fn read(name: &str, op: &Op, around: &mut Around) -> Option<Read>
    where
        Self: Sized;

    /// The bytes of the result, of operands that fit.
    fn meaning(&self, x: &[ArrayRef], result: TypeRef, sums: Summation) -> Meaning;

    /// How the dims belong together: one link for each dim of each operand.
    fn links(&self, at: Site) -> Vec<Vec<Link>>;

    /// Whether the operation on summands (or on what is compared) is that of the whole.
    fn keeps_partial(&self, at: Site, of: Summand) -> bool;

    /// The primitive that makes a box of the result from boxes of its operands; `None` where it is this one.
    fn of_box(&self, boxes: &Boxes) -> Option<Prim>;

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

    /// The parts of the operands that a part of the result is computed from, all of those that are not named; `None` where
    /// the node has to be computed in full.
    fn asks(&self, at: Site, part: &part::Part) -> Option<Vec<part::Part>>;

    /// Which elements of operands an element of the result is made of: where what is not finite came from.
    fn comes_from(&self, at: Site) -> Source;

    /// What it costs.
    fn cost(&self, at: Site) -> Cost;

    /// Whether any element of the result may need every element of an operand.
    fn reads_all(&self, operand: usize) -> bool;

    /// What passes ask with yes or no.
    fn flags(&self) -> Flags;

    /// What kernels are named after.
    fn word(&self) -> Word;
}

/// What passes ask of a primitive with yes or no.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flags {
    /// It computes or moves something: constants and views do not.
    pub work: bool,
    /// Elements lie as they did: each element of the result is computed from those at its place.
    pub step: bool,
    /// It takes some of its operands' elements, or puts elements beside others.
    pub selects: bool,
    /// Computing it again is cheaper than a store and a load.
    pub cheap: bool,
    /// It stays though nothing in the graph reads it, since others do.
    pub kept: bool,
}

/// Which elements of operands an element of a result is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Those at the same row-major position.
    Same,
    /// Operand 0 says at the same position whether it is that of operand 1 or that of operand 2.
    Chosen,
    /// One element of the first so many operands, which the primitive moves: moving their positions tells which.
    Moved(usize),
    /// Several, or all.
    Any,
    /// Those of a turn of a loop, of which it is a result.
    Turn,
}

/// What a node costs, by its shapes alone.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Additions, multiplications, comparisons and calls of elementwise functions, each of them one; conversions and
    /// movement are none.
    pub operations: u64,
    /// Of computing it a second time instead of keeping it.
    pub again: Again,
    /// Nanoseconds of its reference kernel, roughly.
    pub interpreted: f64,
}

/// Nanoseconds that a second computation takes, roughly.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Again {
    /// Elementwise steps, reductions, what only moves elements.
    Cheap(f64),
    /// Products, transforms.
    Dear(f64),
    /// What devices exchange, loops, results of several, and what sorts or writes at positions.
    Never,
}

/// A name in text.
pub type Word = Cow<'static, str>;

/// A primitive that was read, or what is wrong with its text.
pub type Read = Result<Prim, TextError>;

/// The bytes of a result, or why a kernel stopped.
pub type Meaning = Result<Vec<u8>, EvalError>;

/// [`Primitive::read`] of a primitive that is not in the list.
pub type ReadOwn = fn(&str, &Op, &mut Around) -> Option<Read>;

/// What a primitive that is read may need.
pub struct Around<'a> {
    /// The graph so far.
    pub g: &'a mut Graph,
    /// The type of the result.
    pub ty: &'a NodeType,
    /// How primitives are read that are not in the list.
    pub own: &'a [ReadOwn],
    /// Reads a graph.
    pub graph: fn(&Op, &[ReadOwn]) -> Result<Graph, TextError>,
}

impl Around<'_> {
    /// The body that is the region of an operation, by its position among those of the graph.
    ///
    /// # Errors
    /// There is not one region with one graph.
    pub fn body(&mut self, op: &Op) -> Result<u32, TextError> {
        let [body] = op.regions.as_slice() else { return Err(op.error(format!("a {} has one region", last(op)))) };
        let [body] = body.as_slice() else {
            return Err(op.error(format!("the region of a {} holds one graph", last(op))));
        };
        let body = (self.graph)(body, self.own)?;
        self.g.bodies.push(body);
        Ok(self.g.bodies.len() as u32 - 1)
    }
}

/// The last word of an operation's name.
fn last(op: &Op) -> &str {
    op.name.rsplit('.').next().unwrap_or(&op.name)
}

/// A box of a result and those of the operands that it is made from, computed when they are asked for.
pub struct Boxes<'a> {
    pub result: &'a dyn Fn() -> Vec<Range<u64>>,
    pub operand: &'a dyn Fn(usize) -> Vec<Range<u64>>,
}

impl Boxes<'_> {
    pub fn result(&self) -> Vec<Range<u64>> {
        (self.result)()
    }

    /// That of an operand that is there.
    pub fn operand(&self, i: usize) -> Vec<Range<u64>> {
        (self.operand)(i)
    }
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

    /// How many elements the result has; the verifier refuses more than 64 bits hold.
    pub fn elems(&self) -> u64 {
        self.node.ty.elems().unwrap_or(u64::MAX)
    }

    /// How many elements an operand has, 0 where there is none.
    pub fn elems_of(&self, operand: usize) -> u64 {
        self.node.operands.get(operand).map_or(0, |&o| self.g.ty(o).elems().unwrap_or(u64::MAX))
    }

    /// How many elements the result and all operands have together.
    pub fn touched(&self) -> f64 {
        self.elems() as f64 + (0..self.count()).map(|i| self.elems_of(i) as f64).sum::<f64>()
    }

    /// The last size of the first operand, which a product contracts.
    pub fn depth(&self) -> f64 {
        self.shape(0).last().map_or(1.0, |&n| n as f64)
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

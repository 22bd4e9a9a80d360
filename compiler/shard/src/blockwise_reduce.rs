//! Reductions over a split dim: each device reduces what it has, and what all of them found is combined.
//!
//! Largest and smallest elements, `any`, `all` and whole numbers come out the same in any order: the dim becomes [parts,
//! block], the blocks are reduced where they are, and one number of each moves. A sum of floats has one order, leaves of
//! consecutive elements under a balanced tree. Where parts begin and end between leaves each device folds the subtrees that
//! are its own, and only their sums move: to devices that have a share of the results each, if the results can be shared.
//! Where they don't the sum stays as it is, and its operand moves.

use crate::adder::Adder;
use crate::tree::tree;
use std::ops::Range;
use tessera_base::{DType, Sharding};
use tessera_ir::graph::{Node, NodeType, Policy};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{LEAF, Prim, Reduction};
use tessera_ops::reference::identity;
use tessera_ops::surface::{Build, Id, expand};

/// The reduction `node` over `axes` of `x`, an operand of type `ty` that lies as `layout`. `None` where no reduced dim is
/// split, or its parts cannot be reduced by themselves.
pub fn reduced(
    b: &mut Adder,
    x: Id,
    (ty, layout): (&NodeType, &Sharding),
    (node, kind, axes): (&Node, Reduction, &[usize]),
) -> Option<Id> {
    Split { kind, axes, x: ty, layout, node }.reduced(b, x)
}

/// A reduction whose operand lies on a mesh.
struct Split<'a> {
    kind: Reduction,
    axes: &'a [usize],
    x: &'a NodeType,
    layout: &'a Sharding,
    node: &'a Node,
}

impl Split<'_> {
    fn reduced(&self, b: &mut Adder, x: Id) -> Option<Id> {
        let split: Vec<usize> = self.axes.iter().copied().filter(|&d| self.parts(d) > 1).collect();
        let empty = self.x.shape.contains(&0) || self.x.dtype.is_complex();
        if split.is_empty() || empty {
            return None;
        }
        let any_order = self.is_exact() || self.node.policy == Policy::Fast;
        let leaves = if self.is_exact() { None } else { self.by_leaves(b, x, &split) };
        leaves.or_else(|| if any_order { self.by_blocks(b, x, &split) } else { None })
    }

    fn parts(&self, dim: usize) -> u64 {
        self.layout.parts(dim)
    }

    /// Whether every order gives the same bits.
    fn is_exact(&self) -> bool {
        match self.kind {
            Reduction::Max | Reduction::Min | Reduction::Any | Reduction::All => true,
            // Of ints they wrap as their result does, which `bool` does not.
            Reduction::Sum | Reduction::Prod => {
                (self.x.dtype.is_int() || self.x.dtype == DType::Bool) && self.node.ty.dtype.is_int()
            }
            Reduction::HalfSum | Reduction::HalfProd => false,
        }
    }

    /// Blocks first, then their results.
    fn by_blocks(&self, b: &mut Adder, x: Id, split: &[usize]) -> Option<Id> {
        // Blocks of one element are what moves.
        let split: Vec<usize> = split.iter().copied().filter(|&d| self.x.shape[d] > self.parts(d)).collect();
        if split.is_empty() {
            return None;
        }
        let (mut x, mut shape) = (x, vec![]);
        let (mut high, mut inner, mut outer) = (vec![0; self.x.shape.len()], vec![], vec![]);
        for (d, &n) in self.x.shape.iter().enumerate() {
            let parts = self.parts(d);
            match split.contains(&d) {
                true => {
                    high[d] = n.div_ceil(parts) * parts - n;
                    outer.push(shape.len() - inner.len());
                    inner.push(shape.len() + 1);
                    shape.extend([parts, n.div_ceil(parts)]);
                }
                false => {
                    if self.axes.contains(&d) {
                        inner.push(shape.len());
                    }
                    shape.push(n);
                }
            }
        }
        if high.iter().any(|n| *n > 0) {
            let value = expand::full(b, &[], self.x.dtype, identity(self.kind, self.x.dtype));
            let padded = self.x.shape.iter().zip(&high).map(|(n, more)| n + more).collect();
            let pad = Prim::Pad { low: vec![0; high.len()], high };
            x = b.push(pad, &[x, value], padded, self.x.dtype);
        }
        let x = expand::reshape(b, x, &shape);
        let blocks: Vec<u64> = (0..shape.len()).filter(|d| !inner.contains(d)).map(|d| shape[d]).collect();
        let (dtype, shape) = (self.node.ty.dtype, self.node.ty.shape.clone());
        // Sums of floats are rounded once, and what is largest is so before it is another type.
        let floats = !self.is_exact();
        let between = match self.kind {
            Reduction::Max | Reduction::Min => self.x.dtype,
            _ if floats => self.x.dtype.accumulator(),
            _ => dtype,
        };
        let x = if floats { expand::cast(b, x, between) } else { x };
        let found = b.push(Prim::Reduce { kind: self.kind, axes: inner }, &[x], blocks, between);
        if !self.is_exact() {
            b.holds_summands(found);
        }
        let all = b.push(Prim::Reduce { kind: self.kind, axes: outer }, &[found], shape, between);
        Some(expand::cast(b, all, dtype))
    }

    /// The subtrees of each device, then the rest of the tree.
    fn by_leaves(&self, b: &mut Adder, x: Id, split: &[usize]) -> Option<Id> {
        let floats = matches!(self.x.dtype, DType::F64 | DType::F32 | DType::Bf16 | DType::F16);
        let ordered = matches!(self.kind, Reduction::Sum | Reduction::Prod) && floats;
        if !ordered || self.node.policy == Policy::KahanSum || !self.axes.is_sorted() {
            return None;
        }
        // What a device has goes on without a gap from the innermost dim that is split.
        let last = *split.last()?;
        let parts = self.parts(last);
        let behind: u64 = self.axes.iter().filter(|d| **d > last).map(|&d| self.x.shape[d]).product();
        let run = self.x.shape[last] / parts * behind;
        if split.iter().any(|&d| !self.x.shape[d].is_multiple_of(self.parts(d))) || !run.is_multiple_of(LEAF as u64) {
            return None;
        }
        // Of so many leaves a reduction of them alone makes the node of the tree that is above them.
        let leaves = 1 << (run / LEAF as u64).trailing_zeros();
        let nodes = run * parts / LEAF as u64 / leaves;
        let accum = self.x.dtype.accumulator();
        let x = expand::cast(b, x, accum);
        let (x, at) = self.in_a_row(b, x, last);
        let kept = b.shape(x);
        let divided = [&kept[..at], &[nodes, leaves * LEAF as u64], &kept[at + 1..]].concat();
        let x = expand::reshape(b, x, &divided);
        let folded = [&kept[..at], &[nodes], &kept[at + 1..]].concat();
        let folded = b.push(Prim::Reduce { kind: self.kind, axes: vec![at + 1] }, &[x], folded, accum);
        let front = self.axes[0];
        let shared = self.shared(b, folded, front..at + 1, split);
        let shape = b.shape(shared);
        let all: u64 = shape[front..=at].iter().product();
        let joined = expand::reshape(b, shared, &[&shape[..front], &[all], &shape[at + 1..]].concat());
        let op = if self.kind == Reduction::Sum { MapOp::add } else { MapOp::mul };
        let sum = tree(b, op, joined, front, all);
        let sum = expand::reshape(b, sum, &self.node.ty.shape);
        Some(expand::cast(b, sum, self.node.ty.dtype))
    }

    /// The reduced dims side by side, those from `last` on as one, with where this is.
    fn in_a_row(&self, b: &mut Adder, x: Id, last: usize) -> (Id, usize) {
        let (shape, front) = (&self.x.shape, self.axes[0]);
        let kept = (front..shape.len()).filter(|d| !self.axes.contains(d));
        let perm: Vec<usize> = (0..front).chain(self.axes.iter().copied()).chain(kept).collect();
        let x = if perm.is_sorted() { x } else { expand::transpose(b, x, &perm) };
        let turned: Vec<u64> = perm.iter().map(|&d| shape[d]).collect();
        let at = front + self.axes.iter().filter(|d| **d < last).count();
        let end = front + self.axes.len();
        let joined: u64 = turned[at..end].iter().product();
        (expand::reshape(b, x, &[&turned[..at], &[joined], &turned[end..]].concat()), at)
    }

    /// The nodes of all devices, which lie along `nodes`: each device with a share of the results where one of their dims
    /// can be shared out, else with all.
    fn shared(&self, b: &mut Adder, folded: Id, nodes: Range<usize>, split: &[usize]) -> Id {
        let mut kept = (0..self.x.shape.len()).filter(|d| !self.axes.contains(d));
        let own = |d: usize| match nodes.contains(&d) {
            true => vec![],
            false => kept.next().map_or(vec![], |d| self.layout.axes(d).to_vec()),
        };
        let dims = (0..b.shape(folded).len()).map(own).collect();
        let free = split.iter().flat_map(|&d| self.layout.axes(d).iter().cloned()).collect();
        b.share_out(folded, Sharding { dims, ..self.layout.clone() }, nodes, free, None)
    }
}

//! Sums that go from device to device along an axis: each device goes on from what the one before it
//! left. All devices make the same number of nodes: those that have no part in one make an empty value.
//!
//! A product starts its chains from the partial sums that come. Of a sum of one leaf the lanes are handed on: a
//! lane is a chain over every sixteenth element, which is a product with ones. Of a longer sum each device
//! has whole leaves, and their sums are handed on. The last device combines lanes or leaves.

use super::{Local, Moved};
use crate::layout::chains::{Chain, Partials};
use crate::place::Place;
use tessera_base::Sharding;
use tessera_ir::graph::{Node, NodeId, NodeType, Origin};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{LANES, LEAF, Prim, Reduction, Scalar, Steps};

/// One node whose sums are handed on.
struct Handed<'n> {
    node: &'n Node,
    chain: &'n Chain,
    /// Sizes of the device's part of the result.
    kept: Vec<u64>,
    /// Whether the device has a part in what is made now.
    mine: bool,
}

impl Local<'_> {
    /// The sums of node `id`. `operands`: those of this device.
    pub(super) fn hand_on(&mut self, id: NodeId, operands: &[NodeId], chain: &Chain) {
        let node = self.from.node(id);
        let kept = chain.layout.block(&node.ty.shape, self.device).iter().map(|r| r.end - r.start).collect();
        let mut handed = Handed { node, chain, kept, mine: true };
        let place = self.mesh.coordinate(self.device, &chain.axis);
        let devices = self.mesh.size(&chain.axis).unwrap_or(1);
        let partials = self.partials(node, chain);
        let mut before: Option<NodeId> = None;
        for index in 0..devices {
            handed.mine = index == place;
            let made = match partials {
                None => self.product(&handed, operands, before),
                Some(Partials::Lanes) => self.lanes(&handed, operands, before),
                Some(Partials::Leaves { .. }) => self.leaves(&handed, operands, before),
            };
            if index + 1 < devices {
                before = Some(self.pass(&handed, made, index, partials));
                continue;
            }
            let whole = match partials {
                None => made,
                Some(partials) => self.combined(&handed, made, partials),
            };
            self.made.insert((id, chain.end()), whole);
        }
    }

    /// Of a sum: what is handed on.
    fn partials(&self, node: &Node, chain: &Chain) -> Option<Partials> {
        let Prim::Reduce { axes, .. } = &node.prim else { return None };
        let shape = &self.from.ty(node.operands[0]).shape;
        let all: u64 = axes.iter().map(|&d| shape[d]).product();
        let behind: u64 = axes.iter().skip(1).map(|&d| shape[d]).product();
        let devices = self.mesh.size(&chain.axis).unwrap_or(1);
        Partials::of(all, shape[axes[0]].div_ceil(devices) * behind)
    }

    /// A node of this device, if it has a part in it.
    fn emit(&mut self, handed: &Handed, prim: Prim, operands: &[NodeId], shape: Vec<u64>) -> NodeId {
        let Handed { node, mine, .. } = *handed;
        let (prim, operands, shape) = match mine {
            true => (prim, operands.to_vec(), shape),
            false => (Prim::Full { value: Scalar::F(0.0) }, vec![], vec![0; shape.len()]),
        };
        let (ty, origin) = (NodeType::new(shape, node.ty.dtype), Origin { kernel: None, ..node.origin.clone() });
        self.graph.push(Node { prim, operands, ty, results: vec![], origin, policy: node.policy })
    }

    /// Brings what device `index` of the axis made to the next one.
    fn pass(&mut self, handed: &Handed, made: NodeId, index: u64, partials: Option<Partials>) -> NodeId {
        let Handed { node, chain, .. } = handed;
        let rows = match partials {
            None => None,
            Some(Partials::Lanes) => Some(LANES as u64),
            Some(Partials::Leaves { each, .. }) => Some(each * (index + 1)),
        };
        let (mut layout, mut shape) = (chain.layout.clone(), node.ty.shape.clone());
        if let Some(rows) = rows {
            let dims = (0..shape.len()).map(|d| layout.axes(d).to_vec());
            let dims = std::iter::once(vec![]).chain(dims).collect();
            shape.insert(0, rows);
            layout = Sharding { dims, ..layout }.normal(shape.len());
        }
        let at = |index| Place::At { layout: layout.clone(), axis: chain.axis.clone(), index };
        let moved = Moved { from: at(index), to: at(index + 1), shape };
        self.brought(made, node, moved)
    }

    fn product(&mut self, handed: &Handed, operands: &[NodeId], before: Option<NodeId>) -> NodeId {
        let operands: Vec<NodeId> = operands.iter().copied().chain(before).collect();
        self.emit(handed, handed.node.prim.clone(), &operands, handed.kept.clone())
    }

    /// The elements that are summed in front, in blocks of these sizes, and how many blocks there are.
    fn in_blocks(&mut self, handed: &Handed, operands: &[NodeId], block: &[u64]) -> (NodeId, u64) {
        let Prim::Reduce { axes, .. } = &handed.node.prim else { return (NodeId(0), 0) };
        let (mut x, shape) = (operands[0], self.graph.ty(operands[0]).shape.clone());
        let kept = (0..shape.len()).filter(|d| !axes.contains(d));
        let perm: Vec<usize> = axes.iter().copied().chain(kept).collect();
        if !perm.is_sorted() {
            let turned = perm.iter().map(|&d| shape[d]).collect();
            x = self.emit(handed, Prim::Transpose { perm }, &[x], turned);
        }
        let summed: u64 = axes.iter().map(|&d| shape[d]).product();
        let blocks = summed / block.iter().product::<u64>().max(1);
        let sizes = [&[blocks], block, &[handed.elems()]].concat();
        (self.emit(handed, Prim::Reshape, &[x], sizes), blocks)
    }

    /// The lanes so far.
    fn lanes(&mut self, handed: &Handed, operands: &[NodeId], before: Option<NodeId>) -> NodeId {
        let lanes = LANES as u64;
        let row = lanes * handed.elems();
        let (x, blocks) = self.in_blocks(handed, operands, &[lanes]);
        let x = self.emit(handed, Prim::Reshape, &[x], vec![blocks, row]);
        let ones = self.emit(handed, Prim::Full { value: Scalar::F(1.0) }, &[], vec![1, blocks]);
        let mut factors = vec![ones, x];
        if let Some(before) = before {
            factors.push(self.emit(handed, Prim::Reshape, &[before], vec![1, row]));
        }
        let prim = Prim::Dot { accum: handed.node.ty.dtype, steps: Steps::All, pairs: false };
        let sums = self.emit(handed, prim, &factors, vec![1, row]);
        self.emit(handed, Prim::Reshape, &[sums], handed.rows(lanes))
    }

    /// The sums of the leaves so far.
    fn leaves(&mut self, handed: &Handed, operands: &[NodeId], before: Option<NodeId>) -> NodeId {
        let (x, blocks) = self.in_blocks(handed, operands, &[LEAF as u64]);
        let sum = Prim::Reduce { kind: Reduction::Sum, axes: vec![1] };
        let sums = self.emit(handed, sum, &[x], vec![blocks, handed.elems()]);
        let own = self.emit(handed, Prim::Reshape, &[sums], handed.rows(blocks));
        let Some(before) = before else { return own };
        let rows = self.graph.ty(before).shape.first().copied().unwrap_or(0) + blocks;
        self.emit(handed, Prim::Concat { axis: 0 }, &[before, own], handed.rows(rows))
    }

    /// The sum from all lanes, by halves, or from all leaves, by a balanced tree.
    fn combined(&mut self, handed: &Handed, all: NodeId, partials: Partials) -> NodeId {
        let (mut now, mut n, halves) = match partials {
            Partials::Lanes => (all, LANES as u64, true),
            Partials::Leaves { all: n, .. } => (all, n, false),
        };
        while n > 1 {
            let (pairs, step) = (n / 2, if halves { 1 } else { 2 });
            let first = self.rows_of(handed, now, 0, step, pairs);
            let second = self.rows_of(handed, now, if halves { pairs } else { 1 }, step, pairs);
            let sums = self.emit(handed, Prim::Map(MapOp::add), &[first, second], handed.rows(pairs));
            now = match n % 2 {
                0 => sums,
                _ => {
                    let last = self.rows_of(handed, now, n - 1, 1, 1);
                    self.emit(handed, Prim::Concat { axis: 0 }, &[sums, last], handed.rows(pairs + 1))
                }
            };
            n = n.div_ceil(2);
        }
        self.emit(handed, Prim::Reshape, &[now], handed.kept.clone())
    }

    /// `count` rows, from `first` on, `step` apart.
    fn rows_of(&mut self, handed: &Handed, of: NodeId, first: u64, step: i64, count: u64) -> NodeId {
        let rank = handed.kept.len() + 1;
        let (mut start, mut steps) = (vec![0; rank], vec![1; rank]);
        (start[0], steps[0]) = (first as i64, step);
        self.emit(handed, Prim::Slice { start, step: steps }, &[of], handed.rows(count))
    }
}

impl Handed<'_> {
    /// Elements of the device's part of the result.
    fn elems(&self) -> u64 {
        self.kept.iter().product()
    }

    /// The sizes of so many rows of it.
    fn rows(&self, count: u64) -> Vec<u64> {
        [&[count], &self.kept[..]].concat()
    }
}

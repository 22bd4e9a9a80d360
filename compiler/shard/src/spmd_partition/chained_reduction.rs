//! Sums that go from device to device along an axis: each device goes on from what the one before it
//! left. All devices make the same number of nodes: those that have no part in one make an empty value.
//!
//! A product starts its chains from the partial sums that come. Of a sum the leaves that are whole are handed on as
//! their sums, and the one that is not as its lanes: a lane is a chain over every sixteenth element, which is a product
//! with ones. The last device combines the leaves.

use super::{Moved, Partitioner};
use crate::layout::chained_reduction::{Chain, Runs, at, turns};
use crate::placement::Placement;
use std::ops::Range;
use tessera_base::Sharding;
use tessera_ir::graph::{Node, NodeId, NodeType, Origin};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{LANES, LEAF, Order, Prim, Reduction, Scalar, Steps};

/// One node whose sums are handed on.
struct ChainLink<'n> {
    node: &'n Node,
    chain: &'n Chain,
    /// Sizes of what is made now, of all devices.
    shape: Vec<u64>,
    /// The same of this device's part.
    kept: Vec<u64>,
    /// Whether the device has a part in what is made now.
    mine: bool,
}

impl Partitioner<'_> {
    /// The sums of node `id`. `operands`: those of this device.
    pub(super) fn chain_reduction(&mut self, id: NodeId, operands: &[NodeId], chain: &Chain) {
        let node = self.from.node(id);
        let runs = self.runs(node, chain);
        let turns = match (runs, operands) {
            (None, &[a, _]) if self.graph.ty(a).shape.len() > 2 => turns(&node.ty.shape, &chain.layout),
            _ => 1,
        };
        let mut shape = node.ty.shape.clone();
        let mut kept: Vec<u64> = chain.layout.block(&shape, self.device).iter().map(|r| r.end - r.start).collect();
        if turns > 1 {
            shape[0] /= turns;
            kept[0] /= turns;
        }
        let mut handed = ChainLink { node, chain, shape, kept, mine: true };
        let parts: Vec<NodeId> = (0..turns)
            .map(|turn| {
                let some: Vec<NodeId> = match turns {
                    1 => operands.to_vec(),
                    _ => operands.iter().map(|&o| self.turn_of(node, o, turn, turns)).collect(),
                };
                self.through(&mut handed, &some, runs)
            })
            .collect();
        let whole = match parts[..] {
            [one] => one,
            _ => {
                handed.kept[0] *= turns;
                handed.mine = self.has_part(chain, self.mesh.size(&chain.axis).unwrap_or(1) - 1);
                self.emit(&handed, Prim::Concat { axis: 0 }, &parts, handed.kept.clone())
            }
        };
        self.made.insert((id, chain.end()), whole);
    }

    /// The items of a batch that one of the turns takes.
    fn turn_of(&mut self, node: &Node, of: NodeId, turn: u64, turns: u64) -> NodeId {
        let ty = self.graph.ty(of).clone();
        let (mut shape, mut start) = (ty.shape.clone(), vec![0; ty.shape.len()]);
        shape[0] /= turns;
        start[0] = (turn * shape[0]) as i64;
        let step = vec![1; shape.len()];
        let (ty, origin) = (NodeType::new(shape, ty.dtype), Origin { kernel: None, ..node.origin.clone() });
        let prim = Prim::Slice { start, step };
        self.push(Node { prim, operands: vec![of], ty, results: vec![], origin, policy: node.policy })
    }

    /// From the first device to the last, which has the result.
    fn through(&mut self, handed: &mut ChainLink, operands: &[NodeId], runs: Option<Runs>) -> NodeId {
        let chain = handed.chain;
        let devices = self.mesh.size(&chain.axis).unwrap_or(1);
        let mut before: Option<NodeId> = None;
        for index in 0..devices - 1 {
            handed.mine = self.has_part(chain, index);
            let made = self.part(handed, operands, before, index, runs);
            before = Some(self.pass(handed, made, index, runs));
        }
        handed.mine = self.has_part(chain, devices - 1);
        let made = self.part(handed, operands, before, devices - 1, runs);
        match runs {
            None => made,
            Some(runs) => self.combined(handed, made, runs.all),
        }
    }

    /// Whether what device `index` of the axis makes is made here.
    fn has_part(&self, chain: &Chain, index: u64) -> bool {
        self.mesh.coordinate(self.device, &chain.axis) == index && !chain.layout.is_absent(self.device)
    }

    /// What device `index` of the axis makes.
    fn part(
        &mut self,
        handed: &ChainLink,
        operands: &[NodeId],
        before: Option<NodeId>,
        index: u64,
        runs: Option<Runs>,
    ) -> NodeId {
        match runs {
            None => self.product(handed, operands, before),
            Some(runs) => self.sums(handed, operands, before, runs.of(index), runs.all),
        }
    }

    /// Of a sum: what each device has of it.
    fn runs(&self, node: &Node, chain: &Chain) -> Option<Runs> {
        let Prim::Reduce { axes, .. } = &node.prim else { return None };
        let devices = self.mesh.size(&chain.axis).unwrap_or(1);
        Some(Runs::new(&self.from.ty(node.operands[0]).shape, axes, devices))
    }

    /// A node of this device, if it has a part in it.
    fn emit(&mut self, handed: &ChainLink, prim: Prim, operands: &[NodeId], shape: Vec<u64>) -> NodeId {
        let ChainLink { node, mine, .. } = *handed;
        let (prim, own, shape) = match mine {
            true => (prim, operands.to_vec(), shape),
            false => (Prim::Full { value: Scalar::F(0.0) }, vec![], vec![0; shape.len()]),
        };
        let (ty, origin) = (NodeType::new(shape, node.ty.dtype), node.origin.clone());
        self.push_for(Node { prim, operands: own, ty, results: vec![], origin, policy: node.policy }, operands)
    }

    /// Brings what device `index` of the axis made to the next one.
    fn pass(&mut self, handed: &ChainLink, made: NodeId, index: u64, runs: Option<Runs>) -> NodeId {
        let ChainLink { node, chain, .. } = handed;
        let rows = runs.map(|runs| Runs::rows(runs.of(index).end));
        let (mut layout, mut shape) = (chain.layout.clone(), handed.shape.clone());
        if let Some(rows) = rows {
            let dims = (0..shape.len()).map(|d| layout.axes(d).to_vec());
            let dims = std::iter::once(vec![]).chain(dims).collect();
            shape.insert(0, rows);
            layout = Sharding { dims, ..layout }.normal(shape.len());
        }
        let at = |index| Placement::Layout(at(&layout, &chain.axis, index));
        let moved = Moved { from: at(index), to: at(index + 1), shape };
        self.brought(made, node, moved)
    }

    fn product(&mut self, handed: &ChainLink, operands: &[NodeId], before: Option<NodeId>) -> NodeId {
        let &[a, b] = operands else { return NodeId(0) };
        let (prim, right) = (handed.node.prim.clone(), self.graph.ty(b).shape.clone());
        let rows = self.graph.ty(a).shape.len() - 1;
        // Columns in several dims are joined for it; see [`crate::unflatten_columns`].
        let join = |shape: &[u64]| [&shape[..rows], &[shape[rows..].iter().product()]].concat();
        let narrow = join(&handed.kept);
        let mut factors = vec![a, self.shaped(handed, b, join(&right))];
        if let Some(before) = before {
            factors.push(self.shaped(handed, before, narrow.clone()));
        }
        let product = self.emit(handed, prim, &factors, narrow);
        self.shaped(handed, product, handed.kept.clone())
    }

    /// A value with its columns joined, or apart again.
    fn shaped(&mut self, handed: &ChainLink, x: NodeId, shape: Vec<u64>) -> NodeId {
        match self.graph.ty(x).shape.len() == shape.len() {
            true => x,
            false => self.emit(handed, Prim::Reshape, &[x], shape),
        }
    }

    /// The elements that are summed in front, the others joined.
    fn in_rows(&mut self, handed: &ChainLink, operands: &[NodeId], count: u64) -> NodeId {
        let Prim::Reduce { axes, .. } = &handed.node.prim else { return NodeId(0) };
        let (mut x, shape) = (operands[0], self.graph.ty(operands[0]).shape.clone());
        let kept = (0..shape.len()).filter(|d| !axes.contains(d));
        let perm: Vec<usize> = axes.iter().copied().chain(kept).collect();
        if !perm.is_sorted() {
            let turned = perm.iter().map(|&d| shape[d]).collect();
            x = self.emit(handed, Prim::Transpose { perm }, &[x], turned);
        }
        self.emit(handed, Prim::Reshape, &[x], vec![count, handed.elems()])
    }

    /// Sums so far, behind a device that has the positions `run` of `all`: the leaves that are whole, then the
    /// lanes of one that is not.
    fn sums(
        &mut self,
        handed: &ChainLink,
        operands: &[NodeId],
        before: Option<NodeId>,
        run: Range<u64>,
        all: u64,
    ) -> NodeId {
        let (leaf, lanes, elems) = (LEAF as u64, LANES as u64, handed.elems());
        let x = self.in_rows(handed, operands, run.end - run.start);
        let before = before.map(|b| self.emit(handed, Prim::Reshape, &[b], vec![Runs::rows(run.start), elems]));
        let mut out = vec![];
        let mut at = run.start;
        if let Some(before) = before {
            let whole = run.start / leaf;
            out.extend((whole > 0).then(|| self.rows_of(handed, before, 0, 1, whole)));
            if !run.start.is_multiple_of(leaf) {
                at = run.end.min((whole + 1) * leaf);
                let first = self.rows_of(handed, x, 0, 1, at - run.start);
                let begun = self.rows_of(handed, before, whole, 1, lanes);
                let begun = self.lanes(handed, first, run.start..at, Some(begun));
                let ends = at.is_multiple_of(leaf) || at == all;
                out.push(if ends { self.halved(handed, begun) } else { begun });
            }
        }
        let count = (run.end - at) / leaf;
        if count > 0 {
            let leaves = self.rows_of(handed, x, at - run.start, 1, count * leaf);
            let leaves = self.emit(handed, Prim::Reshape, &[leaves], vec![count, leaf, elems]);
            let sum = Prim::Reduce { kind: Reduction::Sum, axes: vec![1] };
            out.push(self.emit(handed, sum, &[leaves], vec![count, elems]));
            at += count * leaf;
        }
        if at < run.end {
            let last = self.rows_of(handed, x, at - run.start, 1, run.end - at);
            let begun = self.lanes(handed, last, at..run.end, None);
            out.push(if run.end == all { self.halved(handed, begun) } else { begun });
        }
        let rows = if run.end == all { all.div_ceil(leaf) } else { Runs::rows(run.end) };
        let joined = match out[..] {
            [one] => one,
            _ => self.emit(handed, Prim::Concat { axis: 0 }, &out, vec![rows, elems]),
        };
        self.emit(handed, Prim::Reshape, &[joined], handed.rows(rows))
    }

    /// The lanes of one leaf, from those `before` on; the rows are at these positions.
    fn lanes(&mut self, handed: &ChainLink, rows: NodeId, at: Range<u64>, before: Option<NodeId>) -> NodeId {
        let (lanes, elems) = (LANES as u64, handed.elems());
        let (first, count) = (at.start % lanes, at.end - at.start);
        let blocks = (first + count).div_ceil(lanes);
        let behind = blocks * lanes - first - count;
        // A lane that has begun from zero does not change by zeros.
        let zero = self.emit(handed, Prim::Full { value: Scalar::F(0.0) }, &[], vec![]);
        let pad = Prim::Pad { low: vec![first, 0], high: vec![behind, 0] };
        let x = match first + behind {
            0 => rows,
            _ => self.emit(handed, pad, &[rows, zero], vec![blocks * lanes, elems]),
        };
        let x = self.emit(handed, Prim::Reshape, &[x], vec![blocks, lanes * elems]);
        let ones = self.emit(handed, Prim::Full { value: Scalar::F(1.0) }, &[], vec![1, blocks]);
        let mut factors = vec![ones, x];
        factors.extend(before.map(|b| self.emit(handed, Prim::Reshape, &[b], vec![1, lanes * elems])));
        let prim = Prim::Dot { accum: handed.node.ty.dtype, steps: Steps::All, order: Order::Chain };
        let sums = self.emit(handed, prim, &factors, vec![1, lanes * elems]);
        self.emit(handed, Prim::Reshape, &[sums], vec![lanes, elems])
    }

    /// The sum of a leaf from its lanes.
    fn halved(&mut self, handed: &ChainLink, lanes: NodeId) -> NodeId {
        let (mut now, mut n) = (lanes, LANES as u64);
        while n > 1 {
            n /= 2;
            let halves = [0, n].map(|first| self.rows_of(handed, now, first, 1, n));
            now = self.emit(handed, Prim::Map(MapOp::add), &halves, vec![n, handed.elems()]);
        }
        now
    }

    /// The sum from those of all leaves, by a balanced tree.
    fn combined(&mut self, handed: &ChainLink, leaves: NodeId, all: u64) -> NodeId {
        let (mut n, elems) = (all.div_ceil(LEAF as u64), handed.elems());
        let mut now = self.emit(handed, Prim::Reshape, &[leaves], vec![n, elems]);
        while n > 1 {
            let pairs = n / 2;
            let both = [0, 1].map(|first| self.rows_of(handed, now, first, 2, pairs));
            let sums = self.emit(handed, Prim::Map(MapOp::add), &both, vec![pairs, elems]);
            now = match n % 2 {
                0 => sums,
                _ => {
                    let last = self.rows_of(handed, now, n - 1, 1, 1);
                    self.emit(handed, Prim::Concat { axis: 0 }, &[sums, last], vec![pairs + 1, elems])
                }
            };
            n = n.div_ceil(2);
        }
        self.emit(handed, Prim::Reshape, &[now], handed.kept.clone())
    }

    /// `count` rows of a matrix, from `first` on, `step` apart.
    fn rows_of(&mut self, handed: &ChainLink, of: NodeId, first: u64, step: i64, count: u64) -> NodeId {
        let prim = Prim::Slice { start: vec![first as i64, 0], step: vec![step, 1] };
        self.emit(handed, prim, &[of], vec![count, handed.elems()])
    }
}

impl ChainLink<'_> {
    /// Elements of the device's part of the result.
    fn elems(&self) -> u64 {
        self.kept.iter().product()
    }

    /// The sizes of so many rows of it.
    fn rows(&self, count: u64) -> Vec<u64> {
        [&[count], &self.kept[..]].concat()
    }
}

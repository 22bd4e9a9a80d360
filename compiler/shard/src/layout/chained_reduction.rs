//! Products and sums that go from device to device.
//!
//! Where the contracted dim of a product is split over an axis, each element of the result is one chain
//! over all devices of the axis. The operands can stay where they are: the first device makes
//! the first part of every chain, the next one goes on from there, and the last one holds the
//! result. That moves the result some times instead of the operands: less for the gradient of a
//! weight over many tokens. A sum over a split dim goes the same way, by the leaves and the lanes of the canonical
//! order (`spmd_partition/chained_reduction.rs`).
//!
//! The devices of the axis work one after the other. It takes no longer where there is other work in between: in a
//! backward pass each is one product behind the one before it. So only what no other product waits
//! for is made like this, and what is a small share of all work. A batch of products goes in turns of some of its
//! items: then the next device waits for one turn alone.

use super::halo::sources;
use super::{Materialization, NodeLayout, node_layouts};
use crate::placement::Placement;
use std::ops::Range;
use std::sync::Arc;
use tessera_base::{DType, Mesh, Monoid, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType, Policy};
use tessera_ops::prim::{LANES, LEAF, Order, Prim, Reduction, Steps};

/// Devices of an axis along which sums go, at most.
const DEVICES_MAX: u64 = 8;
/// The part of all products that the last device is behind the first, at most.
const BEHIND_MAX: f64 = 1.0 / 16.0;

/// Turns of a batch of products, at most.
const TURNS_MAX: u64 = 8;

/// How the sums of a node go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// From device to device along this axis.
    pub axis: String,
    /// The layout of the result on each of them.
    pub layout: Sharding,
}

impl Chain {
    /// Who holds the result in the end.
    pub fn end(&self) -> Placement {
        let devices = self.layout.mesh.as_ref().and_then(|m| m.size(&self.axis)).unwrap_or(1);
        Placement::Layout(at(&self.layout, &self.axis, devices - 1))
    }
}

/// A layout at one position of an axis that it does not split.
pub fn at(layout: &Sharding, axis: &str, index: u64) -> Sharding {
    let mut out = layout.clone();
    out.partial.push((Monoid::At(index), axis.to_owned()));
    let rank = out.dims.len();
    out.normal(rank)
}

/// What decides whether sums go from device to device.
pub struct Chains<'a> {
    mesh: &'a Mesh,
    /// By node: whether a product, a loop or a transform needs it.
    awaited: Vec<bool>,
    /// Multiply-adds of all products.
    work: f64,
}

impl Chains<'_> {
    /// Of a graph, or of the body of a loop: each turn ends with the last device.
    pub fn of<'a>(g: &Graph, mesh: &'a Mesh) -> Chains<'a> {
        let mut awaited = vec![false; g.nodes.len()];
        for id in g.ids().collect::<Vec<_>>().into_iter().rev() {
            let node = g.node(id);
            let long = match node.prim {
                Prim::Dot { .. } => !is_sum(g, node),
                Prim::BlockDot { .. } | Prim::Scan { .. } | Prim::Fft(_) => true,
                _ => false,
            };
            if long || awaited[id.0 as usize] {
                node.operands.iter().for_each(|o| awaited[o.0 as usize] = true);
            }
        }
        let work = g.ids().map(|id| steps(g, g.node(id))).sum::<f64>();
        Chains { mesh, awaited, work }
    }

    /// The axis along which the sums of a node go.
    pub fn axis(&self, g: &Graph, id: NodeId, placed: &[NodeLayout]) -> Option<String> {
        let node = g.node(id);
        let (axis, fewer) = match (&node.prim, &node.operands[..]) {
            (Prim::Dot { .. }, &[a, b]) => self.of_product(g, node, [a, b], placed)?,
            (Prim::Reduce { kind: Reduction::Sum, axes }, &[x]) => self.of_sum(g, node, axes, x, placed)?,
            _ => return None,
        };
        (fewer && !self.awaited[id.0 as usize]).then_some(axis)
    }

    /// The one axis that splits a dim into parts of which none is empty, and its devices.
    fn only(&self, g: &Graph, placed: &[NodeLayout], x: NodeId, dim: usize) -> Option<(String, u64)> {
        let [axis] = placed[x.0 as usize].result.axes(dim) else { return None };
        let devices = self.mesh.size(axis)?;
        let size = *g.ty(x).shape.get(dim)?;
        let each = (2..=DEVICES_MAX).contains(&devices) && size.div_ceil(devices) * (devices - 1) < size;
        each.then(|| (axis.clone(), devices))
    }

    /// The axis over which a product's contracted dim is split, and whether it moves less to hand on sums.
    fn of_product(&self, g: &Graph, node: &Node, [a, b]: [NodeId; 2], placed: &[NodeLayout]) -> Option<(String, bool)> {
        let Prim::Dot { accum: accum @ (DType::F32 | DType::F64), steps: Steps::All, order: Order::Chain } = node.prim
        else {
            return None;
        };
        let alike = [g.ty(a), g.ty(b), &node.ty].iter().all(|ty| ty.dtype == accum) && node.policy != Policy::KahanSum;
        let rank = g.ty(a).shape.len();
        if !alike || rank < 2 {
            return None;
        }
        let sides = [(a, rank - 1), (b, rank - 2)];
        let held = |(o, dim): (NodeId, usize)| placed[o.0 as usize].result.axes(dim);
        let (split, dim) = sides.into_iter().find(|side| !held(*side).is_empty())?;
        let (axis, devices) = self.only(g, placed, split, dim)?;
        let elsewhere = |(o, dim): (NodeId, usize)| placed[o.0 as usize].result.dim_of(&axis).is_some_and(|d| d != dim);
        if sides.into_iter().any(elsewhere) {
            return None;
        }
        let (devices, after) = (devices as f64, (devices - 1) as f64);
        let [left, right] = [a, b].map(|o| elems(g.ty(sources(g, o))));
        let operands = match sides.map(held) {
            // One operand whole everywhere, and the other split elsewhere.
            [left_by, right_by] if left_by == right_by => left.min(right) * after + left.max(right) * after / devices,
            // One is whole everywhere.
            sides @ ([_, []] | [[], _]) => [left, right][usize::from(sides[0].is_empty())] * after / devices,
            _ => return None,
        };
        let fewer = elems(&node.ty) * (after + after / devices) < operands;
        let turns = if rank > 2 { turns(&node.ty.shape, &placed[a.0 as usize].result) } else { 1 };
        Some((axis, fewer && steps(g, node) * after <= self.work * BEHIND_MAX * turns as f64))
    }

    /// The same of a sum whose first reduced dim is split.
    fn of_sum(
        &self,
        g: &Graph,
        node: &Node,
        axes: &[usize],
        x: NodeId,
        placed: &[NodeLayout],
    ) -> Option<(String, bool)> {
        let (ty, layout) = (g.ty(x), &placed[x.0 as usize].result);
        let alike = ty.dtype == node.ty.dtype && matches!(ty.dtype, DType::F32 | DType::F64);
        let (&first, rest) = axes.split_first()?;
        let whole = axes.is_sorted() && rest.iter().all(|&d| layout.axes(d).is_empty());
        if !alike || !whole || node.ty.shape.is_empty() || node.policy != Policy::Deterministic {
            return None;
        }
        let (axis, devices) = self.only(g, placed, x, first)?;
        let runs = Runs::new(&ty.shape, axes, devices);
        let handed: u64 = (0..devices - 1).map(|index| Runs::rows(runs.of(index).end)).sum();
        let share = (devices - 1) as f64 / devices as f64;
        let fewer = elems(&node.ty) * (handed as f64 + share) < elems(ty) * share;
        Some((axis, fewer))
    }
}

/// The positions of a sum that the devices of an axis have, one run after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Runs {
    pub all: u64,
    /// On every device but the last.
    each: u64,
}

impl Runs {
    /// Of a sum over `axes`, of which the first one is split.
    pub fn new(shape: &[u64], axes: &[usize], devices: u64) -> Runs {
        let behind: u64 = axes.iter().skip(1).map(|&d| shape[d]).product();
        let size = axes.first().map_or(1, |&d| shape[d]);
        Runs { all: size * behind, each: size.div_ceil(devices) * behind }
    }

    /// Those of one device.
    pub fn of(self, index: u64) -> Range<u64> {
        (self.each * index).min(self.all)..(self.each * (index + 1)).min(self.all)
    }

    /// What is handed on behind the first positions: the sums of whole leaves, and the lanes of one that is not.
    pub fn rows(positions: u64) -> u64 {
        let open = !positions.is_multiple_of(LEAF as u64);
        positions / LEAF as u64 + if open { LANES as u64 } else { 0 }
    }
}

/// In how many turns a batch of products goes from device to device: the next device begins when one turn is done.
pub fn turns(shape: &[u64], layout: &Sharding) -> u64 {
    let parts = layout.parts(0).max(1);
    let Some(&items) = shape.first().filter(|n| n.is_multiple_of(parts) && **n > 0) else { return 1 };
    (1..=TURNS_MAX).rev().find(|&turns| (items / parts).is_multiple_of(turns)).unwrap_or(1)
}

/// Whether a product is a sum in a chain: one row of ones.
fn is_sum(g: &Graph, node: &Node) -> bool {
    node.operands.first().is_some_and(|&o| matches!(g.node(o).prim, Prim::Full { .. }))
}

fn elems(ty: &NodeType) -> f64 {
    ty.elems().unwrap_or(u64::MAX) as f64
}

/// Multiply-adds of a product.
fn steps(g: &Graph, node: &Node) -> f64 {
    let depth = match node.prim {
        Prim::Dot { .. } => node.operands.first().and_then(|&o| g.ty(o).shape.last().copied()),
        _ => None,
    };
    depth.map_or(0.0, |k| k as f64 * node.ty.elems().unwrap_or(0) as f64)
}

/// The layouts of a product whose sums go along an axis: its readers get the result split over the
/// axis, over the first dim that has room.
pub fn chain_layouts(
    g: &Graph,
    node: &Node,
    mesh: &Arc<Mesh>,
    placed: &[NodeLayout],
    axis: &str,
    at: &[(Monoid, String)],
) -> NodeLayout {
    let mut out = node_layouts(g, node, mesh, placed, Some(axis), at);
    let (layout, shape) = (out.result.clone(), &node.ty.shape);
    let devices = mesh.size(axis).unwrap_or(1);
    let mut dims: Vec<Vec<String>> = (0..shape.len()).map(|d| layout.axes(d).to_vec()).collect();
    let parts = |d: usize| layout.parts(d).max(1) * devices;
    let even = (0..shape.len()).find(|&d| shape[d].is_multiple_of(parts(d)) && shape[d] > 0);
    if let Some(d) = even.or_else(|| (0..shape.len()).find(|&d| shape[d] >= parts(d))) {
        dims[d].push(axis.to_owned());
    }
    out.result = Sharding { dims, ..layout.clone() }.normal(shape.len());
    out.made = out.made.into_iter().map(|made| Materialization { at: out.result.clone().into(), ..made }).collect();
    out.chain = Some(Chain { axis: axis.to_owned(), layout });
    out
}

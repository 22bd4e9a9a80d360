//! Where the readers of a result want it: what goes through elementwise steps is looked at up to conversions of layout.

use crate::layout::{NodeLayout, real};
use crate::links::links;
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::Mesh;
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::links::Link;
use tessera_ops::prim::Prim;

/// What becomes of a result that may be split over some axes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Demand {
    /// Whether it moves least if it does: several values that are made of it are wanted in full on every device, or one is
    /// multiplied by what the axes split elsewhere, which every device needs in full for it.
    pub whole: bool,
    /// Whether several values that have been made of it element by element are wanted in full.
    pub several: bool,
    /// A dim of it that what it goes together with, or what it becomes, is split over.
    pub split: Option<usize>,
}

/// Readers of every node, ascending.
pub fn readers(g: &Graph) -> Vec<Vec<NodeId>> {
    let mut out = vec![vec![]; g.nodes.len()];
    for id in g.ids() {
        for o in &g.node(id).operands {
            if out[o.0 as usize].last() != Some(&id) {
                out[o.0 as usize].push(id);
            }
        }
    }
    out
}

/// The demand along `axes` for a value that lies in one shape at the nodes `at`.
pub fn demand(
    g: &Graph,
    readers: &[Vec<NodeId>],
    at: &[NodeId],
    axes: &[String],
    mesh: &Arc<Mesh>,
    placed: &[NodeLayout],
) -> Demand {
    let mut out = Demand::default();
    let Some(axis) = axes.first() else { return out };
    // By node where each dim of the result went.
    let own = |id: &NodeId| (*id, (0..g.ty(*id).shape.len()).map(Some).collect::<Vec<_>>());
    let mut todo: Vec<(NodeId, Vec<Option<usize>>)> = at.iter().map(own).collect();
    let mut made: BTreeSet<NodeId> = at.iter().copied().collect();
    let mut full = 0;
    // What it goes together with, by the dims of the result; values that are made of it too have no say.
    let mut others: Vec<(NodeId, Option<usize>)> = vec![];
    while let Some((from, dims)) = todo.pop() {
        for &reader in &readers[from.0 as usize] {
            let node = g.node(reader);
            let origin = |d: usize| dims.iter().position(|to| *to == Some(d));
            if node.prim == Prim::Layout {
                let split = real(&node.ty.sharding, mesh, node.ty.shape.len()).dim_of(axis);
                out.split = out.split.or(split.and_then(origin));
                full += usize::from(split.is_none() && is_everywhere(node));
                continue;
            }
            let steps = matches!(node.prim, Prim::Map(_) | Prim::Cast | Prim::Transpose { .. } | Prim::Reshape);
            if !steps || !made.insert(reader) {
                continue;
            }
            let links = links(g, node);
            let passed = |links: &[Link], d: usize| match links.get(d) {
                Some(Link::Pass(to)) => Some(*to),
                _ => None,
            };
            let own = node.operands.iter().position(|o| *o == from).and_then(|i| links.get(i));
            let next = dims.iter().map(|d| passed(own?, (*d)?)).collect::<Vec<_>>();
            for (o, links) in node.operands.iter().zip(&links) {
                let split = placed[o.0 as usize].result.dim_of(axis).and_then(|d| passed(links, d));
                others.extend(split.map(|to| (*o, next.iter().position(|d| *d == Some(to)))));
            }
            todo.push((reader, next));
        }
    }
    if others.iter().any(|(_, d)| d.is_some()) {
        // What is made of it has no say.
        let made = made_of(readers, at, |_| true);
        let apart = others.iter().filter(|(o, _)| !made[o.0 as usize]).find_map(|(_, d)| *d);
        out.split = out.split.or(apart);
    }
    out.several = full > 1;
    out.whole = out.several || is_wanted_whole(g, readers, at, axis, mesh, placed);
    out
}

/// By node, whether it is made of one of these by steps that go `on`.
fn made_of(readers: &[Vec<NodeId>], at: &[NodeId], on: impl Fn(NodeId) -> bool) -> Vec<bool> {
    let mut out = vec![false; readers.len()];
    let mut todo = at.to_vec();
    while let Some(id) = todo.pop() {
        let before = std::mem::replace(&mut out[id.0 as usize], true);
        if !before && (at.contains(&id) || on(id)) {
            todo.extend(&readers[id.0 as usize]);
        }
    }
    out
}

/// See [`Demand::whole`].
fn is_wanted_whole(
    g: &Graph,
    readers: &[Vec<NodeId>],
    at: &[NodeId],
    axis: &str,
    mesh: &Arc<Mesh>,
    placed: &[NodeLayout],
) -> bool {
    let stops = |id: NodeId| matches!(g.node(id).prim, Prim::Layout | Prim::Dot { .. } | Prim::Scan { .. });
    let made = made_of(readers, at, |id| !stops(id));
    let mut full = 0;
    for id in g.ids().filter(|id| made[id.0 as usize] && stops(*id) && !at.contains(id)) {
        let node = g.node(id);
        match node.prim {
            Prim::Layout if real(&node.ty.sharding, mesh, node.ty.shape.len()).dim_of(axis).is_none() => {
                full += usize::from(is_everywhere(node));
            }
            Prim::Dot { .. }
                if node.operands.iter().any(|x| made[x.0 as usize] && meets_other_parts(g, node, *x, axis, placed)) =>
            {
                return true;
            }
            _ => {}
        }
    }
    full > 1
}

/// Whether a node is a product of `x` with what an axis splits along a dim that `x` lacks: it is computed where the other is.
fn meets_other_parts(g: &Graph, node: &Node, x: NodeId, axis: &str, placed: &[NodeLayout]) -> bool {
    let (Prim::Dot { .. }, &[left, right]) = (&node.prim, &node.operands[..]) else { return false };
    let rank = g.ty(left).shape.len();
    let split = |o: NodeId| placed[o.0 as usize].result.dim_of(axis);
    match left == x {
        true => right != x && split(right).is_some_and(|d| d + 1 >= rank),
        false => split(left).is_some_and(|d| d + 2 == rank),
    }
}

/// Whether a conversion is to all devices: what one gets alone is not wanted by the others.
fn is_everywhere(to: &Node) -> bool {
    to.ty.sharding.mesh.is_some() && to.ty.sharding.unfinished().is_none()
}

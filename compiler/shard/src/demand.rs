//! Where the readers of a result want it: what goes through elementwise steps is looked at up to conversions of layout.

use crate::layout::{NodeLayout, real};
use crate::links::links;
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::Mesh;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::links::Link;
use tessera_ops::prim::Prim;

/// What becomes of a result that may be split over some axes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Demand {
    /// Values that are made of it and are wanted in full on every device.
    pub whole: usize,
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

/// The demand for node `id` along `axes`.
pub fn demand(
    g: &Graph,
    readers: &[Vec<NodeId>],
    id: NodeId,
    axes: &[String],
    mesh: &Arc<Mesh>,
    placed: &[NodeLayout],
) -> Demand {
    let mut out = Demand::default();
    let Some(axis) = axes.first() else { return out };
    // By node where each dim of the result went.
    let dims: Vec<Option<usize>> = (0..g.ty(id).shape.len()).map(Some).collect();
    let mut todo = vec![(id, dims)];
    let mut made = BTreeSet::from([id]);
    // What it goes together with, by the dims of the result; values that are made of it too have no say.
    let mut others: Vec<(NodeId, Option<usize>)> = vec![];
    while let Some((from, dims)) = todo.pop() {
        for &reader in &readers[from.0 as usize] {
            let node = g.node(reader);
            let origin = |d: usize| dims.iter().position(|to| *to == Some(d));
            if node.prim == Prim::Layout {
                match real(&node.ty.sharding, mesh, node.ty.shape.len()).dim_of(axis) {
                    Some(d) => out.split = out.split.or(origin(d)),
                    // What one device gets alone is not wanted by the others.
                    None => {
                        let to = &node.ty.sharding;
                        out.whole += usize::from(to.mesh.is_some() && to.unfinished().is_none());
                    }
                }
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
    let apart = others.iter().filter(|(o, _)| !made.contains(o)).find_map(|(_, d)| *d);
    out.split = out.split.or(apart);
    out
}

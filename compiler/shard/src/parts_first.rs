//! What devices make of their own parts of a split dim before anything moves: reductions and products.
//!
//! Runs before a graph is laid out, on the layouts that it would get; bodies of loops go along.

use crate::adder::Adder;
use crate::demand::{Demand, demand, readers};
use crate::layout::{NodeLayout, lay_out_more, lay_out_with, real};
use crate::links::links;
use crate::partial_products::Weighed;
use crate::{blockwise_reduce, partial_products};
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType};
use tessera_ir::links::Link;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Build, Id, expand};

/// The graph with parts reduced first, where that moves less, and what was weighed of products, in the order of the graph.
pub fn parts_first(g: &Graph, mesh: &Arc<Mesh>) -> (Graph, Vec<Weighed>) {
    let mut weighed = vec![];
    if !contracts(g) {
        return (g.clone(), weighed);
    }
    let stated: Vec<Sharding> = g.inputs.iter().map(|i| real(&i.ty.sharding, mesh, i.ty.shape.len())).collect();
    let graph = rewritten(g, mesh, &lay_out_with(g, mesh, &stated, &[]), &stated, &mut weighed);
    (graph, weighed)
}

fn contracts(g: &Graph) -> bool {
    let here = |n: &Node| matches!(n.prim, Prim::Reduce { .. } | Prim::Dot { .. });
    g.nodes.iter().any(here) || g.bodies.iter().any(contracts)
}

/// The graph, whose nodes lie as `placed` as it is, with inputs that lie like this.
fn rewritten(
    g: &Graph,
    mesh: &Arc<Mesh>,
    placed: &[NodeLayout],
    inputs: &[Sharding],
    weighed: &mut Vec<Weighed>,
) -> Graph {
    // Of what is rewritten it is known how it lies: what follows decides by that.
    let (mut known, mut made_so) = (placed.to_vec(), vec![]);
    let at = inputs.first().map(|s| s.positions()).unwrap_or_default();
    let mut out = Graph { nodes: vec![], outputs: vec![], ..g.clone() };
    let mut now: Vec<NodeId> = vec![];
    let mut bodies = BTreeSet::new();
    let readers = readers(g);
    for id in g.ids() {
        let node = g.node(id);
        if let (Prim::Scan { body, .. }, Some(turn)) = (&node.prim, &placed[id.0 as usize].turn)
            && bodies.insert(*body)
            && let Some(of) = g.bodies.get(*body as usize)
        {
            out.bodies[*body as usize] = rewritten(of, mesh, &turn.placed, &turn.inputs, weighed);
        }
        let renamed = Node { operands: node.operands.iter().map(|o| now[o.0 as usize]).collect(), ..node.clone() };
        let mut b = Adder { graph: &mut out, like: node };
        let new = |x: NodeId| Id(now[x.0 as usize].0);
        let over = summed_over(g, node, &known).map(<[String]>::to_vec);
        let apart = over.as_ref().filter(|_| !g.outputs.contains(&id)).and_then(|axes| {
            let stay = known[id.0 as usize].result.axes(0).iter().filter(|a| !axes.contains(a));
            let parts = stay.filter_map(|a| mesh.size(a)).product();
            rows_apart(g, node, &readers[id.0 as usize], parts)
        });
        let results = if apart.is_some() { &readers[id.0 as usize][..] } else { &[id][..] };
        let wanted = |axes: &[String]| demand(g, &readers, results, axes, mesh, &known);
        let made = match (&node.prim, &node.operands[..]) {
            (Prim::Reduce { kind, axes }, &[x]) => {
                let lies = (g.ty(x), &known[x.0 as usize].result);
                blockwise_reduce::reduced(&mut b, new(x), lies, (node, *kind, axes))
            }
            (Prim::Dot { .. }, &[x, y]) => {
                // Columns may be in several dims.
                let row = g.ty(x).shape.len().checked_sub(2).and_then(|d| node.ty.shape.get(d));
                let rows = apart.unwrap_or_else(|| row.into_iter().copied().collect());
                let way = partial_products::way(g, node, mesh, &known);
                weighed.extend(way.as_ref().map(|w| w.weighed.clone()));
                way.filter(|w| w.weighed.moves_sums()).and_then(|way| {
                    partial_products::summed(&mut b, [new(x), new(y)], g, (id, node, &rows), &way, &known, &wanted)
                })
            }
            // Its operand has this shape already.
            (Prim::Reshape, &[x]) if b.shape(new(x)) == node.ty.shape => Some(new(x)),
            (Prim::Reshape, &[x]) => {
                let lies = known[x.0 as usize].result.clone();
                let lost = joined(g, node, &lies, mesh);
                let same = b.shape(new(x)) == g.ty(x).shape && !lost.is_empty();
                (same && wanted(&lost).whole && wanted(&lost).split.is_none()).then(|| {
                    let all = without(&mut b, new(x), lies, &lost);
                    expand::reshape(&mut b, all, &node.ty.shape)
                })
            }
            _ => None,
        };
        let made = made.unwrap_or_else(|| Id(b.graph.push(renamed).0));
        // It is what moves where nothing is made of shares of it.
        let made = match over.as_ref().map(|axes| (axes, wanted(axes))) {
            Some((axes, Demand { whole: true, split: None, .. })) => {
                let (result, shape) = (&known[id.0 as usize].result, b.shape(made));
                let mut dims: Vec<Vec<String>> = (0..node.ty.shape.len()).map(|d| result.axes(d).to_vec()).collect();
                // Rows apart: the first dim of them is what is split.
                let more = shape.len() - node.ty.shape.len();
                dims.splice(dims.len().min(1)..dims.len().min(1), std::iter::repeat_n(vec![], more));
                without(&mut b, made, Sharding { dims, ..result.clone() }, axes)
            }
            _ => made,
        };
        lay_out_more(&out, mesh, inputs, &at, &mut made_so);
        let lies = made_so[made.0 as usize].result.clone();
        let kept: Vec<String> = gathered(node, &lies, mesh, &wanted);
        let mut b = Adder { graph: &mut out, like: node };
        let made = if kept.is_empty() { made } else { without(&mut b, made, lies, &kept) };
        let made = NodeId(made.0);
        lay_out_more(&out, mesh, inputs, &at, &mut made_so);
        if out.ty(made).shape == node.ty.shape {
            known[id.0 as usize].result = made_so[made.0 as usize].result.clone();
        }
        now.push(made);
    }
    out.outputs = g.outputs.iter().map(|o| now[o.0 as usize]).collect();
    out
}

/// A value that lies like this without its parts along some axes.
fn without(b: &mut Adder, x: Id, lies: Sharding, axes: &[String]) -> Id {
    let (shape, dtype) = (b.shape(x), b.dtype(x));
    let kept = |d: usize| lies.axes(d).iter().filter(|a| !axes.contains(a)).cloned().collect();
    let dims = (0..shape.len()).map(kept).collect();
    let sharding = Sharding { dims, ..lies.clone() }.normal(shape.len());
    b.typed(Prim::Layout, &[x], NodeType { sharding, ..NodeType::new(shape, dtype) })
}

/// The axes over which a result is split of which several values are made that are wanted in full.
fn gathered(node: &Node, lies: &Sharding, mesh: &Arc<Mesh>, wanted: &dyn Fn(&[String]) -> Demand) -> Vec<String> {
    if !matches!(node.prim, Prim::Dot { .. } | Prim::Reduce { .. } | Prim::Scatter { .. }) {
        return vec![];
    }
    let one = |axis: &String| {
        let demand = wanted(std::slice::from_ref(axis));
        demand.several && demand.split.is_none()
    };
    mesh.names().into_iter().map(String::from).filter(|a| lies.dim_of(a).is_some() && one(a)).collect()
}

/// The axes over dims that a reshape joins with others, so that parts of them are no parts of its result.
fn joined(g: &Graph, node: &Node, lies: &Sharding, mesh: &Mesh) -> Vec<String> {
    let Some(&x) = node.operands.first() else { return vec![] };
    let (links, shape) = (links(g, node), &g.ty(x).shape);
    let stays = |d: usize| match links.first().and_then(|l| l.get(d)) {
        Some(Link::Pass(_)) => true,
        Some(Link::Blocks(to)) => {
            let parts = lies.axes(d).iter().filter_map(|a| mesh.size(a)).product::<u64>();
            shape[d].is_multiple_of(parts) && node.ty.shape[*to].is_multiple_of(parts)
        }
        _ => false,
    };
    (0..shape.len()).filter(|d| !stays(*d)).flat_map(|d| lies.axes(d)).cloned().collect()
}

/// The dims that all readers of a product divide its rows into, which may be split along any of them. The rows are in so many
/// parts as it is.
fn rows_apart(g: &Graph, node: &Node, readers: &[NodeId], parts: u64) -> Option<Vec<u64>> {
    let (Prim::Dot { .. }, &[_, columns]) = (&node.prim, &node.ty.shape[..]) else { return None };
    let first = &g.node(*readers.first()?).ty.shape;
    let alike = |r: &NodeId| g.node(*r).prim == Prim::Reshape && g.node(*r).ty.shape == *first;
    let (last, rows) = first.split_last()?;
    let even = rows.first()?.is_multiple_of(parts);
    (even && *last == columns && rows.len() > 1 && readers.iter().all(alike)).then(|| rows.to_vec())
}

/// The axes along which a product or a sum goes over all devices.
fn summed_over<'a>(g: &Graph, node: &Node, placed: &'a [NodeLayout]) -> Option<&'a [String]> {
    match (&node.prim, &node.operands[..]) {
        (Prim::Dot { .. }, &[x, y]) => partial_products::split_over(g, [x, y], placed),
        (Prim::Reduce { axes, .. }, &[x]) => {
            let split = |d: &usize| Some(placed[x.0 as usize].result.axes(*d)).filter(|axes| !axes.is_empty());
            axes.iter().find_map(split)
        }
        _ => None,
    }
}

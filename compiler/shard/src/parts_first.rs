//! What devices make of their own parts of a split dim before anything moves: reductions and products.
//!
//! Runs before a graph is laid out, on the layouts that it would get; bodies of loops go along.

use crate::adder::Adder;
use crate::demand::{Demand, demand, readers};
use crate::layout::{NodeLayout, lay_out_more, lay_out_with, real};
use crate::{blockwise_reduce, partial_products};
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType};
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Build, Id};

/// The graph with parts reduced first, where that moves less.
pub fn parts_first(g: &Graph, mesh: &Arc<Mesh>) -> Graph {
    if !contracts(g) {
        return g.clone();
    }
    let stated: Vec<Sharding> = g.inputs.iter().map(|i| real(&i.ty.sharding, mesh, i.ty.shape.len())).collect();
    rewritten(g, mesh, &lay_out_with(g, mesh, &stated, &[]), &stated)
}

fn contracts(g: &Graph) -> bool {
    let here = |n: &Node| matches!(n.prim, Prim::Reduce { .. } | Prim::Dot { .. });
    g.nodes.iter().any(here) || g.bodies.iter().any(contracts)
}

/// The graph, whose nodes lie as `placed` as it is, with inputs that lie like this.
fn rewritten(g: &Graph, mesh: &Arc<Mesh>, placed: &[NodeLayout], inputs: &[Sharding]) -> Graph {
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
            out.bodies[*body as usize] = rewritten(of, mesh, &turn.placed, &turn.inputs);
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
                let rows = apart.unwrap_or_else(|| node.ty.shape.iter().rev().skip(1).take(1).copied().collect());
                partial_products::summed(&mut b, [new(x), new(y)], g, (id, node, &rows), mesh, &known, &wanted)
            }
            // Its operand has this shape already.
            (Prim::Reshape, &[x]) if b.shape(new(x)) == node.ty.shape => Some(new(x)),
            _ => None,
        };
        let made = made.unwrap_or_else(|| Id(b.graph.push(renamed).0));
        // It is what moves where nothing is made of shares of it.
        let made = match over.as_ref().map(|axes| (axes, wanted(axes))) {
            Some((axes, Demand { whole: true, split: None })) => {
                let kept = |d: &Vec<String>| d.iter().filter(|a| !axes.contains(a)).cloned().collect();
                let (result, shape) = (&known[id.0 as usize].result, b.shape(made));
                let mut dims: Vec<Vec<String>> = result.dims.iter().map(kept).collect();
                // Rows apart: the first dim of them is what is split.
                let more = shape.len() - node.ty.shape.len();
                dims.splice(dims.len().min(1)..dims.len().min(1), std::iter::repeat_n(vec![], more));
                let sharding = Sharding { dims, ..result.clone() }.normal(shape.len());
                let ty = NodeType { shape, sharding, ..node.ty.clone() };
                b.typed(Prim::Layout, &[made], ty)
            }
            _ => made,
        };
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

//! What devices make of their own parts of a split dim before anything moves: reductions and products.
//!
//! Runs before a graph is laid out, on the layouts that it would get; bodies of loops go along.

use crate::adder::Adder;
use crate::demand::{Demand, demand, readers};
use crate::layout::{NodeLayout, lay_out_with, real};
use crate::{blockwise_reduce, partial_products};
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType};
use tessera_ops::prim::Prim;
use tessera_ops::surface::Id;

/// The graph with parts reduced first, where that moves less.
pub fn parts_first(g: &Graph, mesh: &Arc<Mesh>) -> Graph {
    if !contracts(g) {
        return g.clone();
    }
    let stated: Vec<Sharding> = g.inputs.iter().map(|i| real(&i.ty.sharding, mesh, i.ty.shape.len())).collect();
    rewritten(g, mesh, &lay_out_with(g, mesh, &stated, &[]))
}

fn contracts(g: &Graph) -> bool {
    let here = |n: &Node| matches!(n.prim, Prim::Reduce { .. } | Prim::Dot { .. });
    g.nodes.iter().any(here) || g.bodies.iter().any(contracts)
}

fn rewritten(g: &Graph, mesh: &Arc<Mesh>, placed: &[NodeLayout]) -> Graph {
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
            out.bodies[*body as usize] = rewritten(of, mesh, &turn.placed);
        }
        let renamed = Node { operands: node.operands.iter().map(|o| now[o.0 as usize]).collect(), ..node.clone() };
        let mut b = Adder { graph: &mut out, like: node };
        let new = |x: NodeId| Id(now[x.0 as usize].0);
        let wanted = |axes: &[String]| demand(g, &readers, id, axes, mesh, placed);
        let made = match (&node.prim, &node.operands[..]) {
            (Prim::Reduce { kind, axes }, &[x]) => {
                let lies = (g.ty(x), &placed[x.0 as usize].result);
                blockwise_reduce::reduced(&mut b, new(x), lies, (node, *kind, axes))
            }
            (Prim::Dot { .. }, &[x, y]) => {
                partial_products::summed(&mut b, [new(x), new(y)], g, (id, node), mesh, placed, &wanted)
            }
            _ => None,
        };
        let made = made.unwrap_or_else(|| Id(b.graph.push(renamed).0));
        // Several values that are made of it are wanted in full: it is what moves.
        let made = match summed_over(g, node, placed).map(|axes| (axes, wanted(axes))) {
            Some((axes, Demand { whole: 2.., split: None })) => {
                let kept = |d: &Vec<String>| d.iter().filter(|a| !axes.contains(a)).cloned().collect();
                let result = &placed[id.0 as usize].result;
                let dims = result.dims.iter().map(kept).collect();
                let sharding = Sharding { dims, ..result.clone() }.normal(node.ty.shape.len());
                let mut b = Adder { graph: &mut out, like: node };
                b.typed(Prim::Layout, &[made], NodeType { sharding, ..node.ty.clone() })
            }
            _ => made,
        };
        now.push(NodeId(made.0));
    }
    out.outputs = g.outputs.iter().map(|o| now[o.0 as usize]).collect();
    out
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

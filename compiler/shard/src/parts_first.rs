//! What devices make of their own parts of a split dim before anything moves: reductions, and products whose order is free.
//!
//! Runs before a graph is laid out, on the layouts that it would get; bodies of loops go along.

use crate::adder::Adder;
use crate::layout::{NodeLayout, lay_out_with, real};
use crate::{blockwise_reduce, partial_products};
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId};
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
        let made = match (&node.prim, &node.operands[..]) {
            (Prim::Reduce { kind, axes }, &[x]) => {
                let lies = (g.ty(x), &placed[x.0 as usize].result);
                blockwise_reduce::reduced(&mut b, new(x), lies, (node, *kind, axes))
            }
            (Prim::Dot { .. }, &[x, y]) => {
                partial_products::summed(&mut b, [new(x), new(y)], g, (id, node), mesh, placed)
            }
            _ => None,
        };
        now.push(made.map_or_else(|| out.push(renamed), |made| NodeId(made.0)));
    }
    out.outputs = g.outputs.iter().map(|o| now[o.0 as usize]).collect();
    out
}

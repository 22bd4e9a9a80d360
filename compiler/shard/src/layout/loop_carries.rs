//! Where the values of a loop lie.
//!
//! The body of a loop is divided like any graph, once for all turns. A carry lies in one way from
//! turn to turn: the way that it comes in, until the body gives it back split over an axis that
//! did not split it, or over another dim; then that way, from the first turn on. What every turn would
//! move in the same way is moved once, before the loop. A loop with values at one position of an axis is
//! all there: the devices at others do not run it.

use super::{Materialization, NodeLayout, lay_out_with, materialize_views, real};
use std::sync::Arc;
use tessera_base::{Mesh, Monoid, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ops::prim::Prim;

/// Tries to find layouts of the carries that the body keeps. Where it keeps none, its results are
/// moved at the end of each turn.
const ROUNDS_MAX: usize = 4;

/// The body of a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopLayout {
    /// By input of the body.
    pub inputs: Vec<Sharding>,
    /// By node of the body.
    pub placed: Vec<NodeLayout>,
    /// By output of the body: carries in the layout that they come in with.
    pub outputs: Vec<Sharding>,
    /// By result of the loop.
    pub results: Vec<Sharding>,
}

/// The layouts of a loop's operands, whose values lie as `given`, and of its body.
pub fn lay_out(g: &Graph, node: &Node, mesh: &Arc<Mesh>, given: &[Sharding]) -> (Vec<Sharding>, Option<LoopLayout>) {
    let whole = |o: &NodeId| real(&Sharding::default(), mesh, g.ty(*o).shape.len());
    let Prim::Scan { body, carry, sequences, .. } = node.prim else { return (given.to_vec(), None) };
    let Some(body) = g.bodies.get(body as usize) else { return (node.operands.iter().map(whole).collect(), None) };
    let mut inputs = given.to_vec();
    for (layout, &o) in inputs.iter_mut().zip(&node.operands).skip(carry).take(sequences) {
        *layout = of_element(layout, &g.ty(o).shape, mesh);
    }
    let (mut at, mut refused): (Vec<(Monoid, String)>, Vec<String>) = (positions(&inputs, &[]), vec![]);
    let (inputs, mut placed) = loop {
        let (inputs, placed) = kept(body, mesh, &inputs, (carry, sequences), &at);
        let results: Vec<Sharding> = body.outputs.iter().map(|o| placed[o.0 as usize].result.clone()).collect();
        let known = |p: &(Monoid, String)| refused.contains(&p.1) || at.iter().any(|a| a.1 == p.1);
        if let Some(p) = positions(&inputs, &results).into_iter().find(|p| !known(p)) {
            at.push(p);
            at.sort_by(|a, b| a.1.cmp(&b.1));
            continue;
        }
        let Some(elsewhere) = at.iter().position(|p| !placed.iter().all(|n| is_at(n, p))) else {
            break (inputs, placed);
        };
        refused.push(at.remove(elsewhere).1);
    };
    let output = |(i, o): (usize, &NodeId)| match i < carry {
        true => inputs[i].clone(),
        false => Sharding { partial: at.clone(), ..placed[o.0 as usize].result.clone() },
    };
    let outputs: Vec<Sharding> = body.outputs.iter().enumerate().map(output).collect();
    materialize_views(body, mesh, &mut placed, &outputs);
    let stack = |(i, s): (usize, &Sharding)| if i < carry { s.clone() } else { of_all(s, node, i) };
    let results = outputs.iter().enumerate().map(stack).collect();
    let is_sequence = |i: usize| (carry..carry + sequences).contains(&i);
    let operands = (0..node.operands.len())
        .map(|i| {
            let rank = g.ty(node.operands[i]).shape.len();
            if is_sequence(i) { with_first(&inputs[i], rank) } else { inputs[i].clone() }
        })
        .collect();
    (operands, Some(LoopLayout { inputs, placed, outputs, results }))
}

/// The layouts of a body's inputs that it keeps from turn to turn, at these positions, and those of its nodes.
fn kept(
    body: &Graph,
    mesh: &Arc<Mesh>,
    given: &[Sharding],
    (carry, sequences): (usize, usize),
    at: &[(Monoid, String)],
) -> (Vec<Sharding>, Vec<NodeLayout>) {
    let mut inputs = given.to_vec();
    inputs.iter_mut().for_each(|layout| layout.partial = at.to_vec());
    let mut placed = lay_out_with(body, mesh, &inputs, at);
    for _ in 0..ROUNDS_MAX {
        let mut next = inputs.clone();
        for (layout, &o) in next.iter_mut().zip(&body.outputs).take(carry) {
            *layout = settled(layout, &placed[o.0 as usize].result, mesh, body.ty(o).shape.len());
        }
        for (i, layout) in next.iter_mut().enumerate().skip(carry + sequences) {
            *layout = wanted(body, &placed, i as u32).unwrap_or_else(|| layout.clone());
        }
        next.iter_mut().for_each(|layout| layout.partial = at.to_vec());
        if next == inputs {
            break;
        }
        inputs = next;
        placed = lay_out_with(body, mesh, &inputs, at);
    }
    (inputs, placed)
}

/// Whether all that is made of a node is made at a position.
fn is_at(placed: &NodeLayout, (m, axis): &(Monoid, String)) -> bool {
    let there = |made: &Materialization| made.at.layout().is_some_and(|layout| layout.partial_over(axis) == Some(*m));
    placed.made.iter().all(there)
        && placed.turn.as_ref().is_none_or(|t| t.placed.iter().all(|n| is_at(n, &(*m, axis.clone()))))
}

/// Where a loop is: at the first position along each axis that one of its values has, and none of them is split over.
fn positions(inputs: &[Sharding], results: &[Sharding]) -> Vec<(Monoid, String)> {
    let all = || inputs.iter().chain(results);
    let mut out: Vec<(Monoid, String)> = vec![];
    for p in all().flat_map(Sharding::positions) {
        if !out.iter().any(|o| o.1 == p.1) && all().all(|s| s.dim_of(&p.1).is_none()) {
            out.push(p);
        }
    }
    out.sort_by(|a, b| a.1.cmp(&b.1));
    out
}

/// The layout of one element of a sequence. An axis that splits the turns goes over to the largest
/// dim that has room for it.
fn of_element(layout: &Sharding, shape: &[u64], mesh: &Arc<Mesh>) -> Sharding {
    let rank = shape.len().saturating_sub(1);
    let mut out = real(&Sharding::default(), mesh, rank);
    out.dims = (1..=rank).map(|d| layout.axes(d).to_vec()).collect();
    for axis in layout.axes(0) {
        let size = mesh.size(axis).unwrap_or(1);
        let share = |d: &usize| shape[d + 1] / out.parts(*d).max(1);
        let best = (0..rank).filter(|d| share(d) >= size).max_by_key(|d| (share(d), std::cmp::Reverse(*d)));
        if let Some(d) = best {
            out.dims[d].push(axis.clone());
        }
    }
    out.normal(rank)
}

/// The layout with a dim in front that every device has in full.
fn with_first(layout: &Sharding, rank: usize) -> Sharding {
    let dims = (0..rank).map(|d| if d == 0 { vec![] } else { layout.axes(d - 1).to_vec() }).collect();
    Sharding { dims, ..layout.clone() }.normal(rank)
}

/// The layout of a stacked result.
fn of_all(layout: &Sharding, node: &Node, result: usize) -> Sharding {
    with_first(layout, node.results.get(result).map_or(0, |ty| ty.shape.len()))
}

/// How a carry that came in one way and is given back in another lies from the first turn on: axis
/// by axis as it is given back, where that is split.
fn settled(before: &Sharding, after: &Sharding, mesh: &Arc<Mesh>, rank: usize) -> Sharding {
    let mut dims: Vec<Vec<String>> = (0..rank).map(|d| after.axes(d).to_vec()).collect();
    for (axis, _) in &mesh.axes {
        if let (Some(d), None) = (before.dim_of(axis), after.dim_of(axis)) {
            dims[d].push(axis.clone());
        }
    }
    Sharding { dims, ..before.clone() }.normal(rank)
}

/// The one layout in which all readers want an input of a body; `None` where they differ, or none
/// reads it.
fn wanted(body: &Graph, placed: &[NodeLayout], input: u32) -> Option<Sharding> {
    let mut found: Option<&Sharding> = None;
    for id in body.ids() {
        for made in &placed[id.0 as usize].made {
            for (&o, place) in body.node(id).operands.iter().zip(&made.operands) {
                if body.node(o).prim != Prim::Input(input) {
                    continue;
                }
                let layout = place.layout()?;
                if found.is_some_and(|f| f != layout) {
                    return None;
                }
                found = Some(layout);
            }
        }
    }
    found.filter(|_| body.outputs.iter().all(|&o| body.node(o).prim != Prim::Input(input))).cloned()
}

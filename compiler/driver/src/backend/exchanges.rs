//! Where the devices of a mesh meet: exchanges, and loops that have some.

use super::{Given, given, is_scalar, operand, origin};
use crate::native_kernels::gather;
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_abi::plan::{Plan, Step};
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::group::{Group, MemoryPlan};
use tessera_ops::prim::{Exchange, Prim, Transfer};
use tessera_runtime::mesh;
use tessera_runtime::native::{self, Operand};

/// Exchanges and loops, in their order.
fn exchange_points(g: &Graph) -> impl Iterator<Item = &Node> {
    g.nodes.iter().filter(|n| matches!(n.prim, Prim::Exchange(_) | Prim::Scan { .. }))
}

/// The tags of the exchanges, those of loops among them.
pub fn tags(g: &Graph) -> Vec<u32> {
    exchanges(g).into_iter().map(|e| e.tag).collect()
}

/// What has to be there: nobody may wait for a device that does not come. Devices that have no part in a loop do not
/// run its exchanges, with which nobody outside of it has to do.
pub fn exchanges_match(graphs: &[Graph], first: usize) -> bool {
    let all: Vec<BTreeSet<u32>> = graphs.iter().map(|g| tags(g).into_iter().collect()).collect();
    let comes = |peer: u64, tag: u32| {
        let known = (peer as usize).checked_sub(first).and_then(|i| all.get(i));
        known.is_none_or(|tags| tags.contains(&tag))
    };
    let met = |e: &Exchange| e.sends.iter().chain(&e.receives).all(|t| comes(t.peer, e.tag));
    graphs.iter().all(|g| exchanges(g).into_iter().all(met))
}

/// The exchanges, those of loops among them.
fn exchanges(g: &Graph) -> Vec<&Exchange> {
    let mut out = vec![];
    for n in exchange_points(g) {
        match &n.prim {
            Prim::Exchange(e) => out.push(&**e),
            Prim::Scan { body, .. } => out.extend(exchanges(&g.bodies[*body as usize])),
            _ => {}
        }
    }
    out
}

/// Batches of exchanges must come in one order on all devices, each in one piece, and none may be missing: otherwise
/// devices would wait for each other.
pub fn in_order(g: &Graph, plan: &Plan) -> bool {
    let mut names: Vec<String> = vec![];
    // The batch that the last one was of, and the least that may follow.
    let (mut now, mut next) = (None, 0);
    for n in exchange_points(g) {
        let Prim::Exchange(e) = &n.prim else {
            names.push("scan".into());
            now = None;
            continue;
        };
        if now == Some(e.batch) {
            continue;
        }
        if e.batch < next {
            return false;
        }
        names.push(e.name.to_string());
        (now, next) = (Some(e.batch), e.batch.saturating_add(1));
    }
    let planned = plan.steps.iter().filter_map(|s| match s {
        Step::Host { name, .. } if names.iter().any(|n| **n == **name) => Some(&**name),
        Step::Loop(l) => Some(&*l.name),
        _ => None,
    });
    planned.eq(names.iter().map(String::as_str))
}

/// What a device does in the exchanges of a batch, which are the roots of a group, and their operands in the same order.
fn moves(graph: &Graph, group: &Group) -> (mesh::Moves, Vec<(NodeId, NodeId)>) {
    let boxes = |parts: &[Transfer]| {
        let part = |t: &Transfer| (t.peer as usize, mesh::Box { start: t.start.clone(), size: t.size.clone() });
        parts.iter().map(part).collect()
    };
    let mut all: Vec<(&Exchange, NodeId, NodeId)> = vec![];
    for &root in &group.roots {
        let node = graph.node(root);
        if let (Prim::Exchange(e), [from]) = (&node.prim, &node.operands[..]) {
            all.push((e, *from, root));
        }
    }
    all.sort_by_key(|(e, ..)| e.tag);
    let piece = |&(e, from, to): &(&Exchange, NodeId, NodeId)| mesh::Piece {
        sends: boxes(&e.sends),
        receives: boxes(&e.receives),
        from_shape: graph.ty(from).shape.clone(),
        to_shape: graph.ty(to).shape.clone(),
        element: graph.ty(to).dtype.bytes(),
    };
    let (name, tag) = all.first().map_or(("exchange".into(), 0), |(e, ..)| (e.name.clone(), e.batch));
    let moves = mesh::Moves { name, tag, pieces: all.iter().map(piece).collect() };
    (moves, all.into_iter().map(|(_, from, to)| (from, to)).collect())
}

/// The step of a device in the exchanges of a batch.
pub(super) fn exchanged(graph: &Graph, group: &Group, memory: &MemoryPlan) -> Step {
    let (moves, ends) = moves(graph, group);
    let (from, to): (Vec<NodeId>, Vec<NodeId>) = ends.into_iter().unzip();
    let Given { inputs, scalars, sources, types } = given(graph, memory, &from);
    let outputs: Vec<Operand> = to.into_iter().map(|to| operand(graph, memory, to)).collect();
    let (name, origin) = (moves.name.clone(), origin(graph, group.roots[0]));
    let run = move |inputs: &[&[u8]], outputs: &mut [&mut [u8]], words: &[u64]| {
        let words: Vec<[u8; 8]> = words.iter().map(|w| w.to_le_bytes()).collect();
        Ok(mesh::exchange(&moves, &gather(&sources, &types, inputs, &words), outputs)?)
    };
    native::step(&name, &inputs, &outputs, scalars, origin, Arc::new(run))
}

/// The step that starts the exchanges of a batch.
pub(super) fn started(graph: &Graph, group: &Group, memory: &MemoryPlan) -> Option<Step> {
    let (moves, ends) = moves(graph, group);
    let given: Vec<Operand> = ends.iter().map(|(from, _)| operand(graph, memory, *from)).collect();
    let plain = !ends.iter().any(|(from, _)| is_scalar(graph, *from));
    plain.then(|| mesh::start_step(moves, &given, origin(graph, group.roots[0])))
}

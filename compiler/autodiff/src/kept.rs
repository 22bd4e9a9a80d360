//! What the turns of a loop keep for their derivative.
//!
//! Before: the reverse loop computes all of a turn once more that its derivative reads.
//! After: products, and whatever else takes long, stay behind the forward loop as further results. Of all sets of values that
//! lie between those and the derivative, the one of fewest bytes is kept (a minimum cut); what follows from it by cheap
//! steps is computed once more. What `autodiff.checkpoint` marks is not read from the forward loop, so it is not kept.

use crate::copies::{copy_into, input};
use std::collections::{BTreeMap, BTreeSet};
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::minimum_cut::Network;
use tessera_ir::prim::columns::Again;
use tessera_ir::prim::{Site, row};
use tessera_ops::prim::Prim;

/// Nanoseconds that a byte takes to be written and read again, roughly.
const NS_PER_BYTE: f64 = 0.25;
/// More than all bytes there are.
const NEVER: u64 = u64::MAX / 8;

/// The values among the nodes before `end` to take from elsewhere, ascending: between what takes long and what the nodes behind
/// read. None where keeping them takes longer.
pub fn choose(g: &Graph, end: NodeId) -> Vec<NodeId> {
    let wanted = read_behind(g, end);
    let mut nodes: Vec<NodeId> = wanted.clone();
    let mut number: BTreeMap<NodeId, usize> = nodes.iter().enumerate().map(|(i, id)| (*id, i)).collect();
    let (mut reads, mut long) = (vec![], BTreeMap::new());
    let mut next = 0;
    while let Some(&id) = nodes.get(next) {
        if let Some(ns) = time(g, id) {
            long.insert(next, ns);
        } else {
            for &o in &g.node(id).operands {
                let operand = *number.entry(o).or_insert_with(|| {
                    nodes.push(o);
                    nodes.len() - 1
                });
                reads.push((next, operand));
            }
        }
        next += 1;
    }
    // What is given to the turn costs nothing, and is not kept.
    let is_there = |id: NodeId| matches!(g.node(id).prim, Prim::Input(_) | Prim::Literal(_));
    let bytes = |id: &NodeId| match g.node(*id).prim {
        _ if is_there(*id) => 0,
        // Its results are the values.
        Prim::Scan { .. } => NEVER,
        _ => g.ty(*id).bytes().map_or(NEVER, |b| b.min(NEVER)),
    };
    let mut room: Vec<u64> = nodes.iter().map(bytes).collect();
    room.push(NEVER);
    let mut network = Network::new(&room);
    let sink = nodes.len();
    (0..wanted.len()).for_each(|w| network.reads(sink, w));
    reads.iter().for_each(|&(reader, operand)| network.reads(reader, operand));
    long.keys().for_each(|&s| network.source(s));
    let kept: Vec<usize> = network.cut(sink);
    let price = kept.iter().map(|&k| room[k] as f64).sum::<f64>() * NS_PER_BYTE;
    if kept.contains(&sink) || price >= long.values().sum::<f64>() {
        return vec![];
    }
    let mut out: Vec<NodeId> = kept.into_iter().map(|k| nodes[k]).filter(|id| !is_there(*id)).collect();
    out.sort();
    out
}

/// The values before `end` that nodes behind it read, of those that the outputs need. A loop of which the derivative wants more than
/// it gave before is none: it is computed once more.
fn read_behind(g: &Graph, end: NodeId) -> Vec<NodeId> {
    let mut needed: BTreeSet<NodeId> = g.outputs.iter().copied().collect();
    let mut todo: Vec<NodeId> = g.outputs.clone();
    while let Some(id) = todo.pop() {
        if id >= end {
            todo.extend(g.node(id).operands.iter().filter(|o| needed.insert(**o)));
        }
    }
    needed.into_iter().filter(|id| *id < end && !matches!(g.node(*id).prim, Prim::Scan { .. })).collect()
}

/// How long a value takes that is too long to be computed once more without need.
fn time(g: &Graph, id: NodeId) -> Option<f64> {
    let node = g.node(id);
    if matches!(node.prim, Prim::Input(_) | Prim::Literal(_) | Prim::Check(_)) {
        return None;
    }
    match row(&node.prim).cost(Site { g, node }).again {
        Again::Cheap(_) => None,
        Again::Dear(ns) => Some(ns),
        Again::Never => Some(f64::INFINITY),
    }
}

/// The body with some of its values as elements of further sequences, which come before the constants.
pub fn taking(g: &Graph, elements: &[NodeId], constants: usize) -> Graph {
    let mut out = Graph { name: g.name.clone(), kernels: g.kernels.clone(), memory: g.memory, ..Graph::default() };
    let before = g.inputs.len() - constants;
    let mut given = |name: &str, ty| input(&mut out, name, ty);
    let mut values: Vec<NodeId> = g.inputs[..before].iter().map(|i| given(&i.name, i.ty.clone())).collect();
    let kept: Vec<NodeId> = elements.iter().map(|&e| given("kept", g.ty(e).unsharded())).collect();
    values.extend(g.inputs[before..].iter().map(|i| given(&i.name, i.ty.clone())));
    values.extend(kept);
    let as_input = |id: NodeId| -> (NodeId, Node) {
        let node = g.node(id).clone();
        let prim = match elements.binary_search(&id) {
            Ok(k) => Prim::Input((g.inputs.len() + k) as u32),
            Err(_) => node.prim,
        };
        (id, Node { prim, ..node })
    };
    let copied = copy_into(&mut out, g.ids().map(as_input).collect(), Some(&g.bodies), &values, None);
    let all: Vec<NodeId> = g.ids().collect();
    out.derivatives = g.derivatives.copied(&all, &|id| copied.get(&id).copied());
    out.outputs = g.outputs.iter().map(|o| copied.get(o).copied().unwrap_or(*o)).collect();
    out
}

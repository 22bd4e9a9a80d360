//! What kernels cost whatever the machine: launches, bytes that they have to move, operations.
//!
//! Each operand of a group counts once, as if nothing stayed in a cache between groups and
//! everything inside one: of a tensor that is sliced or read at positions the elements that are
//! read, of others all. What the launches of one group hand over to each other is written once
//! and read once. One operation is an addition, a multiplication, a comparison or a call of an
//! elementwise function, whatever the function costs; conversions and movement are none. A step
//! of a product is two, of complex numbers eight.

use super::{Planned, is_scalar};
use std::collections::BTreeMap;
use tessera_abi::plan::Counts;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::prim::{Site, row, written_base, written_shape};

/// The counts of one group. A group without kernels of its own moves bytes and has no launches.
pub fn of(graph: &Graph, planned: &Planned) -> Counts {
    let group = &planned.group;
    let needed = needed(graph, planned);
    let part = |&id: &NodeId| {
        let elems = needed.get(&id).copied().unwrap_or(0);
        elems.saturating_mul(graph.ty(id).dtype.bytes() as u64)
    };
    let between: u64 = planned.lowered.iter().flat_map(|l| &l.temps).sum();
    Counts {
        kernels: planned.lowered.as_ref().map_or(0, |l| l.steps.len() as u64),
        bytes_read: group.inputs.iter().map(part).sum::<u64>() + between,
        bytes_written: group.roots.iter().map(|&r| written(graph, r)).sum::<u64>() + between,
        flops: group.members.iter().map(|&m| operations(graph, m)).sum(),
    }
}

/// Adds what other kernels cost.
pub fn add(sum: &mut Counts, other: &Counts) {
    add_times(sum, other, 1);
}

/// Adds what kernels of a loop cost, in so many turns.
pub fn add_times(sum: &mut Counts, other: &Counts, turns: u64) {
    sum.kernels += other.kernels * turns;
    sum.bytes_read += other.bytes_read * turns;
    sum.bytes_written += other.bytes_written * turns;
    sum.flops += other.flops * turns;
}

/// How many members of a group compute something: all but views and constants.
pub fn computing(graph: &Graph, members: &[NodeId]) -> usize {
    members.iter().filter(|&&m| row(&graph.node(m).prim).flags().work).count()
}

/// The bytes that a root writes: of a tensor that is written over, the part.
fn written(graph: &Graph, root: NodeId) -> u64 {
    let elems: u64 = written_shape(graph, root).iter().fold(1, |n, d| n.saturating_mul(*d));
    elems.saturating_mul(graph.ty(root).dtype.bytes() as u64)
}

/// Elements of inputs and members that the roots of a group need, at most.
fn needed(graph: &Graph, planned: &Planned) -> BTreeMap<NodeId, u64> {
    let group = &planned.group;
    let elems = |id: NodeId| graph.ty(id).elems().unwrap_or(u64::MAX);
    let mut out: BTreeMap<NodeId, u64> = group.roots.iter().map(|&r| (r, elems(r))).collect();
    for &m in group.members.iter().rev() {
        let wanted = out.get(&m).copied().unwrap_or(0);
        let n = graph.node(m);
        let over = written_base(graph, m);
        let read = |&(position, o): &(usize, &NodeId)| !is_scalar(graph, *o) && (position > 0 || over != Some(*o));
        for (position, &o) in n.operands.iter().enumerate().filter(read) {
            let here = if row(&n.prim).reads_all(position) { elems(o) } else { wanted.min(elems(o)) };
            let sum = out.entry(o).or_default();
            *sum = sum.saturating_add(here).min(elems(o));
        }
    }
    out
}

/// Operations of a node on numbers.
fn operations(graph: &Graph, id: NodeId) -> u64 {
    let node = graph.node(id);
    row(&node.prim).cost(Site { g: graph, node }).operations
}

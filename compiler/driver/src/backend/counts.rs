//! What kernels cost whatever the machine: launches, bytes that they have to move, operations.
//!
//! Each operand of a group counts once, as if nothing stayed in a cache between groups and
//! everything inside one: of a tensor that is sliced or read at positions the elements that are
//! read, of others all. What the launches of one group hand over to each other is written once
//! and read once. One operation is an addition, a multiplication, a comparison or a call of an
//! elementwise function, whatever the function costs; conversions and movement are none. A step
//! of a product is two, of complex numbers eight.

use super::{Planned, bytes, is_scalar};
use std::collections::BTreeMap;
use tessera_abi::plan::Counts;
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ops::prim::{Prim, Steps};

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
        bytes_written: group.roots.iter().map(|&r| bytes(graph.ty(r))).sum::<u64>() + between,
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
    let computes = |n: &Node| {
        !matches!(
            n.prim,
            Prim::Full { .. }
                | Prim::Iota { .. }
                | Prim::Literal(_)
                | Prim::Broadcast { .. }
                | Prim::Reshape
                | Prim::Transpose { .. }
                | Prim::Slice { .. }
                | Prim::Windows { .. }
        )
    };
    members.iter().filter(|&&m| computes(graph.node(m))).count()
}

/// Elements of inputs and members that the roots of a group need, at most.
fn needed(graph: &Graph, planned: &Planned) -> BTreeMap<NodeId, u64> {
    let group = &planned.group;
    let elems = |id: NodeId| graph.ty(id).elems().unwrap_or(u64::MAX);
    let mut out: BTreeMap<NodeId, u64> = group.roots.iter().map(|&r| (r, elems(r))).collect();
    for &m in group.members.iter().rev() {
        let wanted = out.get(&m).copied().unwrap_or(0);
        let n = graph.node(m);
        for (position, &o) in n.operands.iter().enumerate().filter(|(_, o)| !is_scalar(graph, **o)) {
            let here = if whole(&n.prim, position) { elems(o) } else { wanted.min(elems(o)) };
            let sum = out.entry(o).or_default();
            *sum = sum.saturating_add(here).min(elems(o));
        }
    }
    out
}

/// Whether any element of the result may need every element of an operand.
fn whole(prim: &Prim, operand: usize) -> bool {
    match prim {
        Prim::Take { .. } | Prim::TakeAlong { .. } | Prim::Gather | Prim::DynamicSlice { .. } => operand > 0,
        Prim::Map(_) | Prim::Cast | Prim::Part { .. } | Prim::Complex => false,
        Prim::Broadcast { .. } | Prim::Reshape | Prim::Transpose { .. } | Prim::Slice { .. } => false,
        Prim::Windows { .. } | Prim::Pad { .. } | Prim::Concat { .. } | Prim::UpdateSlice { .. } => false,
        _ => true,
    }
}

/// Elements of a node per position of `axis`.
fn rows_along(graph: &Graph, id: NodeId, axis: usize) -> u64 {
    let shape = &graph.ty(id).shape;
    shape.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, n)| n).product()
}

/// Operations of a node on numbers.
fn operations(graph: &Graph, id: NodeId) -> u64 {
    let n = graph.node(id);
    let elems = n.ty.elems().unwrap_or(0);
    let operand = || n.operands.first().and_then(|&o| graph.ty(o).elems()).unwrap_or(0);
    let parts = if n.ty.dtype.is_complex() { 2 } else { 1 };
    match &n.prim {
        Prim::Map(_) => elems,
        Prim::Reduce { .. } | Prim::ArgReduce { .. } | Prim::Cumulate { .. } => operand().saturating_mul(parts),
        &Prim::Dot { steps, .. } => {
            let shape = n.operands.first().map_or(&[][..], |&o| &graph.ty(o).shape);
            let [rows, depth] = [2, 1].map(|d| shape.len().checked_sub(d).map_or(0, |at| shape[at]));
            let steps = match steps {
                Steps::All => rows.saturating_mul(depth),
                steps => {
                    (0..rows).map(|i| steps.of(i as usize, depth as usize).len() as u64).fold(0, u64::saturating_add)
                }
            };
            let per_step = 2 * parts * parts;
            elems.checked_div(rows).unwrap_or(0).saturating_mul(steps).saturating_mul(per_step)
        }
        // The usual count: 5·n·log2 n per complex transform, half of it for a real one.
        Prim::Fft(f) => {
            let per_point = 5.0 * (f.points as f64).log2() * if f.kind.real() { 0.5 } else { 1.0 };
            let rows = n.operands.first().map_or(0, |&o| rows_along(graph, o, f.axis));
            (rows as f64 * f.points as f64 * per_point) as u64
        }
        _ => 0,
    }
}

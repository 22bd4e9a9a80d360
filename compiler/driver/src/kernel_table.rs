//! `tessera emit --ir kernels`: the launches of each tensor region as a table.

use crate::backend::{Backend, kernel_costs, kernel_name, temps};
use std::fmt::Write;
use tessera_abi::plan::Counts;
use tessera_graph::late_exchanges::starts;
use tessera_graph::place_buffers::place_buffers;
use tessera_graph::recompute;
use tessera_ir::graph::{Graph, NodeId, Reason};
use tessera_ir::group::{Group, GroupKind, Partition};
use tessera_ops::prim::Prim;

const HEADS: [&str; 8] = ["kernel", "kind", "fused", "launches", "read", "written", "flops", "flops/byte"];

/// One line for each group of the graph and one for their sum.
pub fn of(backend: &Backend, graph: &Graph) -> String {
    let mut rows: Vec<[String; 8]> = vec![HEADS.map(String::from)];
    let mut total = Counts::default();
    let groups = backend.groups(graph);
    let partition = Partition { groups: groups.iter().map(|p| p.group.clone()).collect() };
    let memory = place_buffers(graph, &partition).unwrap_or_default();
    let place = |id: NodeId| memory.place.get(id.0 as usize);
    for (planned, begin) in groups.iter().zip(starts(graph, &partition)) {
        for started in begin.iter().filter_map(|&i| groups.get(i)) {
            let name = kernel_name(graph, &started.group);
            rows.push(row(&name, "start", "", &Counts::default()));
        }
        // A view of what is in memory is no work.
        let root = planned.group.roots[0];
        if planned.group.kind == GroupKind::Copy
            && graph.node(root).operands.first().and_then(|&o| place(o)) == place(root)
        {
            continue;
        }
        let c = kernel_costs::of(graph, planned);
        let fused = kernel_costs::computing(graph, &planned.group.members);
        let mut name = kernel_name(graph, &planned.group);
        if let Some(Reason::Memory(_)) = graph.node(root).origin.reason {
            name += " again";
        }
        rows.push(row(&name, kind(graph, &planned.group), &fused.to_string(), &c));
        kernel_costs::add(&mut total, &c);
    }
    rows.push(row("total", "", "", &total));
    // Of a graph whose memory is bounded, what its kernels use of it.
    let arena = groups.iter().filter_map(|p| p.lowered.as_ref()).map(|l| temps(&memory, l).1);
    let arena = arena.fold(memory.arena_bytes, u64::max);
    let again = recompute::count(graph);
    let bounded = graph.memory.map(|room| format!("  memory {arena} of {room} bytes, {again} computed again\n"));
    let widths: Vec<usize> = (0..HEADS.len()).map(|i| rows.iter().map(|r| r[i].len()).max().unwrap_or(0)).collect();
    let mut out = format!("{}\n", graph.name);
    for row in &rows {
        let mut line = String::new();
        for (i, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            // Words stand left, numbers right.
            let _ = if i < 2 { write!(line, "  {cell:<width$}") } else { write!(line, "  {cell:>width$}") };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out + &bounded.unwrap_or_default()
}

fn row(name: &str, kind: &str, fused: &str, c: &Counts) -> [String; 8] {
    let moved = c.bytes_read + c.bytes_written;
    let intensity = if moved == 0 { "-".to_owned() } else { format!("{:.2}", c.flops as f64 / moved as f64) };
    let numbers = [c.kernels, c.bytes_read, c.bytes_written, c.flops].map(|n| n.to_string());
    let [launches, read, written, flops] = numbers;
    [name.into(), kind.into(), fused.into(), launches, read, written, flops, intensity]
}

fn kind(graph: &Graph, group: &Group) -> &'static str {
    let transforms = |m: &NodeId| matches!(graph.node(*m).prim, Prim::Fft(_));
    match group.kind {
        GroupKind::Loop if group.members.iter().any(transforms) => "transform",
        GroupKind::Loop => "loop",
        GroupKind::Dot => "product",
        GroupKind::Attention => "two products",
        GroupKind::Native => "runtime",
        GroupKind::Copy => "copy",
    }
}

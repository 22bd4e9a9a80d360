//! The launches of each tensor region as a table: `tessera emit --ir kernels`.

use crate::backend::{Backend, Planned, kernel_costs, kernel_name, temps};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use tessera_abi::plan::Counts;
use tessera_graph::late_exchanges::starts;
use tessera_graph::place_buffers::place_buffers;
use tessera_graph::recompute;
use tessera_ir::graph::{Graph, NodeId, Reason};
use tessera_ir::group::{Group, GroupKind, Partition};
use tessera_ops::prim::Prim;

const HEADS: [&str; 8] = ["kernel", "kind", "fused", "launches", "read", "written", "flops", "flops/byte"];

/// What the launches of a group are, and what they cost.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Kernel {
    pub name: String,
    pub kind: String,
    /// The group, by position among those of the graph; `None` of the sum.
    pub group: Option<usize>,
    /// Operations that are computed together; `None` of what only starts an exchange, and of the sum.
    pub fused: Option<usize>,
    pub launches: u64,
    pub read: u64,
    pub written: u64,
    pub flops: u64,
}

/// The launches of one graph.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct KernelTable {
    pub name: String,
    /// In the order in which they run.
    pub kernels: Vec<Kernel>,
    pub total: Kernel,
    /// Where memory is bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// What a graph uses of the memory that it may take.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bound {
    pub arena: u64,
    pub room: u64,
    /// Values that are computed again.
    pub again: usize,
}

/// The launches of a graph in its groups.
pub fn table(graph: &Graph, groups: &[Planned]) -> KernelTable {
    let mut out = KernelTable { name: graph.name.clone(), ..KernelTable::default() };
    let mut total = Counts::default();
    let partition = Partition { groups: groups.iter().map(|p| p.group.clone()).collect() };
    let memory = place_buffers(graph, &partition).unwrap_or_default();
    let place = |id: NodeId| memory.place.get(id.0 as usize);
    for (at, (planned, begin)) in groups.iter().zip(starts(graph, &partition)).enumerate() {
        for (i, started) in begin.iter().filter_map(|&i| Some((i, groups.get(i)?))) {
            let name = kernel_name(graph, &started.group);
            out.kernels.push(kernel(name, "start", Some(i), None, &Counts::default()));
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
        out.kernels.push(kernel(name, kind(graph, &planned.group), Some(at), Some(fused), &c));
        kernel_costs::add(&mut total, &c);
    }
    out.total = kernel("total".into(), "", None, None, &total);
    // Of a graph whose memory is bounded, what its kernels use of it.
    let arena = groups.iter().filter_map(|p| p.lowered.as_ref()).map(|l| temps(&memory, l).1);
    let arena = arena.fold(memory.arena_bytes, u64::max);
    out.bound = graph.memory.map(|room| Bound { arena, room, again: recompute::count(graph) });
    out
}

/// One line for each group of the graph and one for their sum.
pub fn of(backend: &Backend, graph: &Graph) -> String {
    table(graph, &backend.groups(graph)).text()
}

impl KernelTable {
    /// For people.
    pub fn text(&self) -> String {
        let mut rows: Vec<[String; 8]> = vec![HEADS.map(String::from)];
        rows.extend(self.kernels.iter().chain([&self.total]).map(Kernel::cells));
        let widths: Vec<usize> = (0..HEADS.len()).map(|i| rows.iter().map(|r| r[i].len()).max().unwrap_or(0)).collect();
        let mut out = format!("{}\n", self.name);
        for row in &rows {
            let mut line = String::new();
            for (i, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                // Words stand left, numbers right.
                let _ = if i < 2 { write!(line, "  {cell:<width$}") } else { write!(line, "  {cell:>width$}") };
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        if let Some(Bound { arena, room, again }) = &self.bound {
            let _ = writeln!(out, "  memory {arena} of {room} bytes, {again} computed again");
        }
        out
    }
}

impl Kernel {
    fn cells(&self) -> [String; 8] {
        let moved = self.read + self.written;
        let intensity = if moved == 0 { "-".to_owned() } else { format!("{:.2}", self.flops as f64 / moved as f64) };
        let numbers = [self.launches, self.read, self.written, self.flops].map(|n| n.to_string());
        let [launches, read, written, flops] = numbers;
        let fused = self.fused.map_or_else(String::new, |n| n.to_string());
        [self.name.clone(), self.kind.clone(), fused, launches, read, written, flops, intensity]
    }
}

fn kernel(name: String, kind: &str, group: Option<usize>, fused: Option<usize>, c: &Counts) -> Kernel {
    let (read, written) = (c.bytes_read, c.bytes_written);
    Kernel { name, kind: kind.into(), group, fused, launches: c.kernels, read, written, flops: c.flops }
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

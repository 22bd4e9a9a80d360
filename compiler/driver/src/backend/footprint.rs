//! What a graph needs, without compiling or running it: the same groups, kernels and places in
//! memory that a plan has.

use super::{Backend, BackendError, bytes, kernel_costs, kernel_name};
use std::fmt::Write;
use tessera_abi::plan::{BufRef, Counts};
use tessera_base::{DType, Span};
use tessera_graph::place_buffers::place_buffers;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::{Group, GroupKind, Partition};
use tessera_ops::prim::Prim;
use tessera_runtime::tensor::OutOfMemory;

/// The work of one group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// What it computes, and for which place of the program.
    pub name: String,
    pub span: Span,
    pub flops: u64,
    /// Read and written.
    pub bytes: u64,
    /// The element type of products, where the group has one.
    pub product: Option<DType>,
    /// How often it runs in one call.
    pub times: u64,
}

/// What a graph needs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Footprint {
    /// Bytes of tensors that are handed in.
    pub arguments: u64,
    /// Bytes of results; those that are an argument as it is need none.
    pub outputs: u64,
    /// Bytes of everything in between, temporaries of kernels and what turns of loops work in included.
    pub arena: u64,
    pub counts: Counts,
    pub work: Vec<Work>,
    pub exchanges: Vec<Exchanged>,
}

/// One exchange, or several that go together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchanged {
    pub name: String,
    /// Tag and bytes of an element, of each tensor.
    pub tensors: Vec<(u32, u64)>,
    /// How often it runs in one call.
    pub times: u64,
}

impl Footprint {
    /// Adds the turns of a loop.
    fn turns(&mut self, of: Footprint, trips: u64) {
        kernel_costs::add_times(&mut self.counts, &of.counts, trips);
        self.work.extend(of.work.into_iter().map(|w| Work { times: w.times * trips, ..w }));
        self.exchanges.extend(of.exchanges.into_iter().map(|e| Exchanged { times: e.times * trips, ..e }));
    }
}

/// What decides the kernels of a group: equal for equal layers of a model. `None` where directives
/// have a say, and for what the text of constants does not tell.
pub fn structure(graph: &Graph, group: &Group) -> Option<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    let mut text = String::new();
    let mut put = |what: std::fmt::Arguments| {
        text.clear();
        let _ = text.write_fmt(what);
        hasher.update(text.as_bytes());
    };
    let at = |ids: &[NodeId], id: NodeId| ids.iter().position(|i| *i == id);
    put(format_args!("{:?}", group.kind));
    for &i in group.inputs.iter().chain(&group.scalars) {
        let ty = graph.ty(i);
        put(format_args!("\n{:?}{}", ty.shape, ty.dtype));
    }
    for &m in &group.members {
        let node = graph.node(m);
        let prim = format!("{:?}", node.prim);
        if node.origin.kernel.is_some() || prim.contains("NaN") {
            return None;
        }
        put(format_args!("\n{prim}{:?}{}{:?}", node.ty.shape, node.ty.dtype, node.policy));
        for &o in &node.operands {
            match group.members.binary_search(&o) {
                Ok(i) => put(format_args!("%{i}")),
                Err(_) => put(format_args!("{:?}{:?}", at(&group.inputs, o), at(&group.scalars, o))),
            }
        }
    }
    for r in &group.roots {
        put(format_args!("\n{:?}", group.members.binary_search(r)));
    }
    Some(hasher.finalize())
}

impl Backend {
    /// What an optimised graph of one device needs.
    pub fn footprint(&self, graph: &Graph) -> Result<Footprint, BackendError> {
        let start = std::time::Instant::now();
        let groups = self.grouped(graph, Some(&self.known));
        let grouped = start.elapsed();
        let partition = Partition { groups: groups.iter().map(|p| p.group.clone()).collect() };
        let too_large = || BackendError::Memory(OutOfMemory { bytes: u64::MAX });
        let memory = place_buffers(graph, &partition).ok_or_else(too_large)?;
        let place = |id: NodeId| memory.place.get(id.0 as usize).copied().flatten();
        let arena = self.arena(graph, &groups, &memory, &self.known).ok_or_else(too_large)?;
        let mut out = Footprint { arena, ..Footprint::default() };
        out.arguments = graph.inputs.iter().filter(|i| !i.scalar).map(|i| bytes(&i.ty)).sum();
        let is_input = |n: u32| graph.inputs.get(n as usize).is_some_and(|i| !i.scalar);
        let fresh = |id: &&NodeId| !matches!(place(**id), Some(BufRef::Input(n)) if is_input(n));
        out.outputs = graph.outputs.iter().filter(fresh).map(|&id| bytes(graph.ty(id))).sum();
        for planned in &groups {
            let root = planned.group.roots[0];
            if let Prim::Exchange(e) = &graph.node(root).prim {
                let tensor = |id: &NodeId| match &graph.node(*id).prim {
                    Prim::Exchange(e) => Some((e.tag, graph.ty(*id).dtype.bytes() as u64)),
                    _ => None,
                };
                let tensors = planned.group.roots.iter().filter_map(tensor).collect();
                out.exchanges.push(Exchanged { name: e.name.to_string(), tensors, times: 1 });
                continue;
            }
            let prim = &graph.node(root).prim;
            if let (Prim::Scan { body, .. }, Some(turns)) = (prim, prim.turns())
                && let Some(body) = graph.bodies.get(*body as usize)
            {
                out.turns(self.footprint(&tessera_graph::optimise(body))?, turns);
            }
            let source = graph.node(root).operands.first().and_then(|&o| place(o));
            if planned.group.kind == GroupKind::Copy && source == place(root) {
                continue;
            }
            let c = kernel_costs::of(graph, planned);
            kernel_costs::add(&mut out.counts, &c);
            let product = planned.group.members.iter().find_map(|&m| match graph.node(m).prim {
                Prim::Dot { .. } => graph.node(m).operands.first().map(|&o| graph.ty(o).dtype),
                _ => None,
            });
            out.work.push(Work {
                name: kernel_name(graph, &planned.group),
                span: graph.node(root).origin.span,
                flops: c.flops,
                bytes: c.bytes_read + c.bytes_written,
                product,
                times: 1,
            });
        }
        if self.options.verbose {
            let ms = |t: std::time::Duration| t.as_secs_f64() * 1e3;
            eprintln!(
                "grouped `{}` in {:.1} ms, placed in {:.1} ms",
                graph.name,
                ms(grouped),
                ms(start.elapsed() - grouped)
            );
        }
        Ok(out)
    }
}

//! What a graph needs, without compiling or running it: the same groups, kernels and places in
//! memory that a plan has.

use super::{Backend, BackendError, bytes, counts, temps};
use tessera_abi::plan::{BufRef, Counts};
use tessera_base::DType;
use tessera_graph::place_buffers::place_buffers;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::{GroupKind, Partition};
use tessera_ops::prim::{Exchange, Prim};
use tessera_runtime::tensor::OutOfMemory;

/// The work of one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    pub flops: u64,
    /// Read and written.
    pub bytes: u64,
    /// The element type of products, where the group has one.
    pub product: Option<DType>,
}

/// What a graph needs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Footprint {
    /// Bytes of tensors that are handed in.
    pub arguments: u64,
    /// Bytes of results; those that are an argument as it is need none.
    pub outputs: u64,
    /// Bytes of everything in between, temporaries of kernels included.
    pub arena: u64,
    pub counts: Counts,
    pub work: Vec<Work>,
    pub exchanges: Vec<Exchanged>,
}

/// One exchange of a device: bytes by the other device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchanged {
    pub name: String,
    pub sent: Vec<(u64, u64)>,
    pub received: Vec<(u64, u64)>,
}

impl Backend {
    /// What an optimised graph of one device needs.
    pub fn footprint(&self, graph: &Graph, device: u64) -> Result<Footprint, BackendError> {
        let groups = self.groups(graph);
        let partition = Partition { groups: groups.iter().map(|p| p.group.clone()).collect() };
        let too_large = || BackendError::Memory(OutOfMemory { bytes: u64::MAX });
        let memory = place_buffers(graph, &partition).ok_or_else(too_large)?;
        let place = |id: NodeId| memory.place.get(id.0 as usize).copied().flatten();
        let mut out = Footprint { arena: memory.arena_bytes, ..Footprint::default() };
        out.arguments = graph.inputs.iter().filter(|i| !i.scalar).map(|i| bytes(&i.ty)).sum();
        let fresh = |id: &&NodeId| !matches!(place(**id), Some(BufRef::Input(_)));
        out.outputs = graph.outputs.iter().filter(fresh).map(|&id| bytes(graph.ty(id))).sum();
        for planned in &groups {
            let root = planned.group.roots[0];
            if let Some(lowered) = &planned.lowered {
                out.arena = out.arena.max(temps(&memory, lowered).1);
            }
            if let Prim::Exchange(e) = &graph.node(root).prim {
                out.exchanges.push(exchanged(e, graph.ty(root).dtype, device));
                continue;
            }
            let source = graph.node(root).operands.first().and_then(|&o| place(o));
            if planned.group.kind == GroupKind::Copy && source == place(root) {
                continue;
            }
            let c = counts::of(graph, planned);
            counts::add(&mut out.counts, &c);
            let product = planned.group.members.iter().find_map(|&m| match graph.node(m).prim {
                Prim::Dot { .. } => graph.node(m).operands.first().map(|&o| graph.ty(o).dtype),
                _ => None,
            });
            out.work.push(Work { flops: c.flops, bytes: c.bytes_read + c.bytes_written, product });
        }
        Ok(out)
    }
}

/// What goes to other devices and comes from them.
fn exchanged(e: &Exchange, dtype: DType, device: u64) -> Exchanged {
    let others = |boxes: &[tessera_ops::prim::Transfer]| {
        let away = boxes.iter().filter(|t| t.peer != device);
        away.map(|t| (t.peer, t.size.iter().product::<u64>() * dtype.bytes() as u64)).collect()
    };
    Exchanged { name: e.name.to_string(), sent: others(&e.sends), received: others(&e.receives) }
}

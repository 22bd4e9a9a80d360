//! Kernels in the checked interpreter of Tile IR, group by group: it sees accesses out of range,
//! memory that is read before it is written, and grid points that write the same element.

use crate::bits::{Difference, difference};
use crate::random_graph::Case;
use tessera::backend::Planned;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::prim::written_base;
use tessera_ir::{interpret, tile};
use tessera_tile::Operand;

/// Elements of all operands of a group, at most: checked interpretation is slow.
const ELEMS_MAX: u64 = 4000;

/// Runs the kernels of every small group on the interpreted values of its inputs. Does nothing
/// for a graph that stops.
pub fn check(case: &Case, graph: &Graph, groups: &[Planned]) -> Result<(), Difference> {
    for planned in groups {
        let (Some(lowered), group) = (&planned.lowered, &planned.group) else { continue };
        let tensors: Vec<NodeId> = group.inputs.iter().chain(&group.roots).copied().collect();
        let elems: u64 = tensors.iter().map(|&t| graph.ty(t).elems().unwrap_or(u64::MAX)).sum();
        let scratch: u64 = lowered.steps.iter().map(|s| s.kernel.scratch().1 / 8).sum();
        if elems + scratch + work(graph, &group.members) > ELEMS_MAX {
            continue;
        }
        let Some(values) = values(case, graph, &tensors) else { return Ok(()) };
        let scalars: Vec<u64> = group.scalars.iter().map(|&s| word(case, graph, s)).collect();
        let mut memory = values.clone();
        for (i, &root) in group.roots.iter().enumerate() {
            // What is written over is there before.
            let base = written_base(graph, root).and_then(|base| group.inputs.iter().position(|i| *i == base));
            memory[group.inputs.len() + i] = match base {
                Some(base) => values[base].clone(),
                None => vec![0xa5; values[group.inputs.len() + i].len()],
            };
        }
        let mut temps: Vec<Vec<u8>> = lowered.temps.iter().map(|&n| vec![0; n as usize]).collect();
        for step in &lowered.steps {
            let name = || format!("interpreted kernel `{}`", step.kernel.name);
            let mut bufs: Vec<Vec<u8>> = step
                .operands
                .iter()
                .map(|o| match *o {
                    Operand::Tensor(i) => memory[i as usize].clone(),
                    Operand::Temp(i) => temps[i as usize].clone(),
                })
                .collect();
            let words: Vec<u64> = step.scalars.iter().map(|&s| scalars[s as usize]).collect();
            if let Err(fault) = tessera_tile::interpret(&step.kernel, &mut bufs, &words) {
                return Err(Difference { way: name(), what: format!("{fault}\n{}", tile::text::print(&step.kernel)) });
            }
            for (o, bytes) in step.operands.iter().zip(bufs) {
                match *o {
                    Operand::Tensor(i) => memory[i as usize] = bytes,
                    Operand::Temp(i) => temps[i as usize] = bytes,
                }
            }
        }
        for (i, &t) in tensors.iter().enumerate() {
            if let Some(what) = difference(graph.ty(t).dtype, &values[i], &memory[i]) {
                return Err(Difference { way: "interpreted kernels".into(), what: format!("{t}: {what}") });
            }
        }
    }
    Ok(())
}

/// Elements that members go through.
fn work(graph: &Graph, members: &[NodeId]) -> u64 {
    members.iter().flat_map(|&m| &graph.node(m).operands).map(|&o| graph.ty(o).elems().unwrap_or(u64::MAX) / 4).sum()
}

/// The values of some nodes; `None` where the graph stops before them.
fn values(case: &Case, graph: &Graph, of: &[NodeId]) -> Option<Vec<Vec<u8>>> {
    let mut part = graph.clone();
    part.outputs = of.to_vec();
    let inputs: Vec<&[u8]> = case.inputs.iter().map(Vec::as_slice).collect();
    interpret::run(&part, &inputs).ok()
}

/// A host scalar as a word.
fn word(case: &Case, graph: &Graph, id: NodeId) -> u64 {
    let tessera_ops::prim::Prim::Input(i) = graph.node(id).prim else { return 0 };
    let bytes = case.inputs.get(i as usize).map_or(&[][..], Vec::as_slice);
    bytes.iter().take(8).rev().fold(0, |word, &b| word << 8 | u64::from(b))
}

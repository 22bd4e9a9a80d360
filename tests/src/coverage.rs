//! Which operations run without a kernel though kernels cover them: a fall-back that no result
//! shows, only the time.

use tessera::backend::Planned;
use tessera_base::DType;
use tessera_ir::graph::{Graph, NodeId, Policy};
use tessera_ir::group::GroupKind;
use tessera_ops::prim::{Prim, Steps};

/// Whether a node runs alone by design: factors of matrices, sorting and adding at positions from data
/// and loops are code of the runtime; compensated products of tf32 round their operands, and of
/// complex numbers kernels cover sums and movement only; an operation without elements, or whose
/// bytes stay as they are, needs no kernel.
fn alone_by_design(graph: &Graph, id: NodeId) -> bool {
    let n = graph.node(id);
    let operands = |dtype: DType| n.operands.iter().any(|&o| graph.ty(o).dtype == dtype);
    match &n.prim {
        Prim::Factor(_) | Prim::TriangularSolve(_) => true,
        Prim::Sort { .. } | Prim::ArgSort { .. } | Prim::Scatter { add: true } | Prim::ScatterAddAlong { .. } => true,
        // Rewritten to slices wherever rules apply.
        Prim::Rows { .. } => true,
        Prim::Scan { .. } | Prim::Check(_) => true,
        Prim::DynamicUpdate | Prim::Scatter { .. } | Prim::UpdateSlice { .. } => {
            n.operands[..2].iter().any(|&o| graph.ty(o).elems() == Some(0))
        }
        Prim::Dot { .. } if operands(DType::Tf32) => n.policy == Policy::KahanSum,
        // Of one row, whose only step is the first.
        Prim::Dot { steps: Steps::To, .. } if n.ty.shape.iter().rev().nth(1) == Some(&1) => true,
        // Of complex numbers kernels cover movement and sums.
        Prim::Dot { .. } | Prim::Cumulate { .. } | Prim::Reduce { .. } if operands(DType::C64) => true,
        Prim::BlockDot { .. } => true,
        _ => n.ty.elems() == Some(0),
    }
}

/// The operations that should have a kernel and have none.
pub fn without_kernel(graph: &Graph, groups: &[Planned]) -> Vec<String> {
    // Tensors that are in memory, or many, are copied behind each other.
    let copied = |id: NodeId| matches!(graph.node(id).prim, Prim::Concat { .. });
    let native = groups.iter().filter(|p| p.group.kind == GroupKind::Native).map(|p| p.group.roots[0]);
    native
        .filter(|&id| !alone_by_design(graph, id) && !copied(id))
        .map(|id| format!("{:?} ({})", graph.node(id).prim, graph.ty(id)))
        .collect()
}

//! Chooses, for products of bf16, the processor's instruction that takes two steps at a time.
//!
//! The one choice that a machine makes about results: the pairs are another order of rounding
//! than a chain in f32. It depends on the machine alone, not on sizes, threads or schedules.

use tessera_base::DType;
use tessera_ir::graph::{Graph, Policy};
use tessera_ops::prim::{Prim, Steps};

/// Marks what can be taken in pairs; for machines that multiply pairs.
pub fn run(mut graph: Graph) -> Graph {
    for i in 0..graph.nodes.len() {
        let node = &graph.nodes[i];
        let Prim::Dot { accum: DType::F32, steps: Steps::All, pairs: false } = node.prim else { continue };
        let fits = node.operands.iter().all(|o| graph.ty(*o).dtype == DType::Bf16);
        let even = graph.ty(node.operands[0]).shape.last().is_some_and(|k| k.is_multiple_of(2));
        if fits && even && node.policy != Policy::KahanSum {
            graph.nodes[i].prim = Prim::Dot { accum: DType::F32, steps: Steps::All, pairs: true };
        }
    }
    graph.bodies = std::mem::take(&mut graph.bodies).into_iter().map(run).collect();
    graph
}

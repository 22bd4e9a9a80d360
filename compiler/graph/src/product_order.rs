//! Chooses, for products of bf16 and of f16, the order of the processor's instruction for them.
//!
//! The one choice that a machine makes about results: pairs and units of pairs round otherwise than a chain in f32. It depends
//! on the machine alone, not on sizes, threads or schedules.

use tessera_base::DType;
use tessera_ir::graph::{Graph, Policy};
use tessera_ops::prim::{Order, Prim, Steps};

/// Gives products of bf16 the machine's order, where their leaves can be made in it; those of f16, too, where units for matrices
/// take both.
pub fn run(mut graph: Graph, machine: Order) -> Graph {
    if machine == Order::Chain {
        return graph;
    }
    for i in 0..graph.nodes.len() {
        let node = &graph.nodes[i];
        let Prim::Dot { accum: DType::F32, steps: Steps::All, order: Order::Chain, leaf } = node.prim else { continue };
        let all = |dtype| node.operands.iter().all(|o| graph.ty(*o).dtype == dtype);
        let fits = all(DType::Bf16) || machine == Order::Atoms && all(DType::F16);
        let even = graph.ty(node.operands[0]).shape.last().is_some_and(|k| machine.fits(leaf, *k));
        if fits && even && node.policy != Policy::KahanSum {
            graph.nodes[i].prim = Prim::Dot { accum: DType::F32, steps: Steps::All, order: machine, leaf };
        }
    }
    graph.bodies = std::mem::take(&mut graph.bodies).into_iter().map(|body| run(body, machine)).collect();
    graph
}

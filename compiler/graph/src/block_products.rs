//! Products with numbers in blocks that code of the runtime computes, where it does that sooner than a kernel.
//!
//! A kernel takes the numbers of blocks into panels as it does with any operand. A processor with registers of 512 bits turns
//! blocks of some formats in registers, which moves less; the bits are the same.

use tessera_base::{Blocks, DType};
use tessera_ir::graph::{Graph, Node, Policy};
use tessera_ops::prim::fold::DOT_LEAF;
use tessera_ops::prim::{Order, Prim, Steps};

/// Puts [`Prim::BlockDot`] where a product reads the turned numbers of blocks of a format that `covers` knows.
pub fn run(mut graph: Graph, covers: &dyn Fn(Blocks) -> bool) -> Graph {
    for i in 0..graph.nodes.len() {
        if let Some(node) = block_product(&graph, &graph.nodes[i], covers) {
            graph.nodes[i] = node;
        }
    }
    graph.bodies = std::mem::take(&mut graph.bodies).into_iter().map(|body| run(body, covers)).collect();
    crate::prune(&graph)
}

fn block_product(g: &Graph, n: &Node, covers: &dyn Fn(Blocks) -> bool) -> Option<Node> {
    let Prim::Dot { accum: DType::F32, steps: Steps::All, order: Order::Chain, leaf: DOT_LEAF } = n.prim else {
        return None;
    };
    let &[x, right] = &n.operands[..] else { return None };
    if n.policy == Policy::KahanSum {
        return None;
    }
    let turned = g.node(right);
    let plain = n.ty.dtype == DType::F32 && g.ty(x).dtype == DType::F32 && g.ty(x).shape.len() == 2;
    if !plain || turned.prim != (Prim::Transpose { perm: vec![1, 0] }) {
        return None;
    }
    let numbers = g.node(turned.operands[0]);
    let Prim::Dequantize { format } = numbers.prim else { return None };
    let blocks = numbers.operands[0];
    if g.ty(blocks).shape.len() != 3 || !covers(format) {
        return None;
    }
    let mut node = n.clone();
    node.prim = Prim::BlockDot { format };
    node.operands = vec![x, blocks];
    Some(node)
}

//! Rules of numbers in blocks.

use super::{Class, Rewrite, Rule};
use tessera_base::DType;
use tessera_ir::graph::{Graph, Node, Policy};
use tessera_ops::prim::{Order, Prim, Steps};

pub const RULES: &[Rule] = &[Rule {
    name: "dot_dequantize",
    doc: "a product with the turned numbers of blocks reads the blocks",
    class: Class::Exact,
    apply: dot_dequantize,
}];

fn dot_dequantize(g: &Graph, n: &Node) -> Option<Rewrite> {
    let Prim::Dot { accum: DType::F32, steps: Steps::All, order: Order::Chain } = n.prim else { return None };
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
    if g.ty(blocks).shape.len() != 3 {
        return None;
    }
    let mut node = n.clone();
    node.prim = Prim::BlockDot { format };
    node.operands = vec![x, blocks];
    Some(Rewrite::Node(node))
}

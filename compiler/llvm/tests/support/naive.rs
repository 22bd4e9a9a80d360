//! The reference kernels, node by node: what compiled code must equal.

use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::reference::{ArrayRef, eval};
use tessera_ops::prim::Prim;

/// Bytes of every node.
pub fn run(g: &Graph, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut known: Vec<Vec<u8>> = vec![];
    for id in g.ids() {
        let v = node(g, id, inputs, &known);
        known.push(v);
    }
    known
}

fn node(g: &Graph, id: NodeId, inputs: &[Vec<u8>], known: &[Vec<u8>]) -> Vec<u8> {
    let n = g.node(id);
    if let Prim::Input(i) = n.prim {
        return inputs[i as usize].clone();
    }
    let operands: Vec<ArrayRef> = n
        .operands
        .iter()
        .map(|o| ArrayRef { dtype: g.ty(*o).dtype, shape: &g.ty(*o).shape, bytes: &known[o.0 as usize] })
        .collect();
    eval(&n.prim, &operands, n.ty.dtype, &n.ty.shape).unwrap_or_else(|e| panic!("{id}: {e}"))
}

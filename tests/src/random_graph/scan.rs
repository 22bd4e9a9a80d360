//! Loops over the leading axis.

use super::Builder;
use tessera_base::DType;
use tessera_ir::graph::{Node, NodeId, NodeType, Origin, Policy};
use tessera_ops::prim::Prim;

/// What a loop that ends by itself carries first.
const LEADS: [DType; 2] = [DType::Bool, DType::I64];

/// Operands of a loop: a carry, sequences of `trips` elements, constants. One that ends by itself begins with a bool and an i64, and
/// has no sequences.
fn operands(b: &mut Builder, trips: u64, until: bool) -> (usize, usize, Vec<NodeId>) {
    let small = |b: &mut Builder| match b.find(|t| t.elems().is_some_and(|n| n <= 300)) {
        Some(x) => x,
        None => {
            let dtype = b.dtype();
            b.input(&[3], dtype)
        }
    };
    let carry = b.random.below(3);
    let sequences = if until { 0 } else { b.random.below(3) };
    let mut ids: Vec<NodeId> = if until { LEADS.map(|dtype| b.like(&[], dtype)).to_vec() } else { vec![] };
    ids.extend((0..carry).map(|_| small(b)));
    let carry = ids.len();
    for _ in 0..sequences {
        let one = small(b);
        let ty = b.ty(one);
        let x = b.like(&[&[trips][..], &ty.shape].concat(), ty.dtype);
        ids.push(x);
    }
    for _ in 0..b.random.below(2) {
        let x = small(b);
        ids.push(x);
    }
    (carry, sequences, ids)
}

pub fn scan(b: &mut Builder) {
    if b.depth > 1 || !b.open && b.random.once_in(2) {
        return;
    }
    let trips = b.random.pick(&[0, 1, 2, 3, 5]);
    let until = b.random.once_in(3);
    let (carry, sequences, ids) = operands(b, trips, until);
    let inner = ids.iter().enumerate().map(|(i, &id)| {
        let ty = b.ty(id);
        if (carry..carry + sequences).contains(&i) { NodeType::new(ty.shape[1..].to_vec(), ty.dtype) } else { ty }
    });
    let inner: Vec<NodeType> = inner.collect();
    let mut body = Builder::new(b.random.word());
    body.graph.name = format!("body{}", b.graph.bodies.len());
    (body.depth, body.budget) = (b.depth + 1, b.budget / 20);
    for ty in &inner {
        body.input_of(&ty.shape, ty.dtype, vec![], false);
    }
    body.open = false;
    for _ in 0..1 + b.random.below(5) {
        body.step();
    }
    let mut outputs: Vec<NodeId> = inner[..carry].iter().map(|ty| body.like(&ty.shape, ty.dtype)).collect();
    // A row that no turn gave is nothing that could be compared.
    for _ in 0..if until { 0 } else { 1 + b.random.below(2) } {
        let x = body.operand();
        let ty = body.ty(x);
        if b.affords(&[&[trips][..], &ty.shape].concat()) {
            outputs.push(x);
        }
    }
    if outputs.is_empty() {
        return;
    }
    let results: Vec<NodeType> = outputs
        .iter()
        .enumerate()
        .map(|(i, &o)| {
            let ty = body.ty(o);
            if i < carry { ty } else { NodeType::new([&[trips][..], &ty.shape].concat(), ty.dtype) }
        })
        .collect();
    body.graph.outputs = outputs;
    b.graph.bodies.push(body.graph);
    let reversed = !until && b.random.once_in(3);
    let prim = Prim::Scan { body: b.graph.bodies.len() as u32 - 1, carry, sequences, trips, reversed, until };
    let ty = results[0].clone();
    let node = Node {
        prim,
        operands: ids,
        ty,
        results: results.clone(),
        origin: Origin::default(),
        policy: Policy::default(),
    };
    let loop_id = b.graph.push(node);
    for (index, ty) in results.iter().enumerate() {
        b.push(Prim::Get { index }, &[loop_id], &ty.shape, ty.dtype);
    }
}

//! The derivative of a product of [rows](crate::rows): it goes over blocks of them and computes the weights of each block again
//! from what they are made of, so that memory grows with the rows and not with their number times that of the columns (Rabe and
//! Staats, Self-attention does not need O(n²) memory, 2021). A block is a graph of its own, which is differentiated as any other.
//! `op.attention` states the same of itself.

use super::{Blocked, Reverse};
use crate::batch::batched;
use crate::copies::{copy_into, input};
use crate::rows::{Rows, by_rows, found};
use std::collections::BTreeMap;
use tessera_base::{DType, bug};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType, Origin};
use tessera_ir::writer::Writer;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction, Scalar};
use tessera_ops::surface::parts_of_rows::{PARTS, TURN, starts};
use tessera_ops::surface::{Build, Id, expand};

/// Rows of a block.
const BLOCK: u64 = TURN / PARTS;

/// Adds the cotangents of what a product of such weights is made of; `false` if the node is none.
pub fn pull(r: &mut Reverse, id: NodeId) -> Result<bool, Blocked> {
    let Some(rows) = found(r.g, id, &r.wrt).filter(|_| r.is_active(r.g.node(id).operands[0])) else {
        return Ok(false);
    };
    let Some(c) = r.cotangent(id) else { return Ok(true) };
    over_blocks(r, &rows, c)?;
    Ok(true)
}

/// A type with this many rows.
fn with_rows(ty: &NodeType, dim: usize, count: u64) -> NodeType {
    let mut shape = ty.shape.clone();
    shape[dim] = count;
    NodeType::new(shape, ty.dtype)
}

/// A block as a graph: sums of the cotangents of constants so far, the number of its first row, sequences, the cotangent of the
/// product, constants; gives the sums with what the block adds, and the cotangents of the sequences.
struct Block {
    graph: Graph,
    /// Those that have cotangents.
    constants: Vec<NodeId>,
    sequences: Vec<(NodeId, usize)>,
}

fn block(r: &Reverse, rows: &Rows, count: u64) -> Result<Block, Blocked> {
    let mut graph = Graph { name: "body".into(), ..Graph::default() };
    let constants: Vec<NodeId> = rows.constants.iter().copied().filter(|c| r.is_active(*c)).collect();
    let sequences: Vec<(NodeId, usize)> =
        rows.sequences.iter().map(|(id, dim)| (*id, *dim)).filter(|s| r.is_active(s.0)).collect();
    let wide = |id: NodeId| NodeType::new(r.g.ty(id).shape.clone(), r.g.ty(id).dtype.compute());
    let sums: Vec<NodeId> = constants.iter().map(|c| input(&mut graph, "sum", wide(*c))).collect();
    let first = input(&mut graph, "first", NodeType::new(vec![], DType::I64));
    let mut taken = |name, ty: NodeType| input(&mut graph, name, ty);
    let of_rows: BTreeMap<NodeId, NodeId> =
        rows.sequences.iter().map(|(&id, &dim)| (id, taken("rows", with_rows(r.g.ty(id), dim, count)))).collect();
    let out = r.g.ty(rows.out);
    let cotangent = taken("cotangent", with_rows(out, out.shape.len() - 2, count));
    let whole = |id: NodeId| NodeType::new(r.g.ty(id).shape.clone(), r.g.ty(id).dtype);
    let of_all: BTreeMap<NodeId, NodeId> = rows.constants.iter().map(|&id| (id, taken("whole", whole(id)))).collect();
    let mut copies: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    for (&id, &dim) in &rows.nodes {
        let copy = copied(&mut graph, r.g, (id, dim), count, first, &|operand, by_rows| {
            let given = if by_rows { &of_rows } else { &of_all };
            copies.get(&operand).or_else(|| given.get(&operand)).copied()
        });
        copies.insert(id, copy);
    }
    let all: Vec<NodeId> = rows.nodes.keys().copied().collect();
    let to = |id: NodeId| [&copies, &of_rows, &of_all].into_iter().find_map(|given| given.get(&id)).copied();
    graph.derivatives = r.g.derivatives.copied(&all, &to);
    let wrt: Vec<NodeId> =
        constants.iter().map(|id| of_all[id]).chain(sequences.iter().map(|s| of_rows[&s.0])).collect();
    let found = super::pullback(&mut graph, &[(copies[&rows.out], cotangent)], &wrt)
        .map_err(|b| Blocked { node: rows.out, why: b.why })?;
    let mut w = writer(&mut graph, r.g.node(rows.out));
    let mut outputs = vec![];
    for (i, (x, c)) in wrt.iter().zip(&found).enumerate() {
        let c = match c {
            Some(c) => Id(c.0),
            None => expand::like(&mut w, Id(x.0), 0.0),
        };
        outputs.push(NodeId(match sums.get(i) {
            Some(sum) => {
                let dtype = w.dtype(Id(sum.0));
                let c = expand::cast(&mut w, c, dtype);
                expand::map(&mut w, MapOp::add, &[Id(sum.0), c]).0
            }
            None => c.0,
        }));
    }
    graph.outputs = outputs;
    Ok(Block { graph, constants, sequences })
}

/// A node of the block. `given` is what an operand is there, one of its rows or one of all.
fn copied(
    graph: &mut Graph,
    g: &Graph,
    (id, dim): (NodeId, usize),
    count: u64,
    first: NodeId,
    given: &dyn Fn(NodeId, bool) -> Option<NodeId>,
) -> NodeId {
    let node = g.node(id);
    let Some(own) = by_rows(g, node, dim) else { bug!("a node of rows is no longer made row by row") };
    let operand = |(&operand, own): (&NodeId, Option<usize>)| match given(operand, own.is_some()) {
        Some(copy) => copy,
        None => bug!("what rows are made of is not part of their block"),
    };
    let operands = node.operands.iter().zip(own).map(operand).collect();
    let origin = Origin { kernel: None, ..node.origin.clone() };
    let copy = graph.push(Node { operands, ty: with_rows(&node.ty, dim, count), origin, ..node.clone() });
    if node.prim != (Prim::Iota { axis: dim }) {
        return copy;
    }
    let mut w = writer(graph, node);
    let (shape, dtype) = (w.shape(Id(copy.0)), w.dtype(Id(copy.0)));
    let from = expand::cast(&mut w, Id(first.0), dtype);
    let from = expand::broadcast_to(&mut w, from, &shape);
    NodeId(expand::map(&mut w, MapOp::add, &[Id(copy.0), from]).0)
}

fn writer<'g>(graph: &'g mut Graph, like: &Node) -> Writer<'g> {
    Writer::of(graph, &like.origin, like.policy)
}

/// A turn of the loop: a block of every part.
fn turn(r: &Reverse, rows: &Rows) -> Result<Block, Blocked> {
    let one = block(r, rows, BLOCK)?;
    let mut graph = Graph { name: "body".into(), ..Graph::default() };
    let shared = one.graph.inputs.len() - rows.constants.len();
    let mut inputs = vec![];
    for (i, given) in one.graph.inputs.iter().enumerate() {
        let each = i < shared;
        let ty = if each { given.ty.stacked(PARTS) } else { given.ty.unsharded() };
        inputs.push((input(&mut graph, &given.name, ty), each));
    }
    let span = r.g.node(rows.out).origin.span;
    graph.outputs = batched(&mut graph, &one.graph, &inputs, PARTS, span);
    Ok(Block { graph, ..one })
}

/// Blocks of all parts in a loop, then the rows that are left over.
fn over_blocks(r: &mut Reverse, rows: &Rows, cotangent: NodeId) -> Result<(), Blocked> {
    let (trips, rest) = (rows.count / TURN, rows.count % TURN);
    let turn = turn(r, rows)?;
    let (carry, made) = (turn.constants.len(), turn.graph.outputs.len());
    let out_dim = r.g.ty(cotangent).shape.len() - 2;
    let by_rows: Vec<(NodeId, usize)> =
        rows.sequences.iter().map(|(id, dim)| (*id, *dim)).chain([(cotangent, out_dim)]).collect();
    let constants: Vec<NodeId> = rows.constants.iter().copied().collect();
    let mut w = r.writer(rows.out);
    let zeros = |w: &mut Writer, id: &NodeId| {
        let (shape, dtype) = (w.shape(Id(id.0)), w.dtype(Id(id.0)).compute());
        NodeId(expand::full(w, &[&[PARTS], &shape[..]].concat(), dtype, Scalar::F(0.0)).0)
    };
    let mut operands: Vec<NodeId> = turn.constants.iter().map(|c| zeros(&mut w, c)).collect();
    operands.push(NodeId(starts(&mut w, trips, 0).0));
    operands.extend(by_rows.iter().map(|&(id, dim)| in_blocks(&mut w, id, dim, trips)));
    operands.extend(&constants);
    let ty = |i: usize, o: &NodeId| match turn.graph.ty(*o) {
        ty if i < carry => ty.unsharded(),
        ty => ty.stacked(trips),
    };
    let results: Vec<NodeType> = turn.graph.outputs.iter().enumerate().map(|(i, o)| ty(i, o)).collect();
    let Some(first) = results.first().cloned() else { return Ok(()) };
    w.graph.bodies.push(turn.graph);
    let body = w.graph.bodies.len() as u32 - 1;
    let prim = Prim::Scan { body, carry, sequences: by_rows.len() + 1, trips, reversed: false, until: false };
    let looped = w.node(prim, operands, first, results);
    let mut found: Vec<NodeId> = (0..made).filter_map(|i| w.get(looped, i)).collect();
    assert!(found.len() == made, "a loop over blocks gives each of its results");
    for sum in &mut found[..carry] {
        *sum = NodeId(expand::reduce(&mut w, Id(sum.0), Reduction::Sum, &[0], false).0);
    }
    for (slot, &(_, dim)) in found[carry..].iter_mut().zip(&turn.sequences) {
        *slot = out_of_blocks(&mut w, *slot, dim);
    }
    if rest > 0 {
        let last = left_over(r, rows, (&found[..carry], &by_rows, &constants), rest)?;
        let mut w = r.writer(rows.out);
        for (i, now) in last.into_iter().enumerate() {
            found[i] = match i.checked_sub(carry) {
                None => now,
                Some(k) => NodeId(expand::concat(&mut w, &[Id(found[i].0), Id(now.0)], turn.sequences[k].1).0),
            };
        }
    }
    let to = turn.constants.iter().chain(turn.sequences.iter().map(|s| &s.0));
    to.zip(found).for_each(|(to, c)| r.add(*to, c));
    Ok(())
}

/// The rows behind the last whole block.
fn left_over(
    r: &mut Reverse,
    rows: &Rows,
    (sums, by_rows, constants): (&[NodeId], &[(NodeId, usize)], &[NodeId]),
    rest: u64,
) -> Result<Vec<NodeId>, Blocked> {
    let block = block(r, rows, rest)?;
    let start = rows.count - rest;
    let mut values = sums.to_vec();
    let mut w = r.writer(rows.out);
    values.push(NodeId(expand::full(&mut w, &[], DType::I64, Scalar::I(start as i64)).0));
    values.extend(by_rows.iter().map(|&(id, dim)| NodeId(expand::slice(&mut w, Id(id.0), dim, start, rest).0)));
    values.extend(constants);
    let nodes: Vec<(NodeId, Node)> = block.graph.ids().map(|id| (id, block.graph.node(id).clone())).collect();
    let all: Vec<NodeId> = block.graph.ids().collect();
    let copied = copy_into(r.g, nodes, Some(&block.graph.bodies), &values, None);
    let statements = block.graph.derivatives.copied(&all, &|id| copied.get(&id).copied());
    r.g.derivatives.extend(statements);
    Ok(block.graph.outputs.iter().map(|o| copied[o]).collect())
}

/// The rows of the turns, `[turns, parts, …, 64, …]`.
fn in_blocks(w: &mut Writer, id: NodeId, dim: usize, trips: u64) -> NodeId {
    let x = expand::slice(w, Id(id.0), dim, 0, trips * TURN);
    let shape = w.shape(x);
    let cut = expand::reshape(w, x, &[&shape[..dim], &[PARTS, trips, BLOCK], &shape[dim + 1..]].concat());
    let perm: Vec<usize> = [dim + 1, dim].into_iter().chain(0..dim).chain(dim + 2..shape.len() + 2).collect();
    NodeId(expand::transpose(w, cut, &perm).0)
}

/// The other way.
fn out_of_blocks(w: &mut Writer, id: NodeId, dim: usize) -> NodeId {
    let shape = w.shape(Id(id.0));
    let perm: Vec<usize> = (2..dim + 2).chain([1, 0]).chain(dim + 2..shape.len()).collect();
    let turned = expand::transpose(w, Id(id.0), &perm);
    let rows = shape[0] * shape[1] * shape[dim + 2];
    let whole = [&shape[2..dim + 2], &[rows], &shape[dim + 3..]].concat();
    NodeId(expand::reshape(w, turned, &whole).0)
}

//! Products of weights that are computed row by row from a product: attention that is written out, whatever stands between its
//! two products.
//!
//! Its derivative goes over blocks of rows and computes the weights of each block again from what they are made of, so that
//! memory grows with the rows and not with their number times that of the columns (Rabe and Staats, Self-attention does not need
//! O(n²) memory, 2021). A block is a graph of its own, which is differentiated as any other. `op.attention` states the same of
//! itself.

use super::{Blocked, Reverse};
use crate::batch::batched;
use crate::copies::{copy_into, input};
use std::collections::{BTreeMap, BTreeSet};
use tessera_base::DType;
use tessera_ir::graph::{Graph, Node, NodeId, NodeType};
use tessera_ir::links::Link;
use tessera_ir::prim::{Site, row};
use tessera_ir::writer::Writer;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction, Scalar, Steps};
use tessera_ops::surface::{Build, Id, expand};

/// Parts that all rows are cut into, one after the other. Each turn takes a block of every part, so that devices which have
/// parts of the rows exchange nothing before the sums of all parts are added.
const PARTS: u64 = 4;
/// Rows of a block.
const BLOCK: u64 = 64;
/// Rows of a turn: enough for products at full speed.
const TURN: u64 = PARTS * BLOCK;
/// Rows and columns from which on blocks are worth it.
const ROWS_MIN: u64 = 2048;
const COLUMNS_MIN: u64 = 1024;
/// How many times longer the rows are than what products make of them and they are made of: in a layer of a network they are
/// not, and computing it once more costs more than it saves.
const LONGER: u64 = 4;
/// Nodes between what is read and the product, at most.
const NODES_MAX: usize = 256;

/// A product, and how its first operand is made.
struct Rows {
    /// The nodes of the block, with the dim that the rows are.
    nodes: BTreeMap<NodeId, usize>,
    /// What they read of each row, with that dim, and what they read of all rows alike.
    sequences: BTreeMap<NodeId, usize>,
    constants: BTreeSet<NodeId>,
    out: NodeId,
    count: u64,
    columns: u64,
}

/// Adds the cotangents of what a product of such weights is made of; `false` if the node is none.
pub fn pull(r: &mut Reverse, id: NodeId) -> Result<bool, Blocked> {
    let Some(rows) = found(r, id) else { return Ok(false) };
    let Some(c) = r.cotangent(id) else { return Ok(true) };
    over_blocks(r, &rows, c)?;
    Ok(true)
}

/// The rows of a product `[…, s, t] @ […, t, e]` whose weights are made of a product of as many rows and columns.
fn found(r: &Reverse, id: NodeId) -> Option<Rows> {
    let node = r.g.node(id);
    if !is_whole_product(&node.prim) || r.g.derivatives.of(id).is_some() {
        return None;
    }
    let weights = r.g.ty(*node.operands.first()?);
    let &[.., count, columns] = &weights.shape[..] else { return None };
    if count < ROWS_MIN || columns < COLUMNS_MIN || !r.is_active(node.operands[0]) {
        return None;
    }
    let mut rows = Rows {
        nodes: BTreeMap::new(),
        sequences: BTreeMap::new(),
        constants: BTreeSet::new(),
        out: id,
        count,
        columns,
    };
    rows.nodes.insert(id, node.ty.shape.len() - 2);
    rows.constants.insert(node.operands[1]);
    rows.visit(r, node.operands[0], weights.shape.len() - 2)?;
    let inside = |n: &NodeId| rows.nodes.contains_key(n);
    (rows.are_long(r.g) && !rows.constants.iter().any(inside) && !rows.sequences.keys().any(inside)).then_some(rows)
}

fn is_whole_product(prim: &Prim) -> bool {
    matches!(prim, Prim::Dot { steps: Steps::All, .. })
}

/// Whether rows of a node are made of the same rows of its operands alone: by operand the dim of its rows, or none.
fn by_rows(g: &Graph, node: &Node, dim: usize) -> Option<Vec<Option<usize>>> {
    let allowed = match &node.prim {
        Prim::Map(_) | Prim::Cast | Prim::Full { .. } | Prim::Iota { .. } | Prim::Broadcast { .. } => true,
        Prim::Transpose { .. } | Prim::Reshape => true,
        Prim::Reduce { .. } => true,
        prim => is_whole_product(prim),
    };
    if !allowed {
        return None;
    }
    let links = row(&node.prim).links(Site { g, node });
    let mut out = vec![];
    for (operand, links) in node.operands.iter().zip(&links) {
        let shape = &g.ty(*operand).shape;
        let own = links.iter().position(|l| *l == Link::Pass(dim));
        // What has a row of its own keeps the others apart; what has none must not have a part of one either.
        let mixed = |(l, n): (&Link, &u64)| match l {
            Link::Pass(_) | Link::Reduce(_) => false,
            Link::Reach(to, _) | Link::Blocks(to) | Link::Along(to) => *to == dim,
            Link::Whole => *n > 1 && (own.is_none() || node.prim != Prim::Reshape),
            Link::Few | Link::Indexed => true,
        };
        if links.iter().zip(shape).any(mixed) {
            return None;
        }
        out.push(own);
    }
    Some(out)
}

impl Rows {
    /// Takes a node in, and what it is made of as far as that is as large as the weights. `None` where too many nodes are.
    fn visit(&mut self, r: &Reverse, id: NodeId, dim: usize) -> Option<()> {
        if let Some(known) = self.nodes.get(&id) {
            return (*known == dim).then_some(());
        }
        let node = r.g.node(id);
        let operands = by_rows(r.g, node, dim).filter(|_| !r.wrt.contains(&id));
        let Some(operands) = operands.filter(|_| self.is_large(r.g, id) || self.of_large(r, id, dim)) else {
            return (*self.sequences.entry(id).or_insert(dim) == dim).then_some(());
        };
        if self.nodes.len() >= NODES_MAX {
            return None;
        }
        self.nodes.insert(id, dim);
        let product = is_whole_product(&node.prim);
        for (&operand, own) in node.operands.iter().zip(operands) {
            match own {
                None => {
                    self.constants.insert(operand);
                }
                // Factors are no larger than what comes in.
                Some(own) if product => {
                    if *self.sequences.entry(operand).or_insert(own) != own {
                        return None;
                    }
                }
                Some(own) => self.visit(r, operand, own)?,
            }
        }
        Some(())
    }

    /// Whether weights are normalised rows of a product, and much longer than what the two products have besides.
    fn are_long(&self, g: &Graph) -> bool {
        let last = |id: &NodeId| g.ty(*id).shape.last().copied().unwrap_or(1);
        let inner = self.nodes.keys().filter(|id| **id != self.out && is_whole_product(&g.node(**id).prim));
        let depths: Vec<u64> = inner.filter_map(|id| g.node(*id).operands.first().map(last)).collect();
        let normal = |id: &NodeId| matches!(g.node(*id).prim, Prim::Reduce { .. });
        let others = depths.iter().copied().chain([last(&self.out)]);
        !depths.is_empty() && self.nodes.keys().any(normal) && others.max().unwrap_or(0) * LONGER <= self.columns
    }

    fn is_large(&self, g: &Graph, id: NodeId) -> bool {
        g.ty(id).shape.iter().product::<u64>() >= self.count * self.columns
    }

    /// Whether a smaller node, one number of each row say, is made of a large one.
    fn of_large(&self, r: &Reverse, id: NodeId, dim: usize) -> bool {
        let mut open = vec![(id, dim)];
        let mut seen = BTreeSet::new();
        while let Some((id, dim)) = open.pop() {
            if !seen.insert(id) || seen.len() > NODES_MAX || r.wrt.contains(&id) {
                continue;
            }
            let node = r.g.node(id);
            let Some(operands) = by_rows(r.g, node, dim).filter(|_| !is_whole_product(&node.prim)) else { continue };
            for (&operand, own) in node.operands.iter().zip(operands) {
                let Some(own) = own else { continue };
                if self.is_large(r.g, operand) && by_rows(r.g, r.g.node(operand), own).is_some() {
                    return true;
                }
                open.push((operand, own));
            }
        }
        false
    }

    /// A type with this many rows.
    fn with_rows(ty: &NodeType, dim: usize, count: u64) -> NodeType {
        let mut shape = ty.shape.clone();
        shape[dim] = count;
        NodeType::new(shape, ty.dtype)
    }
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
    let mut copies: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    for (&id, &dim) in &rows.sequences {
        copies.insert(id, input(&mut graph, "rows", Rows::with_rows(r.g.ty(id), dim, count)));
    }
    let out = r.g.ty(rows.out);
    let cotangent = input(&mut graph, "cotangent", Rows::with_rows(out, out.shape.len() - 2, count));
    for &id in &rows.constants {
        copies.insert(id, input(&mut graph, "whole", NodeType::new(r.g.ty(id).shape.clone(), r.g.ty(id).dtype)));
    }
    for (&id, &dim) in &rows.nodes {
        let node = r.g.node(id);
        let operands = node.operands.iter().map(|o| copies.get(o).copied().unwrap_or(*o)).collect();
        let mut origin = node.origin.clone();
        origin.kernel = None;
        let ty = Rows::with_rows(&node.ty, dim, count);
        let mut copy = graph.push(Node { operands, ty, origin, ..node.clone() });
        if node.prim == (Prim::Iota { axis: dim }) {
            let mut w = writer(&mut graph, node);
            let (shape, dtype) = (w.shape(Id(copy.0)), w.dtype(Id(copy.0)));
            let from = expand::cast(&mut w, Id(first.0), dtype);
            let from = expand::broadcast_to(&mut w, from, &shape);
            copy = NodeId(expand::map(&mut w, MapOp::add, &[Id(copy.0), from]).0);
        }
        copies.insert(id, copy);
    }
    let all: Vec<NodeId> = rows.nodes.keys().copied().collect();
    graph.derivatives = r.g.derivatives.copied(&all, &|id| copies.get(&id).copied());
    let wrt: Vec<NodeId> = constants.iter().chain(sequences.iter().map(|s| &s.0)).map(|id| copies[id]).collect();
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

fn writer<'g>(graph: &'g mut Graph, like: &Node) -> Writer<'g> {
    Writer { graph, span: like.origin.span, policy: like.policy, again: None, kernel: None }
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
    operands.push(starts(&mut w, trips));
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
    let prim = Prim::Scan { body, carry, sequences: by_rows.len() + 1, trips, reversed: false };
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

/// The number of the first row of each block, `[turns, parts]`.
fn starts(w: &mut Writer, trips: u64) -> NodeId {
    let shape = [trips, PARTS];
    let times = |w: &mut Writer, axis: usize, by: u64| {
        let number = expand::iota(w, &shape, axis);
        let size = expand::full(w, &shape, DType::I64, Scalar::I(by as i64));
        expand::map(w, MapOp::mul, &[number, size])
    };
    let (turn, part) = (times(w, 0, BLOCK), times(w, 1, trips * BLOCK));
    NodeId(expand::map(w, MapOp::add, &[turn, part]).0)
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

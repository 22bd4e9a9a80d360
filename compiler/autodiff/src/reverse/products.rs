//! Products whose results are added up, as one product.
//!
//! A value that several products read (a layer's queries, keys and values, the two halves of a gated one) gets a cotangent of each,
//! `C₁B₁ + C₂B₂ + …`, and every one of them is a sum over a dim of its own. Here they are one product over all of these dims, so there is
//! one sum: on a mesh that splits them its parts meet once instead of once for each product.
//!
//! Its order is that of a product whose leaves have a block of each dim in turn, so that what shares out the dims shares out the
//! leaves. Which products are joined, and how, follows from sizes that are contracted alone: neither a batch nor a mesh changes a bit.

use std::collections::BTreeSet;
use tessera_base::DType;
use tessera_ir::graph::{Graph, Node, NodeId, Policy};
use tessera_ir::writer::Writer;
use tessera_ops::prim::fold::DOT_LEAF;
use tessera_ops::prim::{Order, Prim, Steps};
use tessera_ops::surface::{Build, Id, expand};

/// Steps of the smallest block that is worth a copy of its own.
const BLOCK_MIN: u64 = 32;

/// A product that a cotangent is, up to its shape.
struct Product {
    /// The cotangent, and the product where it is another node.
    nodes: Vec<NodeId>,
    accum: DType,
    dtype: DType,
    policy: Policy,
    factors: [NodeId; 2],
    /// Of the product, of the cotangent.
    shapes: [Vec<u64>; 2],
    depth: u64,
}

impl Product {
    fn joins(&self, other: &Product) -> bool {
        let alike = |p: &Product| (p.accum, p.dtype, p.policy);
        alike(self) == alike(other) && self.shapes == other.shapes
    }
}

/// Whether more than one of the terms may be a product.
pub fn are_several(g: &Graph, terms: &[NodeId]) -> bool {
    terms.iter().filter(|t| product(g, **t).is_some()).count() > 1
}

/// The terms with those that are products, made of nodes of their `own`, as one where the first of them is.
pub fn joined(w: &mut Writer, terms: &[NodeId], own: &BTreeSet<NodeId>) -> Vec<NodeId> {
    let of = |t: &NodeId| product(w.graph, *t).filter(|p| p.nodes.iter().all(|n| own.contains(n)));
    let found: Vec<Option<Product>> = if own.is_empty() { vec![] } else { terms.iter().map(of).collect() };
    let Some(first) = found.iter().flatten().next() else { return terms.to_vec() };
    let joins = |p: &Option<Product>| p.as_ref().is_some_and(|p| p.joins(first));
    let some: Vec<&Product> = found.iter().filter(|p| joins(p)).flatten().collect();
    let Some(leaves) = leaves(&some) else { return terms.to_vec() };
    let before = std::mem::replace(&mut w.policy, first.policy);
    let factors = [0, 1].map(|side| side_by_side(w, &some, side, leaves));
    let leaf = some.iter().map(|p| p.depth).sum::<u64>() / leaves;
    let prim = Prim::Dot { accum: first.accum, steps: Steps::All, order: Order::Chain, leaf };
    let sum = w.push(prim, &factors, first.shapes[0].clone(), first.dtype);
    let sum = expand::reshape(w, sum, &first.shapes[1]);
    w.policy = before;
    let at = found.iter().position(joins);
    let kept = |i: usize| Some(i) == at || !joins(&found[i]);
    let one = |i: usize| if Some(i) == at { NodeId(sum.0) } else { terms[i] };
    (0..terms.len()).filter(|i| kept(*i)).map(one).collect()
}

fn product(g: &Graph, term: NodeId) -> Option<Product> {
    let mut nodes = vec![term];
    if g.node(term).prim == Prim::Reshape {
        nodes.push(*g.node(term).operands.first()?);
    }
    let node = g.node(*nodes.last()?);
    let (&Prim::Dot { accum, steps: Steps::All, order: Order::Chain, .. }, &[a, b]) = (&node.prim, &node.operands[..])
    else {
        return None;
    };
    let (shapes, depth) = ([node.ty.shape.clone(), g.ty(term).shape.clone()], *g.ty(a).shape.last()?);
    let (policy, dtype) = (node.policy, node.ty.dtype);
    let floats = matches!(accum, DType::F32 | DType::F64);
    floats.then_some(Product { nodes, accum, dtype, policy, factors: [a, b], shapes, depth })
}

/// How many leaves there are, with a block of each dim: as few as are no longer than those of other products. A power of two
/// of them where blocks come out even, since devices that share them out have one node of the tree each then.
fn leaves(products: &[&Product]) -> Option<u64> {
    let depths: Vec<u64> = products.iter().map(|p| p.depth).collect();
    let total = depths.iter().try_fold(0u64, |n, d| n.checked_add(*d))?;
    let least = total.div_ceil(DOT_LEAF).max(1);
    let fits = |n: &u64| depths.iter().all(|d| d.is_multiple_of(*n) && d / n >= BLOCK_MIN && (d / n).is_multiple_of(2));
    let several = depths.len() > 1 && least > 1;
    several.then(|| [least.next_power_of_two(), least].into_iter().chain(least..2 * least).find(fits)).flatten()
}

/// One side of all products: a block of the contracted dim of each in turn, leaf by leaf.
fn side_by_side(w: &mut Writer, products: &[&Product], side: usize, leaves: u64) -> Id {
    // A factor that is turned over is joined as it lies.
    let turned: Option<Vec<NodeId>> = products.iter().map(|p| as_it_lies(w.graph, p.factors[side])).collect();
    let factors = turned.clone().unwrap_or_else(|| products.iter().map(|p| p.factors[side]).collect());
    let rank = w.shape(Id(factors[0].0)).len();
    let at = if (side == 0) == turned.is_none() { rank - 1 } else { rank - 2 };
    let blocks: Vec<Id> = factors
        .iter()
        .map(|f| {
            let shape = w.shape(Id(f.0));
            let blocks = [&shape[..at], &[leaves, shape[at] / leaves], &shape[at + 1..]].concat();
            expand::reshape(w, Id(f.0), &blocks)
        })
        .collect();
    let all = expand::concat(w, &blocks, at + 1);
    let shape = w.shape(all);
    let all = expand::reshape(w, all, &[&shape[..at], &[shape[at] * shape[at + 1]], &shape[at + 2..]].concat());
    if turned.is_none() {
        return all;
    }
    let perm: Vec<usize> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    expand::transpose(w, all, &perm)
}

/// What a node turns over in its last two dims.
fn as_it_lies(g: &Graph, id: NodeId) -> Option<NodeId> {
    let Node { prim: Prim::Transpose { perm }, operands, .. } = g.node(id) else { return None };
    let rank = perm.len();
    let last = perm[rank.checked_sub(2)?..] == [rank - 1, rank - 2];
    (last && perm[..rank - 2].iter().enumerate().all(|(i, p)| i == *p)).then(|| operands[0])
}

//! Products of which several dims stand for one: the places of a convolution.
//!
//! A product has one dim for its columns, so the rows and columns of images are joined for it and
//! divided again behind it. Blocks of joined dims are blocks only where they are equal, and of the first
//! of them. So here, before anything is laid out, such a product gets its columns in several dims: each is
//! split like any dim, evenly or not. The graph of a device joins its own part ([`crate::spmd_partition`]).

use std::collections::{BTreeSet, HashMap};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType};
use tessera_ops::prim::{Prim, Steps};

/// The graph, and the bodies of its loops, with the columns of products in the dims that they are joined from: a
/// right operand has those where its last dim would be, and so has the result.
pub fn unflatten_columns(g: &Graph) -> Graph {
    let products: HashMap<NodeId, usize> = g.ids().filter_map(|id| Some((id, columns(g, g.node(id))?))).collect();
    let bodies = g.bodies.iter().map(unflatten_columns).collect();
    if products.is_empty() {
        return Graph { bodies, ..g.clone() };
    }
    let whole = read_whole(g, &products);
    let out = Graph { nodes: vec![], outputs: vec![], bodies, ..g.clone() };
    let mut new = Unflatten { old: g, out, now: HashMap::new(), products: HashMap::new() };
    for id in g.ids() {
        let node = g.node(id);
        match products.get(&id) {
            Some(&count) => {
                let product = new.product(node, count);
                new.products.insert(id, product);
            }
            None if whole.contains(&id) => {
                let operands = match (&node.prim, &node.operands[..]) {
                    // Two reshapes are one.
                    (Prim::Reshape, [x]) if new.products.contains_key(x) => vec![new.products[x]],
                    _ => node.operands.iter().map(|&o| new.joined(o)).collect(),
                };
                let made = new.out.push(Node { operands, ..node.clone() });
                new.now.insert(id, made);
            }
            None => {}
        }
    }
    new.out.outputs = g.outputs.iter().map(|&o| new.joined(o)).collect();
    new.out
}

/// How many dims the columns of a product are joined from.
fn columns(g: &Graph, node: &Node) -> Option<usize> {
    let (Prim::Dot { steps: Steps::All, .. }, &[_, right]) = (&node.prim, &node.operands[..]) else { return None };
    let (Prim::Reshape, &[apart]) = (&g.node(right).prim, &g.node(right).operands[..]) else { return None };
    let (joined, parts) = (*g.ty(right).shape.last()?, &g.ty(apart).shape);
    let mut product = 1u64;
    for (i, &n) in parts.iter().rev().enumerate() {
        product = product.saturating_mul(n);
        if product == joined && n > 1 {
            return (i > 0).then_some(i + 1);
        }
    }
    None
}

/// The nodes that are made as they are: not those that only such products read.
fn read_whole(g: &Graph, products: &HashMap<NodeId, usize>) -> BTreeSet<NodeId> {
    let mut others: BTreeSet<NodeId> = g.outputs.iter().copied().collect();
    let mut apart = BTreeSet::new();
    for id in g.ids() {
        match (products.contains_key(&id), &g.node(id).operands[..]) {
            (true, &[left, right]) => {
                others.insert(left);
                apart.insert(right);
            }
            (_, operands) => others.extend(operands),
        }
    }
    g.ids().filter(|id| others.contains(id) || !apart.contains(id)).collect()
}

struct Unflatten<'a> {
    old: &'a Graph,
    out: Graph,
    /// The new node of an old one, in its own shape.
    now: HashMap<NodeId, NodeId>,
    /// Products with their columns apart, by old node.
    products: HashMap<NodeId, NodeId>,
}

impl Unflatten<'_> {
    /// An old node in its own shape.
    fn joined(&mut self, id: NodeId) -> NodeId {
        if let Some(&made) = self.now.get(&id) {
            return made;
        }
        let from = self.products.get(&id).copied().unwrap_or(id);
        let made = self.reshape(self.old.node(id), from, self.old.ty(id).shape.clone());
        self.now.insert(id, made);
        made
    }

    fn product(&mut self, node: &Node, count: usize) -> NodeId {
        let (left, right) = (self.joined(node.operands[0]), node.operands[1]);
        let from = self.old.node(right).operands[0];
        let sizes = &self.old.ty(from).shape;
        let sizes = &sizes[sizes.len() - count..];
        let in_parts = |shape: &[u64]| [&shape[..shape.len().saturating_sub(1)], sizes].concat();
        let (wide, shape) = (in_parts(&self.old.ty(right).shape), in_parts(&node.ty.shape));
        let from = self.joined(from);
        let right = self.reshape(self.old.node(right), from, wide);
        let ty = NodeType { shape, ..node.ty.clone() };
        self.out.push(Node { operands: vec![left, right], ty, ..node.clone() })
    }

    fn reshape(&mut self, like: &Node, from: NodeId, shape: Vec<u64>) -> NodeId {
        let origin = like.origin.of_pass("shard");
        let (ty, policy) = (NodeType::new(shape, like.ty.dtype), like.policy);
        self.out.push(Node { prim: Prim::Reshape, operands: vec![from], ty, results: vec![], origin, policy })
    }
}

//! Products of weights that are computed row by row from a product: attention that is written out, whatever stands between its
//! two products.

use std::collections::{BTreeMap, BTreeSet};
use tessera_ir::graph::derivatives::Rule;
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::links::Link;
use tessera_ir::prim::{Site, row};
use tessera_ops::prim::{Prim, Steps};
use tessera_ops::surface::parts_of_rows::{COLUMNS_MIN, ROWS_MIN};

/// How many times longer the rows are than what products make of them and they are made of: in a layer of a network they are
/// not, and computing it once more costs more than it saves.
const LONGER: u64 = 4;
/// Nodes between what is read and the product, at most.
const NODES_MAX: usize = 256;

/// A product, and how its first operand is made.
pub struct Rows {
    /// The nodes of the block, with the dim that the rows are.
    pub nodes: BTreeMap<NodeId, usize>,
    /// What they read of each row, with that dim, and what they read of all rows alike. One node may be both, as where a
    /// sequence attends to itself.
    pub sequences: BTreeMap<NodeId, usize>,
    pub constants: BTreeSet<NodeId>,
    pub out: NodeId,
    pub count: u64,
    columns: u64,
}

/// The rows of a product `[…, s, t] @ […, t, e]` whose weights are made of a product of as many rows and columns.
pub fn found(g: &Graph, id: NodeId, wrt: &[NodeId]) -> Option<Rows> {
    let node = g.node(id);
    if !is_whole_product(&node.prim) || g.derivatives.of(id).is_some() {
        return None;
    }
    let weights = g.ty(*node.operands.first()?);
    let &[.., count, columns] = &weights.shape[..] else { return None };
    if count < ROWS_MIN || columns < COLUMNS_MIN {
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
    rows.visit(g, wrt, node.operands[0], weights.shape.len() - 2)?;
    let inside = |n: &NodeId| rows.nodes.contains_key(n);
    let apart = !rows.constants.iter().any(inside) && !rows.sequences.keys().any(inside);
    (apart && rows.are_long(g) && rows.state_all(g)).then_some(rows)
}

fn is_whole_product(prim: &Prim) -> bool {
    matches!(prim, Prim::Dot { steps: Steps::All, .. })
}

/// Whether rows of a node are made of the same rows of its operands alone: by operand the dim of its rows, or none.
pub fn by_rows(g: &Graph, node: &Node, dim: usize) -> Option<Vec<Option<usize>>> {
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
    fn visit(&mut self, g: &Graph, wrt: &[NodeId], id: NodeId, dim: usize) -> Option<()> {
        if let Some(known) = self.nodes.get(&id) {
            return (*known == dim).then_some(());
        }
        let node = g.node(id);
        // A derivative that is a graph is one of all rows.
        let whole = g.derivatives.of(id).is_some_and(|part| !matches!(part.rule, Rule::Steps(_)));
        let operands = by_rows(g, node, dim).filter(|_| !whole && !wrt.contains(&id));
        let Some(operands) = operands.filter(|_| self.is_large(g, id) || self.of_large(g, wrt, id, dim)) else {
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
                Some(own) => self.visit(g, wrt, operand, own)?,
            }
        }
        Some(())
    }

    /// Whether what is stated of the derivatives of nodes can be stated of their blocks: all that it names is here, in one form.
    fn state_all(&self, g: &Graph) -> bool {
        let here =
            |id: &NodeId| self.nodes.contains_key(id) || self.sequences.contains_key(id) != self.constants.contains(id);
        let stated = self.nodes.keys().filter_map(|id| g.derivatives.of(*id));
        stated.flat_map(|part| [&part.inputs, &part.outputs, &part.saved]).flatten().all(here)
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
    fn of_large(&self, g: &Graph, wrt: &[NodeId], id: NodeId, dim: usize) -> bool {
        let mut open = vec![(id, dim)];
        let mut seen = BTreeSet::new();
        while let Some((id, dim)) = open.pop() {
            if !seen.insert(id) || seen.len() > NODES_MAX || wrt.contains(&id) {
                continue;
            }
            let node = g.node(id);
            let Some(operands) = by_rows(g, node, dim).filter(|_| !is_whole_product(&node.prim)) else { continue };
            for (&operand, own) in node.operands.iter().zip(operands) {
                let Some(own) = own else { continue };
                if self.is_large(g, operand) && by_rows(g, g.node(operand), own).is_some() {
                    return true;
                }
                open.push((operand, own));
            }
        }
        false
    }
}

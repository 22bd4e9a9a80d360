//! Per-device code: what each device has of an operator's result, along one axis.
//!
//! The same rules as of whole tensors: links say what becomes of a dim that is split, and
//! [`keeps_partial`](tessera_ir::prim::Primitive::keeps_partial) what can be done with parts of a sum. But nothing moves:
//! an operator that needs positions of other devices does not take a block, but for positions that the program itself counts,
//! which are each device's own from there on. A part that is made inside an operator is not completed.

use crate::links::links as links_of;
use std::collections::BTreeSet;
use tessera_base::{DType, Monoid, Own};
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::links::Link;
use tessera_ir::prim::{Site, Summand, row};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction, Scalar};

/// What devices have of a node's result, from what they have of its operands (`None` is the same on all). The number of
/// the operand whose parts the node cannot take.
pub fn own_after(g: &Graph, node: &Node, links: &[Vec<Link>], owns: &[Option<Own>]) -> Result<Option<Own>, usize> {
    for alone in [Own::Mixed, Own::Any] {
        if owns.contains(&Some(alone)) {
            return Ok(Some(alone));
        }
    }
    let mut found: Option<Own> = None;
    for (i, own) in owns.iter().enumerate() {
        let Some(part) = own.filter(|own| own.is_part()) else { continue };
        if !keeps(g, node, part, i, owns) {
            return Err(i);
        }
        found = Some(part);
    }
    if let Some(part) = found {
        return Ok(Some(if part == Own::Sum && divides_by_count(g, node) { Own::Mean } else { part }));
    }
    for (i, own) in owns.iter().enumerate() {
        let Some(Own::Block(dim)) = own else { continue };
        let after = match links.get(i).and_then(|l| l.get(*dim)) {
            // Numbers of positions are those of the block, and the whole has others.
            Some(Link::Pass(to)) if others_count(g, node, links, owns, *to) => return Err(i),
            Some(Link::Pass(to) | Link::Blocks(to)) => Own::Block(*to),
            Some(Link::Reduce(Reduction::Sum)) => Own::Sum,
            Some(Link::Reduce(Reduction::Max | Reduction::Any)) => Own::Max,
            Some(Link::Reduce(Reduction::Min | Reduction::All)) => Own::Min,
            // What takes positions that the program counts itself.
            Some(Link::Indexed) => Own::Mixed,
            Some(Link::Whole) if counted(&node.prim) => Own::Mixed,
            _ => return Err(i),
        };
        found = match found {
            Some(before) if before != after => return Err(i),
            _ => Some(after),
        };
    }
    if found.is_none() && owns.iter().any(Option::is_some) {
        // Zeros stay zeros where a sum stays one.
        let zeros = (0..owns.len()).all(|i| owns[i].is_none() || keeps(g, node, Own::Zero, i, owns));
        return Ok(zeros.then_some(Own::Zero));
    }
    Ok(found)
}

/// Whether a node reads or writes at positions that the program counts.
fn counted(prim: &Prim) -> bool {
    matches!(prim, Prim::DynamicSlice { .. } | Prim::DynamicUpdate | Prim::Gather | Prim::Scatter { .. })
}

/// Whether an operand that all devices have differs from position to position along a dim of the result by the numbers of
/// positions, or by random words that are drawn in their order.
fn others_count(g: &Graph, node: &Node, links: &[Vec<Link>], owns: &[Option<Own>], to: usize) -> bool {
    let along = |i: usize| (0..links[i].len()).filter(move |&d| matches!(links[i][d], Link::Pass(at) if at == to));
    (0..owns.len().min(links.len()))
        .filter(|&i| owns[i].is_none())
        .any(|i| along(i).any(|d| varies_along(g, node.operands[i], d)))
}

/// Whether a value counts positions along a dim.
fn varies_along(g: &Graph, id: NodeId, dim: usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![(id, dim)];
    while let Some((id, dim)) = open.pop() {
        if !seen.insert((id, dim)) {
            continue;
        }
        let node = g.node(id);
        let words = |key: &NodeId| node.prim == Prim::RandomBits && dim + 1 >= g.ty(*key).shape.len();
        if node.prim == (Prim::Iota { axis: dim }) || node.operands.first().is_some_and(words) {
            return true;
        }
        for (operand, links) in node.operands.iter().zip(links_of(g, node)) {
            let from = (0..links.len()).filter(|&d| matches!(links[d], Link::Pass(to) | Link::Blocks(to) if to == dim));
            open.extend(from.map(|d| (*operand, d)));
        }
    }
    false
}

/// Whether an operation on the parts is that of the whole.
fn keeps(g: &Graph, node: &Node, part: Own, i: usize, owns: &[Option<Own>]) -> bool {
    let others = |ok: &dyn Fn(Option<Own>) -> bool| (0..owns.len()).all(|j| j == i || ok(owns[j]));
    let zero = |own: Option<Own>| own == Some(Own::Zero);
    let others_alike = others(&|own| own == Some(part) || zero(own));
    let others_same = others(&|own| own.is_none() || zero(own));
    // What rounds rounds each part.
    let (from, to) = (node.operands.get(i).map(|o| g.ty(*o).dtype), node.ty.dtype);
    if node.prim == Prim::Cast && from.is_some_and(|from| from != DType::Bool) && (to.is_float() || to.is_complex()) {
        return true;
    }
    let monoid = match part {
        Own::Max => Monoid::Max,
        Own::Min => Monoid::Min,
        _ => Monoid::Sum,
    };
    let of = Summand { monoid, operand: i, others_alike, others_same };
    // The mean of what has something added is the mean with that added.
    let shifted = matches!(node.prim, Prim::Map(op) if op == MapOp::add || op == MapOp::sub);
    row(&node.prim).keeps_partial(Site { g, node }, of) || part == Own::Mean && shifted && others_same
}

/// Whether a node divides a sum by the number of its summands, which makes it a mean.
fn divides_by_count(g: &Graph, node: &Node) -> bool {
    let (Prim::Map(op), [x, count]) = (&node.prim, &node.operands[..]) else { return false };
    let Prim::Full { value } = g.node(*count).prim else { return false };
    let value = match value {
        Scalar::F(value) => value,
        Scalar::I(value) => value as f64,
    };
    *op == MapOp::div && summands(g, *x).is_some_and(|n| n == value)
}

/// How many summands the elements of a sum have.
fn summands(g: &Graph, mut x: NodeId) -> Option<f64> {
    loop {
        let node = g.node(x);
        let &[operand] = &node.operands[..] else { return None };
        match &node.prim {
            Prim::Reduce { kind: Reduction::Sum, axes } => {
                let shape = &g.ty(operand).shape;
                return Some(axes.iter().filter_map(|&d| shape.get(d)).map(|&n| n as f64).product());
            }
            Prim::Cast | Prim::Reshape | Prim::Broadcast { .. } => x = operand,
            _ => return None,
        }
    }
}

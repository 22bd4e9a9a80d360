//! Which dim of a result an axis of the mesh splits, and what else was weighed.

use std::cmp::Reverse;
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::links::Link;

/// From so many positions for each device on, blocks that are not all equal count as even.
const EVEN: u64 = 4;

/// A dim that an axis may split, and what it is compared by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    pub dim: usize,
    pub by: By,
}

/// What dims are compared by: all of one choice by the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Bytes of operands that are split like that already. The most is taken.
    Stays(u64),
    /// Where what is split vanishes: the bytes that move. Even blocks come first, then the fewest bytes, then the longest dim.
    Moves { uneven: bool, bytes: u64, share: u64 },
}

/// A choice between several dims: the one that was taken, and the one that came second.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weighed {
    pub node: NodeId,
    pub axis: String,
    pub taken: Way,
    pub second: Way,
}

/// An operand: how it lies, and what it is a view of.
pub struct Operand<'a> {
    pub lies: &'a Sharding,
    pub source: NodeId,
}

/// How the axes split the dims of a result; each choice is told with its ways, the best first.
pub fn of(
    g: &Graph,
    node: &Node,
    mesh: &Arc<Mesh>,
    links: &[Vec<Link>],
    operands: &[Operand],
    told: &mut dyn FnMut(&str, &[Way]),
) -> Sharding {
    let dims = vec![vec![]; node.ty.shape.len()];
    let mut result = Sharding { mesh: Some(mesh.clone()), dims, partial: vec![] };
    for (axis, size) in &mesh.axes {
        let ways = ways(g, node, (axis, *size), links, operands, &result);
        if let Some(best) = ways.first() {
            result.dims[best.dim].push(axis.clone());
            told(axis, &ways);
        }
    }
    result
}

/// The dims of the result that an axis may split, the best first: those that leave bytes of the operands in place; where all
/// that is split vanishes, those that such an operand gives.
fn ways(
    g: &Graph,
    node: &Node,
    (axis, size): (&str, u64),
    links: &[Vec<Link>],
    operands: &[Operand],
    result: &Sharding,
) -> Vec<Way> {
    let mut votes = vec![0u64; node.ty.shape.len()];
    let mut vanishes = vec![false; node.operands.len()];
    // Blocks of a joined or divided dim must be blocks of the other side.
    let fits = |from: u64, to: usize| {
        let parts = result.parts(to) * size;
        from.is_multiple_of(parts) && node.ty.shape[to].is_multiple_of(parts)
    };
    for (i, o) in node.operands.iter().enumerate() {
        let Some(dim) = operands[i].lies.dim_of(axis) else { continue };
        let bytes = g.ty(*o).bytes().unwrap_or(u64::MAX).max(1);
        match links[i].get(dim) {
            Some(Link::Pass(to) | Link::Reach(to, _)) => votes[*to] = votes[*to].saturating_add(bytes),
            Some(Link::Blocks(to)) if fits(g.ty(*o).shape[dim], *to) => votes[*to] = votes[*to].saturating_add(bytes),
            _ => vanishes[i] = true,
        }
    }
    let mut stay: Vec<(usize, u64)> = votes.into_iter().enumerate().filter(|(_, bytes)| *bytes > 0).collect();
    if !stay.is_empty() {
        stay.sort_by_key(|(_, bytes)| Reverse(*bytes));
        return stay.into_iter().map(|(dim, bytes)| Way { dim, by: By::Stays(bytes) }).collect();
    }
    let moved = |to: usize| {
        let has = |ls: &[Link]| {
            ls.iter().any(|l| matches!(l, Link::Pass(d) | Link::Reach(d, _) | Link::Blocks(d) if *d == to))
        };
        let of = |i: usize| {
            let bytes = g.ty(operands[i].source).bytes().unwrap_or(u64::MAX);
            if has(&links[i]) { bytes / size } else { bytes }
        };
        (0..links.len()).filter(|i| vanishes[*i]).map(of).fold(0, u64::saturating_add)
    };
    // Evenly first; then what moves the least: of an operand that has the dim, only what lies elsewhere.
    let mut found: Vec<((bool, u64, Reverse<u64>), usize)> = vec![];
    for (i, ls) in links.iter().enumerate().filter(|(i, _)| vanishes[*i]) {
        for (d, link) in ls.iter().enumerate() {
            let to = match link {
                Link::Pass(to) | Link::Reach(to, _) => *to,
                Link::Blocks(to) if fits(g.ty(node.operands[i]).shape[d], *to) => *to,
                _ => continue,
            };
            let share = node.ty.shape[to] / result.parts(to).max(1);
            // What goes along a dim is moved and comes back: there some devices may wait for the others.
            let goes_along = ls.iter().any(|l| matches!(l, Link::Along(_))) && node.ty.shape[to] > 1;
            let uneven = !share.is_multiple_of(size) && share < EVEN * size;
            if (share >= size || goes_along) && found.iter().all(|(_, dim)| *dim != to) {
                found.push(((uneven, moved(to), Reverse(share)), to));
            }
        }
    }
    found.sort_by_key(|(rank, _)| *rank);
    let way = |((uneven, bytes, share), dim): ((bool, u64, Reverse<u64>), usize)| Way {
        dim,
        by: By::Moves { uneven, bytes, share: share.0 },
    };
    found.into_iter().map(way).collect()
}

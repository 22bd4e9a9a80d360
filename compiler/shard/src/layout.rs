//! Where every value of a graph really lies.
//!
//! Each node gets a layout for its result and one for each operand; where an operand lies
//! differently it is moved ([`crate::exchange`]). No value is partial here: a sum over a split
//! dim gets its operands whole, split over another dim where there is one, so that every element
//! is summed by one device in the order of a single one.

pub mod turns;

use crate::links::{Link, links};
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ir::graph::{Graph, Node};
use tessera_ops::prim::Prim;
use turns::Turn;

/// The layouts of one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    pub result: Sharding,
    pub operands: Vec<Sharding>,
    /// Of a loop: its body.
    pub turn: Option<Box<Turn>>,
}

impl Placed {
    fn new(result: Sharding, operands: Vec<Sharding>) -> Placed {
        Placed { result, operands, turn: None }
    }
}

/// The mesh that a graph's inputs and conversions name. Programs have one mesh in a graph: the
/// checker sees to that.
pub fn mesh(g: &Graph) -> Option<Arc<Mesh>> {
    let inputs = g.inputs.iter().filter(|i| !i.scalar).map(|i| &i.ty.sharding);
    let conversions = g.nodes.iter().filter(|n| n.prim == Prim::Layout).map(|n| &n.ty.sharding);
    inputs.chain(conversions).find_map(|s| s.mesh.clone()).or_else(|| g.bodies.iter().find_map(mesh))
}

/// A layout without what only types say.
pub fn real(s: &Sharding, mesh: &Arc<Mesh>, rank: usize) -> Sharding {
    Sharding { mesh: Some(mesh.clone()), dims: s.dims.clone(), partial: vec![] }.normal(rank)
}

/// The layouts of all nodes.
pub fn lay_out(g: &Graph, mesh: &Arc<Mesh>) -> Vec<Placed> {
    let stated: Vec<Sharding> = g.inputs.iter().map(|i| real(&i.ty.sharding, mesh, i.ty.shape.len())).collect();
    lay_out_with(g, mesh, &stated)
}

/// The layouts of all nodes, from those of the inputs.
pub fn lay_out_with(g: &Graph, mesh: &Arc<Mesh>, inputs: &[Sharding]) -> Vec<Placed> {
    let mut placed: Vec<Placed> = Vec::with_capacity(g.nodes.len());
    for id in g.ids() {
        let node = g.node(id);
        let rank = node.ty.shape.len();
        placed.push(match &node.prim {
            Prim::Input(n) => {
                let given = inputs.get(*n as usize).cloned();
                Placed::new(given.unwrap_or_else(|| real(&Sharding::default(), mesh, rank)), vec![])
            }
            // A value that stays partial in its type lies where it is.
            Prim::Layout if !node.ty.sharding.partial.is_empty() => {
                let same = placed[node.operands[0].0 as usize].result.clone();
                Placed::new(same.clone(), vec![same])
            }
            Prim::Layout => {
                let to = real(&node.ty.sharding, mesh, rank);
                Placed::new(to.clone(), vec![to])
            }
            Prim::Scan { .. } => {
                let given: Vec<Sharding> = node.operands.iter().map(|o| placed[o.0 as usize].result.clone()).collect();
                let (operands, turn) = turns::lay_out(g, node, mesh, &given);
                Placed { turn: turn.map(Box::new), ..Placed::new(real(&Sharding::default(), mesh, rank), operands) }
            }
            Prim::Get { index } => {
                let looped = &placed[node.operands[0].0 as usize];
                let result = looped.turn.as_ref().and_then(|t| t.results.get(*index).cloned());
                let whole = real(&Sharding::default(), mesh, rank);
                Placed::new(result.unwrap_or(whole), vec![looped.result.clone()])
            }
            _ => place(g, node, mesh, &placed),
        });
    }
    placed
}

fn place(g: &Graph, node: &Node, mesh: &Arc<Mesh>, placed: &[Placed]) -> Placed {
    let links = links(g, node);
    let rank = node.ty.shape.len();
    let mut result = Sharding { mesh: Some(mesh.clone()), dims: vec![vec![]; rank], partial: vec![] };
    for (axis, size) in &mesh.axes {
        if let Some(d) = choose(g, node, axis, *size, &links, placed, &result) {
            result.dims[d].push(axis.clone());
        }
    }
    keep_order(node, &links, placed, &mut result);
    let operands = node
        .operands
        .iter()
        .zip(&links)
        .map(|(o, ls)| {
            let axes = |link: &Link| match link {
                Link::Pass(to) | Link::Blocks(to) => result.dims[*to].clone(),
                _ => vec![],
            };
            let dims: Vec<Vec<String>> = ls.iter().map(axes).collect();
            let rank = g.ty(*o).shape.len();
            Sharding { mesh: Some(mesh.clone()), dims, partial: vec![] }.normal(rank)
        })
        .collect();
    Placed::new(result.normal(rank), operands)
}

/// The dim of the result that an axis splits: the one that leaves the most bytes of the operands
/// in place; where all that is split vanishes, the largest dim that such an operand gives.
fn choose(
    g: &Graph,
    node: &Node,
    axis: &str,
    size: u64,
    links: &[Vec<Link>],
    placed: &[Placed],
    result: &Sharding,
) -> Option<usize> {
    let mut votes = vec![0u64; node.ty.shape.len()];
    let mut vanishes = vec![false; node.operands.len()];
    // Blocks of a joined or divided dim must be blocks of the other side.
    let fits = |from: u64, to: usize| {
        let parts = result.parts(to) * size;
        from.is_multiple_of(parts) && node.ty.shape[to].is_multiple_of(parts)
    };
    for (i, o) in node.operands.iter().enumerate() {
        let Some(dim) = placed[o.0 as usize].result.dim_of(axis) else { continue };
        let bytes = g.ty(*o).bytes().unwrap_or(u64::MAX).max(1);
        match links[i].get(dim) {
            Some(Link::Pass(to)) => votes[*to] = votes[*to].saturating_add(bytes),
            Some(Link::Blocks(to)) if fits(g.ty(*o).shape[dim], *to) => votes[*to] = votes[*to].saturating_add(bytes),
            _ => vanishes[i] = true,
        }
    }
    let most = votes.iter().copied().max().unwrap_or(0);
    if most > 0 {
        return votes.iter().position(|v| *v == most);
    }
    let mut best: Option<(u64, usize)> = None;
    for (i, ls) in links.iter().enumerate().filter(|(i, _)| vanishes[*i]) {
        for (d, link) in ls.iter().enumerate() {
            let to = match link {
                Link::Pass(to) => *to,
                Link::Blocks(to) if fits(g.ty(node.operands[i]).shape[d], *to) => *to,
                _ => continue,
            };
            let share = node.ty.shape[to] / result.parts(to).max(1);
            if share >= size && best.is_none_or(|(most, _)| share > most) {
                best = Some((share, to));
            }
        }
    }
    best.map(|b| b.1)
}

/// A dim split over several axes keeps the order that an operand has.
fn keep_order(node: &Node, links: &[Vec<Link>], placed: &[Placed], result: &mut Sharding) {
    for (o, ls) in node.operands.iter().zip(links) {
        for (d, link) in ls.iter().enumerate() {
            let Link::Pass(to) = *link else { continue };
            let order = placed[o.0 as usize].result.axes(d);
            if order.len() > 1
                && order.len() == result.dims[to].len()
                && order.iter().all(|a| result.dims[to].contains(a))
            {
                result.dims[to] = order.to_vec();
                return;
            }
        }
    }
}

//! Where every value of a graph really lies.
//!
//! Also called: sharding assignment, auto-sharding; an operand that lies differently is resharded.
//!
//! Each node gets a layout for its result and one for each operand; where an operand lies
//! differently it is moved ([`crate::exchange`]). No value is partial here: a sum over a split
//! dim gets its operands whole, split over another dim where there is one, so that every element
//! is summed by one device in the order of a single one.
//!
//! A part of a split dim, a padded one, several joined in one: what such a view has is not moved before
//! a reader is known. It is made where it is read, from just those boxes of its operands, so that views
//! of views move every element once. Windows, which have an element several times, are made where they are read too.

pub mod split_dims;
pub mod loop_carries;
mod halo;

use crate::links::links;
use crate::placement::{Placement, parts};
use halo::{materialize_at, materialize_views, reaches, sources};
use loop_carries::LoopLayout;
use split_dims::{Operand, Weighed};
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::{Mesh, Monoid, Sharding, Span};
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::links::Link;
use tessera_ops::prim::Prim;

/// The layouts of one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeLayout {
    /// How the result lies; of a view, how it would if it were read as it comes.
    pub result: Sharding,
    /// Where the result is made: of a view everywhere where it is read.
    pub made: Vec<Materialization>,
    /// Of a loop: its body.
    pub turn: Option<Box<LoopLayout>>,
}

/// Where a result is made, from operands that lie like this.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Materialization {
    pub at: Placement,
    pub operands: Vec<Placement>,
}

impl NodeLayout {
    fn new(result: Sharding, operands: Vec<Sharding>) -> NodeLayout {
        let operands = operands.into_iter().map(Placement::Layout).collect();
        NodeLayout { made: vec![Materialization { at: result.clone().into(), operands }], result, turn: None }
    }

    /// Where the result is when it is made.
    pub fn held(&self) -> Placement {
        match &self.made[..] {
            [Materialization { at: at @ Placement::Boxes(_), .. }] => at.clone(),
            _ => self.result.clone().into(),
        }
    }
}

/// The mesh that a graph names. It has one: where it has more, a call is refused.
pub fn mesh(g: &Graph) -> Option<Arc<Mesh>> {
    meshes(g).pop_first()
}

/// Every mesh that the inputs and conversions of a graph and of its loops name, each once.
pub fn meshes(g: &Graph) -> BTreeSet<Arc<Mesh>> {
    let inputs = g.inputs.iter().filter(|i| !i.scalar).map(|i| &i.ty.sharding);
    let conversions = g.nodes.iter().filter(|n| n.prim == Prim::Layout).map(|n| &n.ty.sharding);
    let own = inputs.chain(conversions).filter_map(|s| s.mesh.clone());
    own.chain(g.bodies.iter().flat_map(meshes)).collect()
}

/// The place in the source of the first conversion to a mesh; none where only inputs name it.
pub fn named_at(g: &Graph, mesh: &Arc<Mesh>) -> Span {
    let names = |n: &&Node| n.prim == Prim::Layout && n.ty.sharding.mesh.as_ref() == Some(mesh);
    let own = g.nodes.iter().find(names).map(|n| n.origin.span);
    own.or_else(|| g.bodies.iter().map(|b| named_at(b, mesh)).find(|s| *s != Span::NONE)).unwrap_or(Span::NONE)
}

/// A layout without what only types say.
pub fn real(s: &Sharding, mesh: &Arc<Mesh>, rank: usize) -> Sharding {
    Sharding { mesh: Some(mesh.clone()), dims: s.dims.clone(), partial: s.positions() }.normal(rank)
}

/// The layouts of all nodes.
pub fn lay_out(g: &Graph, mesh: &Arc<Mesh>) -> Vec<NodeLayout> {
    let stated: Vec<Sharding> = g.inputs.iter().map(|i| real(&i.ty.sharding, mesh, i.ty.shape.len())).collect();
    let mut placed = lay_out_with(g, mesh, &stated, &[]);
    let outputs: Vec<Sharding> = g.outputs.iter().map(|&o| placed[o.0 as usize].result.clone()).collect();
    materialize_views(g, mesh, &mut placed, &outputs);
    placed
}

/// The layouts of all nodes, from those of the inputs. What is free to be anywhere is at these positions.
pub fn lay_out_with(g: &Graph, mesh: &Arc<Mesh>, inputs: &[Sharding], at: &[(Monoid, String)]) -> Vec<NodeLayout> {
    let mut placed: Vec<NodeLayout> = Vec::with_capacity(g.nodes.len());
    lay_out_more(g, mesh, inputs, at, &mut placed);
    placed
}

/// The layouts of the nodes behind those that have theirs.
pub fn lay_out_more(
    g: &Graph,
    mesh: &Arc<Mesh>,
    inputs: &[Sharding],
    at: &[(Monoid, String)],
    placed: &mut Vec<NodeLayout>,
) {
    for id in g.ids().skip(placed.len()) {
        let node = g.node(id);
        let rank = node.ty.shape.len();
        placed.push(match &node.prim {
            Prim::Input(n) => {
                let given = inputs.get(*n as usize).cloned();
                NodeLayout::new(given.unwrap_or_else(|| real(&Sharding::default(), mesh, rank)), vec![])
            }
            Prim::Layout => {
                let mut to = real(&node.ty.sharding, mesh, rank);
                // What stays partial in its type is split as it was; at a position it lies all the same.
                if node.ty.sharding.unfinished().is_some() {
                    let own = &placed[node.operands[0].0 as usize].result;
                    let split =
                        |d: usize| own.axes(d).iter().filter(|axis| to.position(axis).is_none()).cloned().collect();
                    to.dims = (0..rank).map(split).collect();
                    to = to.normal(rank);
                }
                to.partial = with_free(to.partial.clone(), at, &to);
                NodeLayout::new(to.clone(), vec![to])
            }
            Prim::Scan { .. } => {
                let given: Vec<Sharding> = node.operands.iter().map(|o| placed[o.0 as usize].result.clone()).collect();
                let (operands, turn) = loop_carries::lay_out(g, node, mesh, &given);
                let partial = turn.iter().flat_map(|t| &t.results).map(Sharding::positions).next().unwrap_or_default();
                let result = real(&Sharding { partial, ..Sharding::default() }, mesh, rank);
                NodeLayout { turn: turn.map(Box::new), ..NodeLayout::new(result, operands) }
            }
            Prim::Get { index } => {
                let looped = &placed[node.operands[0].0 as usize];
                let result = looped.turn.as_ref().and_then(|t| t.results.get(*index).cloned());
                let whole = real(&Sharding::default(), mesh, rank);
                NodeLayout::new(result.unwrap_or(whole), vec![looped.result.clone()])
            }
            _ => node_layouts(g, node, mesh, placed, at),
        });
    }
}

/// What was weighed for the dims that axes split, of the nodes of a graph that are laid out like this, outside of its loops.
pub fn weighed(g: &Graph, mesh: &Arc<Mesh>, placed: &[NodeLayout]) -> Vec<Weighed> {
    let mut out = vec![];
    for (id, node) in g.ids().map(|id| (id, g.node(id))) {
        if matches!(node.prim, Prim::Input(_) | Prim::Layout | Prim::Scan { .. } | Prim::Get { .. }) {
            continue;
        }
        split_dims::of(g, node, mesh, &links(g, node), &operands(g, node, placed), &mut |axis, ways| {
            if let [taken, second, ..] = *ways {
                out.push(Weighed { node: id, axis: axis.to_owned(), taken, second });
            }
        });
    }
    out
}

fn operands<'a>(g: &Graph, node: &Node, placed: &'a [NodeLayout]) -> Vec<Operand<'a>> {
    let operand = |&o: &NodeId| Operand { lies: &placed[o.0 as usize].result, source: sources(g, o) };
    node.operands.iter().map(operand).collect()
}

/// The layouts of one node.
fn node_layouts(
    g: &Graph,
    node: &Node,
    mesh: &Arc<Mesh>,
    placed: &[NodeLayout],
    at: &[(Monoid, String)],
) -> NodeLayout {
    let links = links(g, node);
    let rank = node.ty.shape.len();
    let mut result = split_dims::of(g, node, mesh, &links, &operands(g, node, placed), &mut |_, _| {});
    keep_order(node, &links, placed, &mut result);
    result.partial = with_free(positions(g, node, mesh, placed, &result), at, &result);
    if let Prim::Rows { axis, from } = &node.prim
        && !result.dims[*axis].is_empty()
    {
        if result.parts(*axis) == node.ty.shape[*axis] {
            return placed_rows(node, mesh, result.normal(rank), *axis, from);
        }
        // Its blocks are no single rows.
        result.dims[*axis].clear();
    }
    let result = result.normal(rank);
    if reaches(&links, &result) {
        let made = materialize_at(g, node, mesh, placed, result.clone().into());
        return NodeLayout { result, made: vec![made], turn: None };
    }
    let operands = node
        .operands
        .iter()
        .zip(&links)
        .map(|(o, ls)| {
            let axes = |link: &Link| match link {
                Link::Pass(to) | Link::Blocks(to) => result.axes(*to).to_vec(),
                _ => vec![],
            };
            let dims: Vec<Vec<String>> = ls.iter().map(axes).collect();
            let rank = g.ty(*o).shape.len();
            Sharding { mesh: Some(mesh.clone()), dims, partial: result.partial.clone() }.normal(rank)
        })
        .collect();
    NodeLayout::new(result, operands)
}

/// Where along each axis that splits nothing of a result its operands lie: it is computed there. Where they lie at
/// different positions, they come to the largest.
fn positions(
    g: &Graph,
    node: &Node,
    mesh: &Arc<Mesh>,
    placed: &[NodeLayout],
    result: &Sharding,
) -> Vec<(Monoid, String)> {
    let along = |axis: &String| {
        let of = |o: &NodeId| Some((g.ty(*o).bytes().unwrap_or(u64::MAX), placed[o.0 as usize].result.position(axis)?));
        let largest = |a: (u64, u64), b: (u64, u64)| if b.0 > a.0 { b } else { a };
        let (_, index) = node.operands.iter().filter_map(of).reduce(largest)?;
        result.dim_of(axis).is_none().then(|| (Monoid::At(index), axis.clone()))
    };
    mesh.axes.iter().filter_map(|(axis, _)| along(axis)).collect()
}

/// Positions with those along axes that a result leaves free.
fn with_free(mut own: Vec<(Monoid, String)>, at: &[(Monoid, String)], result: &Sharding) -> Vec<(Monoid, String)> {
    let free = |p: &&(Monoid, String)| result.dim_of(&p.1).is_none() && own.iter().all(|o| o.1 != p.1);
    let more: Vec<(Monoid, String)> = at.iter().filter(free).cloned().collect();
    own.extend(more);
    own.sort_by(|a, b| a.1.cmp(&b.1));
    own
}

/// Rows of which each device has one: it gets the one that is its own afterwards.
fn placed_rows(node: &Node, mesh: &Arc<Mesh>, result: Sharding, axis: usize, from: &[u64]) -> NodeLayout {
    let mut boxes = parts(&result, &node.ty.shape, mesh.devices());
    for range in boxes.iter_mut().map(|part| &mut part[axis]).filter(|range| !range.is_empty()) {
        *range = from[range.start as usize]..from[range.start as usize] + 1;
    }
    let made = Materialization { at: result.clone().into(), operands: vec![Placement::Boxes(Arc::new(boxes))] };
    NodeLayout { result, made: vec![made], turn: None }
}

/// A dim split over several axes keeps the order that an operand has.
fn keep_order(node: &Node, links: &[Vec<Link>], placed: &[NodeLayout], result: &mut Sharding) {
    for (o, ls) in node.operands.iter().zip(links) {
        for (d, link) in ls.iter().enumerate() {
            let (Link::Pass(to) | Link::Blocks(to) | Link::Reach(to, _)) = *link else { continue };
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

//! Products over a split dim as partial products: each device multiplies what it has, and the results are summed.
//!
//! Where parts begin and end between leaves of the product ([`tessera_ops::prim::fold`]) each device folds the subtrees that
//! are its own, the nodes meet, and each device completes the tree for its share of the results: the bits are those of one
//! device. Whole numbers and `fast` allow any order, so there each device has one node, wherever its part ends. As an
//! all-reduce by a ring it moves the result twice ((n-1)/n of it to each device's share, and as much back where all of it
//! is needed) instead of the operands. (Thakur, Rabenseifner and Gropp, Optimization of Collective Communication
//! Operations in MPICH, 2005.)

use crate::adder::Adder;
use crate::demand::Demand;
use crate::layout::NodeLayout;
use crate::tree::tree;
use tessera_base::{DType, Mesh, Sharding, Span};
use tessera_ir::graph::{Calls, Graph, Node, NodeId, Policy};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction, Scalar, Steps};
use tessera_ops::surface::{Build, Id, expand};

/// What was weighed of a product over a split dim.
#[derive(Clone, PartialEq, Debug)]
pub struct Weighed {
    pub span: Span,
    pub calls: Calls,
    /// The axes that split the contracted dim.
    pub axes: Vec<String>,
    /// Numbers that all devices together would send of sums, and of operands: what is less is done.
    pub sums: f64,
    pub operands: f64,
}

impl Weighed {
    /// Whether each device multiplies its part, and sums move.
    pub fn moves_sums(&self) -> bool {
        self.sums < self.operands
    }
}

/// How a product over a split dim can be made of those of its parts.
pub struct Way {
    pub weighed: Weighed,
    ordered: bool,
    nodes: u64,
}

/// How product `id` can be made of those of the parts of its contracted dim; `None` where that is not split, or the order
/// of sums is fixed.
pub fn way(g: &Graph, node: &Node, mesh: &Mesh, placed: &[NodeLayout]) -> Option<Way> {
    let &[left, right] = &node.operands[..] else { return None };
    let depth = *g.ty(left).shape.last()?;
    let axes = split_over(g, [left, right], placed)?;
    let parts: u64 = axes.iter().filter_map(|a| mesh.size(a)).product();
    let (ordered, nodes) = cut(node, depth, parts)?;
    if g.ty(left).shape.len() < 2 || node.ty.elems() == Some(0) {
        return None;
    }
    let [sums, operands] = moved(g, [left, right], axes, mesh, placed, nodes / parts.max(1));
    let weighed =
        Weighed { span: node.origin.span, calls: node.origin.calls.clone(), axes: axes.to_vec(), sums, operands };
    Some(Way { weighed, ordered, nodes })
}

/// Product `id` of `a` and `b`, which are new, from those of the parts of its contracted dim, in a way that was found
/// to move less. Its rows are in the dims `rows`.
pub fn summed(
    b: &mut Adder,
    [x, y]: [Id; 2],
    g: &Graph,
    (id, node, rows): (NodeId, &Node, &[u64]),
    way: &Way,
    placed: &[NodeLayout],
    wanted: &dyn Fn(&[String]) -> Demand,
) -> Option<Id> {
    let (&Prim::Dot { accum, .. }, &[left, _]) = (&node.prim, &node.operands[..]) else { return None };
    let rank = g.ty(left).shape.len();
    let depth = *g.ty(left).shape.last()?;
    let &Way { ordered, nodes, ref weighed } = way;
    let axes = weighed.axes.clone();
    let each = depth / nodes;
    let batch = rank - 2;
    let x = {
        let shape = b.shape(x);
        let cut = expand::reshape(b, x, &[&shape[..rank - 1], &[nodes, each]].concat());
        let perm: Vec<usize> = (0..batch).chain([rank - 1, batch, rank]).collect();
        expand::transpose(b, cut, &perm)
    };
    let y = {
        let shape = b.shape(y);
        expand::reshape(b, y, &[&shape[..batch], &[nodes, each], &shape[rank - 1..]].concat())
    };
    let shape = [&node.ty.shape[..batch], &[nodes], &node.ty.shape[batch..]].concat();
    let partial = b.push(node.prim.clone(), &[x, y], shape, accum);
    if !ordered {
        b.holds_summands(partial);
    }
    // The other dims stay where the result has them.
    let result = &placed[id.0 as usize].result;
    let stays = |d: usize| result.axes(d).iter().filter(|a| !axes.contains(a)).cloned().collect();
    let mut dims: Vec<Vec<String>> = (0..node.ty.shape.len()).map(stays).collect();
    dims.insert(batch, vec![]);
    dims.splice(batch + 2..batch + 2, rows.iter().skip(1).map(|_| vec![]));
    let shape = [&node.ty.shape[..batch], rows, &node.ty.shape[batch + 1..]].concat();
    let apart = [&shape[..batch], &[nodes], &shape[batch..]].concat();
    let partial = expand::reshape(b, partial, &apart);
    let wanted = wanted(&axes).split.map(|d| if d < batch { d } else { d + 1 });
    let lies = Sharding { dims, ..result.clone() };
    let shared = b.share_out(partial, lies, batch..batch + 1, axes, wanted);
    let sum = match ordered {
        false => b.push(Prim::Reduce { kind: Reduction::Sum, axes: vec![batch] }, &[shared], shape, accum),
        true => {
            let sum = tree(b, MapOp::add, shared, batch, nodes);
            let sum = expand::reshape(b, sum, &shape);
            // Several leaves give no -0.
            let zero = expand::full(b, &shape, accum, Scalar::F(0.0));
            expand::map(b, MapOp::add, &[zero, sum])
        }
    };
    Some(expand::cast(b, sum, node.ty.dtype))
}

/// Whether the nodes of a product that `parts` devices have make a tree of fixed order, and how many there are in all:
/// `None` where a part cannot be multiplied by itself.
fn cut(node: &Node, depth: u64, parts: u64) -> Option<(bool, u64)> {
    let &Prim::Dot { accum, steps: Steps::All, order, leaf } = &node.prim else { return None };
    if parts < 2 || depth == 0 || !depth.is_multiple_of(parts) {
        return None;
    }
    let each = depth / parts;
    let free = !accum.is_float() && !accum.is_complex() || node.policy == Policy::Fast && accum.is_float();
    let leaves = each / leaf;
    let whole = each.is_multiple_of(leaf) && node.policy != Policy::KahanSum;
    // Of so many leaves a product of them alone makes the node of the tree that is above them.
    let nodes = if leaves > 0 { parts * (leaves >> leaves.trailing_zeros()) } else { 0 };
    match free {
        true if !order.is_paired() || each.is_multiple_of(2) => {
            Some((whole && nodes == parts && accum.is_float(), parts))
        }
        false if whole && matches!(accum, DType::F32 | DType::F64) => Some((true, nodes)),
        _ => None,
    }
}

/// The axes over which the contracted dim of a product is split: of both operands, or of one while all positions of these
/// axes have the other one whole.
pub fn split_over<'a>(g: &Graph, [left, right]: [NodeId; 2], placed: &'a [NodeLayout]) -> Option<&'a [String]> {
    let rank = g.ty(left).shape.len();
    let sides = [(left, rank.checked_sub(1)?), (right, rank.checked_sub(2)?)];
    let layout = |o: NodeId| &placed[o.0 as usize].result;
    let held = sides.map(|(o, dim)| layout(o).axes(dim));
    let axes = if held[0].is_empty() { held[1] } else { held[0] };
    let fits = |(o, dim): (NodeId, usize)| {
        let own = layout(o).axes(dim);
        let everywhere = |a: &String| layout(o).dim_of(a).is_none() && layout(o).partial_over(a).is_none();
        own == axes || own.is_empty() && axes.iter().all(everywhere)
    };
    (!axes.is_empty() && sides.into_iter().all(fits)).then_some(axes)
}

/// Whether results of the parts, so many for each device, move less than operands.
pub fn moves_less(
    g: &Graph,
    operands: [NodeId; 2],
    axes: &[String],
    mesh: &Mesh,
    placed: &[NodeLayout],
    nodes: u64,
) -> bool {
    let [sums, operands] = moved(g, operands, axes, mesh, placed, nodes);
    sums < operands
}

/// Numbers that all devices send: of results of the parts, so many for each device, and of operands.
fn moved(
    g: &Graph,
    [left, right]: [NodeId; 2],
    axes: &[String],
    mesh: &Mesh,
    placed: &[NodeLayout],
    nodes: u64,
) -> [f64; 2] {
    let rank = g.ty(left).shape.len();
    let layout = |o: NodeId| &placed[o.0 as usize].result;
    // Along the other axes what is in full moves once for each device.
    let others = || mesh.axes.iter().filter(|a| !axes.contains(&a.0));
    let times = |o: NodeId| others().filter(|a| layout(o).dim_of(&a.0).is_none()).map(|a| a.1 as f64).product::<f64>();
    let elems = |o: NodeId| g.ty(o).elems().unwrap_or(u64::MAX) as f64 * times(o);
    let (a, b) = (elems(left), elems(right));
    let devices = axes.iter().filter_map(|a| mesh.size(a)).product::<u64>() as f64;
    let after = devices - 1.0;
    let split = |o: NodeId, dim: usize| !layout(o).axes(dim).is_empty();
    // Of the operands, over all devices: the smaller one to each, and a share of the larger one to another dim.
    let operands = match (split(left, rank - 1), split(right, rank - 2)) {
        (false, _) => b * after / devices,
        (_, false) => a * after / devices,
        _ => a.min(b) * after + a.max(b) * after / devices,
    };
    let count = |dims: &[u64]| dims.iter().map(|&n| n as f64).product::<f64>();
    let kept = |a: &&(String, u64)| [left, right].iter().all(|o| layout(*o).dim_of(&a.0).is_none());
    let times = others().filter(kept).map(|a| a.1 as f64).product::<f64>();
    let results = count(&g.ty(left).shape[..rank - 1]) * count(&g.ty(right).shape[rank - 1..]) * times;
    [results * after * nodes as f64, operands]
}

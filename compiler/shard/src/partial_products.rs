//! Products over a split dim as partial products: each device multiplies what it has, and the results are summed.
//!
//! Whole numbers allow it in any order; of floats the order of steps changes, so it is done where `fast` is asked for. As an
//! all-reduce by a ring it moves the result twice ((n-1)/n of it to each device's share, and as much back where all of it
//! is needed) instead of the operands. (Thakur, Rabenseifner and Gropp, Optimization of Collective Communication
//! Operations in MPICH, 2005.)

use crate::adder::Adder;
use crate::demand::Demand;
use crate::layout::NodeLayout;
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId, Policy};
use tessera_ops::prim::{Prim, Reduction, Steps};
use tessera_ops::surface::{Build, Id, expand};

/// Product `id` of `a` and `b`, which are new, from those of the parts of its contracted dim. `None` where that is not
/// split, the order of sums is fixed, or operands move less than results.
pub fn summed(
    b: &mut Adder,
    [x, y]: [Id; 2],
    g: &Graph,
    (id, node): (NodeId, &Node),
    mesh: &Arc<Mesh>,
    placed: &[NodeLayout],
    wanted: &dyn Fn(&[String]) -> Demand,
) -> Option<Id> {
    let (Prim::Dot { accum, steps: Steps::All, order }, &[left, right]) = (&node.prim, &node.operands[..]) else {
        return None;
    };
    let free = !accum.is_float() && !accum.is_complex() || node.policy == Policy::Fast && accum.is_float();
    let rank = g.ty(left).shape.len();
    let depth = *g.ty(left).shape.last()?;
    let axes = split_over(g, [left, right], placed)?.to_vec();
    if !moves_less(g, [left, right], &axes, mesh, placed) {
        return None;
    }
    let parts: u64 = axes.iter().filter_map(|a| mesh.size(a)).product();
    let each = depth / parts.max(1);
    let even = depth.is_multiple_of(parts) && (!order.is_paired() || each.is_multiple_of(2));
    if !free || rank < 2 || parts < 2 || !even || each == 0 || node.ty.elems() == Some(0) {
        return None;
    }
    let batch = rank - 2;
    let x = {
        let shape = b.shape(x);
        let cut = expand::reshape(b, x, &[&shape[..rank - 1], &[parts, each]].concat());
        let perm: Vec<usize> = (0..batch).chain([rank - 1, batch, rank]).collect();
        expand::transpose(b, cut, &perm)
    };
    let y = {
        let shape = b.shape(y);
        expand::reshape(b, y, &[&shape[..batch], &[parts, each], &shape[rank - 1..]].concat())
    };
    let shape = [&node.ty.shape[..batch], &[parts], &node.ty.shape[batch..]].concat();
    let partial = b.push(node.prim.clone(), &[x, y], shape, *accum);
    b.holds_summands(partial);
    // The other dims stay where the result has them.
    let result = &placed[id.0 as usize].result;
    let stays = |d: usize| result.axes(d).iter().filter(|a| !axes.contains(a)).cloned().collect();
    let mut dims: Vec<Vec<String>> = (0..node.ty.shape.len()).map(stays).collect();
    dims.insert(batch, vec![]);
    let wanted = wanted(&axes).split.map(|d| if d < batch { d } else { d + 1 });
    let lies = Sharding { dims, ..result.clone() };
    let shared = b.share_out(partial, lies, batch..batch + 1, axes, wanted);
    let sum = Prim::Reduce { kind: Reduction::Sum, axes: vec![batch] };
    let sum = b.push(sum, &[shared], node.ty.shape.clone(), *accum);
    Some(expand::cast(b, sum, node.ty.dtype))
}

/// The axes over which the contracted dim of a product is split: of both operands, or of one while the other is whole.
pub fn split_over<'a>(g: &Graph, [left, right]: [NodeId; 2], placed: &'a [NodeLayout]) -> Option<&'a [String]> {
    let rank = g.ty(left).shape.len();
    let sides = [(left, rank.checked_sub(1)?), (right, rank.checked_sub(2)?)];
    let layout = |o: NodeId| &placed[o.0 as usize].result;
    let held = sides.map(|(o, dim)| layout(o).axes(dim));
    let axes = if held[0].is_empty() { held[1] } else { held[0] };
    let fits = |(o, dim): (NodeId, usize)| {
        let own = layout(o).axes(dim);
        own == axes || own.is_empty() && axes.iter().all(|a| layout(o).dim_of(a).is_none())
    };
    (!axes.is_empty() && sides.into_iter().all(fits)).then_some(axes)
}

/// Whether results of the parts move less than operands.
fn moves_less(g: &Graph, [left, right]: [NodeId; 2], axes: &[String], mesh: &Mesh, placed: &[NodeLayout]) -> bool {
    let rank = g.ty(left).shape.len();
    let elems = |o: NodeId| g.ty(o).elems().unwrap_or(u64::MAX) as f64;
    let (a, b) = (elems(left), elems(right));
    let devices = axes.iter().filter_map(|a| mesh.size(a)).product::<u64>() as f64;
    let after = devices - 1.0;
    let split = |o: NodeId, dim: usize| !placed[o.0 as usize].result.axes(dim).is_empty();
    // Of the operands, over all devices: the smaller one to each, and a share of the larger one to another dim.
    let operands = match (split(left, rank - 1), split(right, rank - 2)) {
        (false, _) => b * after / devices,
        (_, false) => a * after / devices,
        _ => a.min(b) * after + a.max(b) * after / devices,
    };
    let count = |dims: &[u64]| dims.iter().map(|&n| n as f64).product::<f64>();
    count(&g.ty(left).shape[..rank - 1]) * count(&g.ty(right).shape[rank - 1..]) * after < operands
}

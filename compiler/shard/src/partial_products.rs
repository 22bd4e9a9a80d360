//! Products over a split dim as partial products: each device multiplies what it has, and the results are summed.
//!
//! Whole numbers allow it in any order; of floats the order of steps changes, so it is done where `fast` is asked for. As an
//! all-reduce by a ring it moves the result twice ((n-1)/n of it to each device's share, and as much back where all of it
//! is needed) instead of the operands. (Thakur, Rabenseifner and Gropp, Optimization of Collective Communication
//! Operations in MPICH, 2005.)

use crate::adder::Adder;
use crate::layout::{NodeLayout, real};
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType, Policy};
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
) -> Option<Id> {
    let (Prim::Dot { accum, steps: Steps::All, order }, &[left, right]) = (&node.prim, &node.operands[..]) else {
        return None;
    };
    let free = !accum.is_float() && !accum.is_complex() || node.policy == Policy::Fast && accum.is_float();
    let rank = g.ty(left).shape.len();
    let depth = *g.ty(left).shape.last()?;
    let axes = split_over(g, [left, right], mesh, placed)?;
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
    // The other dims stay where the result has them.
    let result = &placed[id.0 as usize].result;
    let stays = |d: usize| result.axes(d).iter().filter(|a| !axes.contains(a)).cloned().collect();
    let mut dims: Vec<Vec<String>> = (0..node.ty.shape.len()).map(stays).collect();
    dims.insert(batch, vec![]);
    let wanted = wanted_over(g, id, mesh, &axes).map(|d| if d < batch { d } else { d + 1 });
    let lies = Sharding { dims, ..result.clone() };
    let shared = b.share_out(partial, lies, batch..batch + 1, axes, wanted);
    let sum = Prim::Reduce { kind: Reduction::Sum, axes: vec![batch] };
    let sum = b.push(sum, &[shared], node.ty.shape.clone(), *accum);
    Some(expand::cast(b, sum, node.ty.dtype))
}

/// The axes over which the contracted dim of a product is split, where it moves less to sum its results.
fn split_over(g: &Graph, [left, right]: [NodeId; 2], mesh: &Arc<Mesh>, placed: &[NodeLayout]) -> Option<Vec<String>> {
    let rank = g.ty(left).shape.len();
    let sides = [(left, rank.checked_sub(1)?), (right, rank.checked_sub(2)?)];
    let layout = |o: NodeId| &placed[o.0 as usize].result;
    let held = sides.map(|(o, dim)| layout(o).axes(dim));
    // The other operand is split as this one, or whole: then its part is cut out.
    let axes = if held[0].is_empty() { held[1] } else { held[0] };
    let fits = |(o, dim): (NodeId, usize)| {
        let own = layout(o).axes(dim);
        own == axes || own.is_empty() && axes.iter().all(|a| layout(o).dim_of(a).is_none())
    };
    if axes.is_empty() || !sides.into_iter().all(fits) {
        return None;
    }
    let elems = |ty: &NodeType| ty.elems().unwrap_or(u64::MAX) as f64;
    let [a, b] = [left, right].map(|o| elems(g.ty(o)));
    let devices = axes.iter().filter_map(|a| mesh.size(a)).product::<u64>() as f64;
    let after = devices - 1.0;
    // Of the operands, over all devices: the smaller one to each, and a share of the larger one to another dim.
    let operands = match held {
        [[], _] => b * after / devices,
        [_, []] => a * after / devices,
        _ => a.min(b) * after + a.max(b) * after / devices,
    };
    let rows: f64 = g.ty(left).shape[..rank - 1].iter().map(|&n| n as f64).product();
    let columns: f64 = g.ty(right).shape[rank - 1..].iter().map(|&n| n as f64).product();
    (rows * columns * after < operands).then(|| axes.to_vec())
}

/// The dim of a result that its reader wants split over the axes.
fn wanted_over(g: &Graph, id: NodeId, mesh: &Arc<Mesh>, axes: &[String]) -> Option<usize> {
    let mut readers = g.nodes.iter().filter(|n| n.operands.contains(&id));
    let (Some(reader), None) = (readers.next(), readers.next()) else { return None };
    let to = real(&reader.ty.sharding, mesh, reader.ty.shape.len());
    (reader.prim == Prim::Layout).then(|| to.dim_of(axes.first()?)).flatten()
}

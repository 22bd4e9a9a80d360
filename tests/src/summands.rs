//! What the types of values on a mesh claim, acted out: each device computes from the parts that
//! the layouts give it, and where a type says `sum@a` the devices of the axis really hold summands.

use crate::meshes::{cut, paste, together};
use crate::random::{Fill, Random};
use crate::random_graph::elems;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tessera_base::{DType, Monoid, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType};
use tessera_ir::interpret;
use tessera_ir::links::Link;
use tessera_ir::reference::{self, ArrayRef};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction};
use tessera_shard::links::links;

/// Bytes by device.
type Held = Vec<Vec<u8>>;

/// The outputs of a graph whose nodes lie as `known` says, with partial values put together at
/// the end.
///
/// # Errors
/// Where a device would need what another one holds, and where copies differ.
pub fn outputs(g: &Graph, known: &[Sharding], inputs: &[Vec<u8>], random: &mut Random) -> Result<Vec<Vec<u8>>, String> {
    let mut values: Vec<Held> = vec![];
    for id in g.ids() {
        let node = g.node(id);
        let made = match &node.prim {
            Prim::Input(n) => divided(&node.ty, &known[id.0 as usize], &inputs[*n as usize], random)?,
            _ => computed(g, id, known, &values).map_err(|e| format!("{id}: {e}"))?,
        };
        values.push(made);
    }
    let one = |&o: &NodeId| {
        let (ty, layout) = (g.ty(o), &known[o.0 as usize]);
        let axes: Vec<&str> = layout.partial.iter().map(|p| p.1.as_str()).collect();
        let whole = completed(ty, layout, &axes, &values[o.0 as usize])?;
        together(layout, ty, &whole.iter().collect::<Vec<_>>()).map_err(|e| format!("{o}: {e}"))
    };
    g.outputs.iter().map(one).collect()
}

fn devices(layout: &Sharding) -> u64 {
    layout.mesh.as_ref().map_or(1, |m| m.devices())
}

/// Where a device is along some axes.
fn mesh_coordinates(layout: &Sharding, axes: &[&str], device: u64) -> Vec<u64> {
    let mesh = layout.mesh.as_ref();
    axes.iter().map(|axis| mesh.map_or(0, |m| m.coordinate(device, axis))).collect()
}

fn apply(op: MapOp, ty: &NodeType, a: &[u8], b: &[u8]) -> Result<Vec<u8>, String> {
    // Sums of complex numbers are those of their parts.
    let dtype =
        if ty.dtype.is_complex() && op != MapOp::maximum && op != MapOp::minimum { DType::F32 } else { ty.dtype };
    let shape = [(a.len() / dtype.bytes()) as u64];
    let operands = [a, b].map(|bytes| ArrayRef { dtype, shape: &shape, bytes });
    reference::eval(&Prim::Map(op), &operands, dtype, &shape).map_err(|e| e.message)
}

/// An input as the devices hold it: its blocks, and of a partial value random summands (or what
/// does not exceed it) that combine to it.
fn divided(ty: &NodeType, layout: &Sharding, bytes: &[u8], random: &mut Random) -> Result<Held, String> {
    let axes: Vec<&str> = layout.partial.iter().map(|p| p.1.as_str()).collect();
    let mut places: Vec<Vec<u64>> = (0..devices(layout)).map(|d| mesh_coordinates(layout, &axes, d)).collect();
    places.sort();
    places.dedup();
    let own = random.below(places.len());
    let mut parts: BTreeMap<Vec<u64>, Vec<u8>> = BTreeMap::new();
    let mut rest = bytes.to_vec();
    let mut noise = || random.elements(ty.dtype, elems(&ty.shape), Fill::Small);
    for place in places.iter().enumerate().filter(|(i, _)| *i != own).map(|p| p.1) {
        let part = match layout.partial.first().map(|p| p.0) {
            Some(Monoid::Max) => apply(MapOp::minimum, ty, bytes, &noise()),
            Some(Monoid::Min) => apply(MapOp::maximum, ty, bytes, &noise()),
            _ => {
                let part = noise();
                rest = apply(MapOp::sub, ty, &rest, &part)?;
                Ok(part)
            }
        };
        parts.insert(place.clone(), part?);
    }
    parts.insert(places[own].clone(), rest);
    let part =
        |d| cut(&parts[&mesh_coordinates(layout, &axes, d)], &ty.shape, &layout.block(&ty.shape, d), ty.dtype.bytes());
    Ok((0..devices(layout)).map(part).collect())
}

/// A value that is no longer partial over these axes.
fn completed(ty: &NodeType, layout: &Sharding, axes: &[&str], held: &Held) -> Result<Held, String> {
    let mut held = held.clone();
    for axis in axes {
        let names = layout.mesh.as_ref().map_or(vec![], |m| m.names());
        let others: Vec<&str> = names.into_iter().filter(|a| a != axis).collect();
        let op = match layout.partial_over(axis) {
            Some(Monoid::Max) => MapOp::maximum,
            Some(Monoid::Min) => MapOp::minimum,
            _ => MapOp::add,
        };
        let one = |d: u64| {
            let group = (0..held.len() as u64)
                .filter(|e| mesh_coordinates(layout, &others, *e) == mesh_coordinates(layout, &others, d));
            let mut bytes = group.map(|e| &held[e as usize]);
            let first = bytes.next().cloned().unwrap_or_default();
            bytes.try_fold(first, |all, part| apply(op, ty, &all, part))
        };
        held = (0..held.len() as u64).map(one).collect::<Result<_, _>>()?;
    }
    Ok(held)
}

/// A value of which every device has all along these axes.
fn joined(ty: &NodeType, layout: &Sharding, axes: &[String], held: &Held) -> Result<(Held, Sharding), String> {
    let dims = layout.dims.iter().map(|d| d.iter().filter(|a| !axes.contains(a)).cloned().collect()).collect();
    let after = Sharding { dims, ..layout.clone() };
    let names = layout.mesh.as_ref().map_or(vec![], |m| m.names());
    let others: Vec<&str> = names.into_iter().filter(|a| !axes.iter().any(|b| b == a)).collect();
    let size = ty.dtype.bytes();
    let mut out = vec![];
    for d in 0..held.len() as u64 {
        let own = after.block(&ty.shape, d);
        let shape: Vec<u64> = own.iter().map(|r| r.end - r.start).collect();
        let mut bytes = vec![0; elems(&shape) * size];
        for e in (0..held.len() as u64)
            .filter(|e| mesh_coordinates(layout, &others, *e) == mesh_coordinates(layout, &others, d))
        {
            let part: Vec<Range<u64>> = layout.block(&ty.shape, e);
            if part.iter().any(|p| p.start >= p.end) {
                continue;
            }
            let at: Vec<Range<u64>> = part.iter().zip(&own).map(|(p, o)| p.start - o.start..p.end - o.start).collect();
            paste(&mut bytes, &shape, &at, size, &held[e as usize], |_| {});
        }
        out.push(bytes);
    }
    Ok((out, after))
}

/// What the devices make of a node from their parts of its operands. Dims along which an operator gets
/// positions of other devices are put together, and the result is cut.
fn computed(g: &Graph, id: NodeId, known: &[Sharding], values: &[Held]) -> Result<Held, String> {
    let (node, result) = (g.node(id), &known[id.0 as usize]);
    let links = links(g, node);
    let reached = |link: &Link| if let Link::Reach(to, _) | Link::Along(to) = link { Some(*to) } else { None };
    let far: BTreeSet<usize> = links.iter().flatten().filter_map(reached).collect();
    let axes: Vec<String> = far.iter().flat_map(|d| result.axes(*d).to_vec()).collect();
    if !axes.is_empty() {
        let (mut known, mut values) = (known.to_vec(), values.to_vec());
        for &o in &node.operands {
            let o = o.0 as usize;
            (values[o], known[o]) = joined(g.ty(NodeId(o as u32)), &known[o], &axes, &values[o])?;
        }
        let dims = result.dims.iter().map(|d| d.iter().filter(|a| !axes.contains(a)).cloned().collect()).collect();
        let whole = Sharding { dims, ..result.clone() };
        known[id.0 as usize] = whole.clone();
        let made = of_parts(g, id, &known, &values)?;
        let cut_out = |(d, bytes): (usize, &Vec<u8>)| {
            let (own, part) = (whole.block(&node.ty.shape, d as u64), result.block(&node.ty.shape, d as u64));
            let shape: Vec<u64> = own.iter().map(|r| r.end - r.start).collect();
            let at: Vec<Range<u64>> = part
                .iter()
                .zip(&own)
                .map(|(p, o)| if p.start >= p.end { 0..0 } else { p.start - o.start..p.end - o.start })
                .collect();
            cut(bytes, &shape, &at, node.ty.dtype.bytes())
        };
        return Ok(made.iter().enumerate().map(cut_out).collect());
    }
    of_parts(g, id, known, values)
}

fn of_parts(g: &Graph, id: NodeId, known: &[Sharding], values: &[Held]) -> Result<Held, String> {
    let (node, result) = (g.node(id), &known[id.0 as usize]);
    let links = links(g, node);
    let mut out = vec![];
    for d in 0..devices(result) {
        let mut operands = vec![];
        for i in 0..node.operands.len() {
            operands
                .push(operand(g, node, result, &links, i, d, known, values).map_err(|e| format!("operand {i}: {e}"))?);
        }
        let arrays: Vec<ArrayRef> = operands
            .iter()
            .zip(&node.operands)
            .map(|((shape, bytes), &o)| ArrayRef { dtype: g.ty(o).dtype, shape, bytes })
            .collect();
        let shape: Vec<u64> = result.block(&node.ty.shape, d).iter().map(|r| r.end - r.start).collect();
        let prim = match &node.prim {
            Prim::DynamicSlice { .. } => Prim::DynamicSlice { sizes: shape.clone() },
            prim => prim.clone(),
        };
        let sums = interpret::summation(node.policy);
        out.push(reference::eval_summing(&prim, &arrays, node.ty.dtype, &shape, sums).map_err(|e| e.message)?);
    }
    Ok(out)
}

/// A device's part of an operand, as the computation takes it.
#[allow(clippy::too_many_arguments, reason = "the state of one computation")]
fn operand(
    g: &Graph,
    node: &Node,
    result: &Sharding,
    links: &[Vec<Link>],
    i: usize,
    device: u64,
    known: &[Sharding],
    values: &[Held],
) -> Result<(Vec<u64>, Vec<u8>), String> {
    let layout = |i: usize| &known[node.operands[i].0 as usize];
    let (ty, own) = (g.ty(node.operands[i]), layout(i));
    let split = |axis: &str| (0..node.operands.len()).any(|j| layout(j).dim_of(axis).is_some());
    // Partial values are kept or put together.
    let ends = |p: &&(Monoid, String)| result.partial_over(&p.1) != Some(p.0) || split(&p.1);
    let ending: Vec<&str> = own.partial.iter().filter(ends).map(|p| p.1.as_str()).collect();
    let stated = |axis: &&&str| {
        inputs_of(g, node.operands[i]).iter().any(|&n| g.inputs[n].ty.sharding.partial_over(axis).is_some())
    };
    if let Some(axis) = ending.iter().find(stated) {
        return Err(format!("a value that the program states to be partial over {axis} is completed unasked"));
    }
    let mut held = completed(ty, own, &ending, &values[node.operands[i].0 as usize])?;
    let mut has = own.block(&ty.shape, device);
    let gathers =
        |link: &Link| matches!(link, Link::Few | Link::Reduce(Reduction::Prod | Reduction::Any | Reduction::All));
    if links[i].iter().enumerate().any(|(d, link)| gathers(link) && !own.axes(d).is_empty()) {
        // These have no partial values: their operands are put together inside.
        let whole = together(own, ty, &held.iter().collect::<Vec<_>>())?;
        held = vec![whole; held.len()];
        has = ty.shape.iter().map(|&n| 0..n).collect();
    }
    let mut wants: Vec<Range<u64>> = vec![];
    for (d, link) in links[i].iter().enumerate() {
        let n = ty.shape[d];
        wants.push(match link {
            Link::Pass(to) | Link::Blocks(to) => {
                let like =
                    Sharding { dims: vec![result.axes(*to).to_vec()], partial: vec![], mesh: result.mesh.clone() };
                like.block(&[n], device).remove(0)
            }
            Link::Reduce(_) if matches!(node.prim, Prim::Dot { .. }) => {
                // Both factors take the steps that both have.
                let steps = |j: usize| {
                    let dim = links[j].iter().position(|l| matches!(l, Link::Reduce(_))).unwrap_or(0);
                    layout(j).block(&g.ty(node.operands[j]).shape, device).swap_remove(dim)
                };
                let (a, b) = (steps(0), steps(1));
                a.start.max(b.start)..a.end.min(b.end).max(a.start.max(b.start))
            }
            Link::Reduce(_) | Link::Indexed => has[d].clone(),
            Link::Whole | Link::Few | Link::Reach(..) | Link::Along(_) => 0..n,
        });
    }
    if wants.iter().zip(&has).any(|(w, h)| w.start < w.end && (w.start < h.start || h.end < w.end)) {
        return Err(format!("device {device} holds {has:?} and needs {wants:?}"));
    }
    let local: Vec<u64> = has.iter().map(|h| h.end - h.start).collect();
    let inside: Vec<Range<u64>> =
        wants.iter().zip(&has).map(|(w, h)| w.start.saturating_sub(h.start)..w.end.saturating_sub(h.start)).collect();
    let bytes = cut(&held[device as usize], &local, &inside, ty.dtype.bytes());
    let mut shape: Vec<u64> = wants.iter().map(|w| w.end - w.start).collect();
    if !links[i].contains(&Link::Indexed) {
        return Ok((shape, bytes));
    }
    // Positions outside of the own block give zeros.
    let indexed = |d: usize| links[i][d] == Link::Indexed;
    let at: Vec<Range<u64>> =
        (0..shape.len()).map(|d| if indexed(d) { wants[d].clone() } else { 0..shape[d] }).collect();
    (0..shape.len()).filter(|d| indexed(*d)).for_each(|d| shape[d] = ty.shape[d]);
    let mut padded = vec![0; elems(&shape) * ty.dtype.bytes()];
    paste(&mut padded, &shape, &at, ty.dtype.bytes(), &bytes, |_| {});
    Ok((shape, padded))
}

/// The inputs that a node is computed from.
fn inputs_of(g: &Graph, id: NodeId) -> BTreeSet<usize> {
    match &g.node(id).prim {
        Prim::Input(n) => BTreeSet::from([*n as usize]),
        _ => g.node(id).operands.iter().flat_map(|&o| inputs_of(g, o)).collect(),
    }
}

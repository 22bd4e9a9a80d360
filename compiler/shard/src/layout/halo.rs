//! Views over split dims, made where they are read.

use super::{Materialization, NodeLayout};
use crate::links::{before_reshape, links, needed};
use crate::placement::{Parts, Placement, parts};
use std::ops::Range;
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::links::{Link, Reach};
use tessera_ops::prim::Prim;

/// Makes every view where it is read; the outputs are wanted in these layouts.
pub fn materialize_views(g: &Graph, mesh: &Arc<Mesh>, placed: &mut [NodeLayout], outputs: &[Sharding]) {
    let mut wanted: Vec<Vec<Placement>> = vec![vec![]; g.nodes.len()];
    let want = |wanted: &mut Vec<Vec<Placement>>, id: NodeId, place: Placement| {
        let all = &mut wanted[id.0 as usize];
        if !all.contains(&place) {
            all.push(place);
        }
    };
    g.outputs.iter().zip(outputs).for_each(|(&o, layout)| want(&mut wanted, o, layout.clone().into()));
    for id in g.ids().collect::<Vec<_>>().into_iter().rev() {
        let node = g.node(id);
        if is_view(g, node, &placed[id.0 as usize].result) {
            let places = std::mem::take(&mut wanted[id.0 as usize]);
            if let (Some(own), false) = (picked_at(g, node, mesh, placed), places.is_empty()) {
                placed[id.0 as usize].made = vec![own];
            } else if !places.is_empty() {
                placed[id.0 as usize].made =
                    places.into_iter().map(|at| materialize_at(g, node, mesh, placed, at)).collect();
            }
        }
        if repeats(g, id) {
            let places = std::mem::take(&mut wanted[id.0 as usize]);
            materialize_repeated(g, id, mesh, placed, places);
        }
        for made in &placed[id.0 as usize].made {
            node.operands.iter().zip(&made.operands).for_each(|(&o, place)| want(&mut wanted, o, place.clone()));
        }
    }
}

/// Every second position of a split dim, say: each device picks those of its own block, and they are moved from there, since
/// a box of the operand has the positions between them too. `None` of other views.
fn picked_at(g: &Graph, node: &Node, mesh: &Arc<Mesh>, placed: &[NodeLayout]) -> Option<Materialization> {
    let (Prim::Slice { start, step }, &[x]) = (&node.prim, &node.operands[..]) else { return None };
    let links = links(g, node);
    let (from, own) = (&g.ty(x).shape, &placed[x.0 as usize].result);
    let between = (0..from.len()).any(|d| step[d].unsigned_abs() > 1 && !own.axes(d).is_empty());
    if !between || links[0].contains(&Link::Few) {
        return None;
    }
    let picked = |block: Vec<Range<u64>>| -> Vec<Range<u64>> {
        let one = |(d, part): (usize, &Range<u64>)| {
            Reach::Written { start: start[d], step: step[d] }.range(part, node.ty.shape[d])
        };
        block.iter().enumerate().map(one).collect()
    };
    let boxes = parts(own, from, mesh.devices()).into_iter().map(picked).collect();
    Some(materialize_at(g, node, mesh, placed, Placement::Boxes(Arc::new(boxes))))
}

/// Makes windows, or a view of them, at the places where they are wanted; those that are no boxes of the operand get it from
/// where the layout has it.
fn materialize_repeated(g: &Graph, id: NodeId, mesh: &Arc<Mesh>, placed: &mut [NodeLayout], places: Vec<Placement>) {
    let node = g.node(id);
    let Some(own) = placed[id.0 as usize].made.first().cloned() else { return };
    let mut made = vec![];
    let mut kept = places.is_empty();
    for at in places {
        match (at != own.at).then(|| repeated_at(g, node, mesh, placed, at)).flatten() {
            Some(other) => made.push(other),
            None => kept = true,
        }
    }
    made.extend(kept.then_some(own));
    placed[id.0 as usize].made = made;
}

/// Whether a node has windows, in which elements occur several times: to move them is dearer than to move what they are of.
fn repeats(g: &Graph, id: NodeId) -> bool {
    sources(g, id) != id
}

/// What the windows are of that a node is a view of; else the node itself.
pub fn sources(g: &Graph, id: NodeId) -> NodeId {
    let mut at = id;
    loop {
        let node = g.node(at);
        match (&node.prim, node.operands.first()) {
            (Prim::Windows { .. }, Some(&x)) => return x,
            (Prim::Transpose { .. } | Prim::Reshape, Some(&x)) => at = x,
            _ => return id,
        }
    }
}

/// Windows or a view of them, made at a place; `None` where boxes of the result are none of the operand.
fn repeated_at(
    g: &Graph,
    node: &Node,
    mesh: &Arc<Mesh>,
    placed: &[NodeLayout],
    at: Placement,
) -> Option<Materialization> {
    let &x = node.operands.first()?;
    let (from, to) = (&g.ty(x).shape, &node.ty.shape);
    let results = at.parts(to, mesh.devices());
    match &node.prim {
        Prim::Reshape => {
            let of = |(device, part): (u64, &Vec<Range<u64>>)| match at.is_absent(device) {
                true => Some(nothing(from)),
                false => before_reshape(from, to, part),
            };
            let boxes: Option<Parts> = (0..).zip(&results).map(of).collect();
            Some(Materialization { at, operands: vec![Placement::Boxes(Arc::new(boxes?))] })
        }
        Prim::Windows { .. } => {
            let whole = |part: &[Range<u64>]| (from.len()..to.len()).all(|d| part[d] == (0..to[d]));
            let all = (0..).zip(&results).all(|(device, part)| at.is_absent(device) || whole(part));
            all.then(|| materialize_at(g, node, mesh, placed, at))
        }
        _ => Some(materialize_at(g, node, mesh, placed, at)),
    }
}

/// Whether a node only picks and joins positions of split dims.
fn is_view(g: &Graph, node: &Node, result: &Sharding) -> bool {
    matches!(node.prim, Prim::Slice { .. } | Prim::Pad { .. } | Prim::Concat { .. }) && reaches(&links(g, node), result)
}

/// Whether a device may need positions of a split dim that are not those of its block.
pub fn reaches(links: &[Vec<Link>], result: &Sharding) -> bool {
    links.iter().flatten().any(|link| matches!(link, Link::Reach(to, _) if !result.axes(*to).is_empty()))
}

/// What a device needs that makes nothing.
fn nothing(shape: &[u64]) -> Vec<Range<u64>> {
    vec![0..0; shape.len().max(1)]
}

/// A node whose operands are needed in boxes, made at a place.
pub fn materialize_at(
    g: &Graph,
    node: &Node,
    mesh: &Arc<Mesh>,
    placed: &[NodeLayout],
    at: Placement,
) -> Materialization {
    let devices = mesh.devices();
    let results = at.parts(&node.ty.shape, devices);
    let positions = at.layout().map(Sharding::positions).unwrap_or_default();
    let one = |(&o, links): (&NodeId, &Vec<Link>)| {
        let (shape, own) = (&g.ty(o).shape, &placed[o.0 as usize].result);
        let of = |(device, result): (u64, &Vec<Range<u64>>)| match at.is_absent(device) {
            true => nothing(shape),
            false => needed(links, shape, result),
        };
        let boxes: Parts = (0..).zip(&results).map(of).collect();
        // Boxes that a layout has too are told as that layout, so that equal ones are moved once.
        let axes = |link: &Link| match (link, &at) {
            (Link::Pass(to), Placement::Layout(layout)) => layout.axes(*to).to_vec(),
            _ => vec![],
        };
        let dims = links.iter().map(axes).collect();
        let partial = positions.clone();
        let like = Sharding { mesh: Some(mesh.clone()), dims, partial }.normal(shape.len());
        let layout = [own, &like].into_iter().find(|l| parts(l, shape, devices) == boxes);
        layout.map_or_else(|| Placement::Boxes(Arc::new(boxes)), |l| l.clone().into())
    };
    let operands = node.operands.iter().zip(&links(g, node)).map(one).collect();
    Materialization { at, operands }
}

//! Which devices of a mesh have graphs that differ in positions alone, so that one graph tells
//! the memory and the work of all of them.

use crate::exchange;
use crate::layout::{Materialization, NodeLayout};
use crate::placement::{Parts, Placement};
use crate::spmd_partition::is_plain;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tessera_base::Mesh;
use tessera_ir::graph::{Graph, Node};
use tessera_ir::prim::columns::Boxes;
use tessera_ir::prim::row;
use tessera_ops::prim::Prim;

/// What each device sees of the layouts: devices with equal lists are alike.
struct Signatures {
    of: Vec<Vec<u64>>,
    seen: HashSet<(Placement, Placement, Vec<u64>)>,
    results: HashSet<(Placement, Vec<u64>)>,
}

impl Signatures {
    /// The sizes of the parts.
    fn parts(&mut self, parts: &Parts) {
        for (all, part) in self.of.iter_mut().zip(parts) {
            all.extend(part.iter().map(|r| r.end - r.start));
        }
    }

    /// Going from one place to another.
    fn moved(&mut self, from: Placement, to: Placement, shape: &[u64], mesh: &Mesh) {
        if to == from || !self.seen.insert((from.clone(), to.clone(), shape.to_vec())) {
            return;
        }
        let (held, wanted) = [from, to].map(|place| place.parts(shape, mesh.devices())).into();
        self.parts(&wanted);
        // A part of what is held may be its beginning, or not.
        if exchange::is_local(&held, &wanted) {
            for (all, (h, w)) in self.of.iter_mut().zip(held.iter().zip(&wanted)) {
                all.extend(h.iter().zip(w).map(|(h, w)| u64::from(w.start > h.start)));
            }
        }
    }

    /// All nodes of a graph and of its loops.
    fn graph(&mut self, g: &Graph, mesh: &Arc<Mesh>, placed: &[NodeLayout]) {
        for id in g.ids() {
            let (node, here) = (g.node(id), &placed[id.0 as usize]);
            for made in &here.made {
                self.made(g, node, made, mesh, placed);
            }
            let (Prim::Scan { body, .. }, Some(turn)) = (&node.prim, &here.turn) else { continue };
            let Some(body) = g.bodies.get(*body as usize) else { continue };
            self.graph(body, mesh, &turn.placed);
            for (&o, held) in body.outputs.iter().zip(&turn.outputs) {
                self.moved(turn.placed[o.0 as usize].held(), held.clone().into(), &body.ty(o).shape, mesh);
            }
        }
    }

    /// A node as it is made at one place.
    fn made(&mut self, g: &Graph, node: &Node, made: &Materialization, mesh: &Arc<Mesh>, placed: &[NodeLayout]) {
        if self.results.insert((made.at.clone(), node.ty.shape.clone())) {
            self.parts(&made.at.parts(&node.ty.shape, mesh.devices()));
        }
        for (&o, wanted) in node.operands.iter().zip(&made.operands) {
            self.moved(placed[o.0 as usize].held(), wanted.clone(), &g.ty(o).shape, mesh);
        }
        // How much of a block lies before what is padded.
        if let (Prim::Pad { .. }, [place, ..], [o, ..]) = (&node.prim, &made.operands[..], &node.operands[..]) {
            let (results, boxes) =
                (made.at.parts(&node.ty.shape, mesh.devices()), place.parts(&g.ty(*o).shape, mesh.devices()));
            for ((all, result), part) in self.of.iter_mut().zip(&results).zip(boxes) {
                let boxes = Boxes { result: &|| result.clone(), operand: &|_| part.clone() };
                let Some(Prim::Pad { low, .. }) = row(&node.prim).of_box(&boxes) else { continue };
                all.extend(low);
            }
        }
    }
}

/// The devices that are alike, by the first of each.
pub fn classes(g: &Graph, mesh: &Arc<Mesh>, placed: &[NodeLayout]) -> Vec<Vec<u64>> {
    let of = vec![vec![]; mesh.devices() as usize];
    let mut signatures = Signatures { of, seen: HashSet::new(), results: HashSet::new() };
    signatures.graph(g, mesh, placed);
    for &o in g.outputs.iter().filter(|&&o| is_plain(g, o) && !g.ty(o).shape.is_empty()) {
        signatures.moved(placed[o.0 as usize].held(), Placement::First, &g.ty(o).shape, mesh);
    }
    let mut out: BTreeMap<Vec<u64>, Vec<u64>> = BTreeMap::new();
    for (device, signature) in signatures.of.into_iter().enumerate() {
        out.entry(signature).or_default().push(device as u64);
    }
    let mut out: Vec<Vec<u64>> = out.into_values().collect();
    out.sort();
    out
}

//! Computes only the part of a value that is read, where all that reads it is one slice.
//!
//! Also called: pushing slices up, demanded elements.
//!
//! Before: `%2 = dot(%0, %1) : [512, 50000]`, `%3 = slice(%2) {start=[511, 0]} : [1, 50000]`.
//! After: `%2 = slice(%0) {start=[511, 0]} : [1, 768]`, `%3 = dot(%2, %1) : [1, 50000]`.
//!
//! What each node has to give is found from the results to the arguments: a slice asks its operand
//! for a part, and so on through operations whose elements do not depend on other parts. A node that
//! is asked for two different parts is computed in full, so nothing is computed twice. Every element
//! that is left has the bits it had.

use crate::rebuild::Rebuild;
use std::collections::BTreeMap;
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::part::Part;
use tessera_ir::prim::{Site, row};
use tessera_ops::prim::Prim;

pub fn run(old: &Graph) -> Graph {
    let wanted = wanted(old);
    let part = |id: NodeId| wanted[id.0 as usize].as_ref().filter(|p| **p != Part::all(&old.ty(id).shape));
    let dear = |id: NodeId| matches!(old.node(id).prim, Prim::Dot { .. } | Prim::Reduce { .. });
    // Elements alone cost nothing where they are not read: kernels compute what is stored.
    if !old.ids().any(|id| dear(id) && part(id).is_some()) {
        return old.clone();
    }
    let mut narrow = Narrow { old, wanted: &wanted, new: Rebuild::new(old), cut: BTreeMap::new() };
    for id in old.ids() {
        let target = narrow.node(id);
        narrow.new.set(id, target);
    }
    narrow.new.finish(old)
}

/// The part of each node that is read; `None` where nothing is.
fn wanted(g: &Graph) -> Vec<Option<Part>> {
    let mut wanted: Vec<Option<Part>> = vec![None; g.nodes.len()];
    // What an exchange gives away others read, whether or not its result is read here.
    let elsewhere = g.ids().filter(|id| row(&g.node(*id).prim).flags().kept);
    for o in g.outputs.iter().copied().chain(elsewhere) {
        wanted[o.0 as usize] = Some(Part::all(&g.ty(o).shape));
    }
    for id in g.ids().collect::<Vec<_>>().into_iter().rev() {
        let Some(part) = wanted[id.0 as usize].clone() else { continue };
        let all = Part::all(&g.ty(id).shape);
        let asked = asks(g, id, &part).unwrap_or_else(|| {
            wanted[id.0 as usize] = Some(all.clone());
            asks(g, id, &all).unwrap_or_default()
        });
        for (n, o) in g.node(id).operands.iter().enumerate() {
            let all = || Part::all(&g.ty(*o).shape);
            let part = asked.get(n).cloned().unwrap_or_else(all);
            let place = &mut wanted[o.0 as usize];
            *place = Some(if place.as_ref().is_none_or(|p| *p == part) { part } else { all() });
        }
    }
    wanted
}

/// The parts of the operands that a part of a node is computed from, all of those that are not named;
/// `None` where the node has to be computed in full.
fn asks(g: &Graph, id: NodeId, part: &Part) -> Option<Vec<Part>> {
    let node = g.node(id);
    let all = *part == Part::all(&node.ty.shape);
    match &node.prim {
        Prim::Slice { .. } => row(&node.prim).asks(Site { g, node }, part),
        _ if all => Some(vec![]),
        _ if part.is_empty() => None,
        prim => row(prim).asks(Site { g, node }, part),
    }
}

/// The new graph under construction.
struct Narrow<'g> {
    old: &'g Graph,
    wanted: &'g [Option<Part>],
    new: Rebuild,
    /// Slices of nodes that are computed in full.
    cut: BTreeMap<(NodeId, Part), NodeId>,
}

impl Narrow<'_> {
    /// A node that gives what is wanted of it.
    fn node(&mut self, id: NodeId) -> NodeId {
        let (old, all) = (self.old.node(id), Part::all(&self.old.ty(id).shape));
        let part = self.wanted[id.0 as usize].clone().unwrap_or(all);
        let asked = asks(self.old, id, &part).unwrap_or_default();
        if let (Prim::Slice { .. }, Some(from)) = (&old.prim, asked.first()) {
            return self.part_of(old.operands[0], from, old);
        }
        let mut node = old.clone();
        for (n, o) in node.operands.iter_mut().enumerate() {
            *o = match asked.get(n) {
                Some(from) => self.part_of(*o, from, old),
                None => self.new.map[o.0 as usize].unwrap_or(*o),
            };
        }
        node.ty.shape = part.sizes();
        self.new.graph.push(node)
    }

    /// A part of an old node: all that is computed of it, or a slice of that.
    fn part_of(&mut self, id: NodeId, part: &Part, user: &Node) -> NodeId {
        let whole = self.new.map[id.0 as usize].unwrap_or(id);
        if self.wanted[id.0 as usize].as_ref() == Some(part) {
            return whole;
        }
        if let Some(known) = self.cut.get(&(id, part.clone())) {
            return *known;
        }
        let (start, step) = part.start_and_step();
        let mut node = Node { prim: Prim::Slice { start, step }, operands: vec![whole], ..user.clone() };
        node.ty = self.old.ty(id).clone();
        node.ty.shape = part.sizes();
        let slice = self.new.graph.push(node);
        self.cut.insert((id, part.clone()), slice);
        slice
    }
}

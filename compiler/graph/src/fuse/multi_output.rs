//! Kernels with several results: one that reads what another gives, element by element, or what
//! another reads, becomes one with it. A value that all need is then read once, or never written.
//!
//! An update of Adam is an example: both moments and the parameter are computed behind the product that
//! gives the gradient, which does not reach memory.

use super::{Fuser, MEMBERS_MAX, Role};
use std::collections::{BTreeMap, BTreeSet};
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::{Group, GroupKind};
use tessera_ir::prim::row;
use tessera_ops::prim::Prim;

/// Tensors that one kernel reads and writes, at most: more streams than the processor follows.
const TENSORS_MAX: usize = 16;

/// Groups in running order; those that joined another leave their place empty.
struct Line {
    slots: Vec<Option<Group>>,
}

impl Fuser<'_> {
    /// Joins what can be joined; the groups come in running order and stay so.
    pub(super) fn joined(&self, groups: Vec<Group>) -> Vec<Group> {
        let mut line = Line { slots: groups.into_iter().map(Some).collect() };
        // Where each value is made, and where it was read last.
        let (mut maker, mut reader) = (BTreeMap::new(), BTreeMap::new());
        for at in 0..line.slots.len() {
            let Some(group) = line.slots[at].clone() else { continue };
            let mut place = at;
            let candidates = group.inputs.iter().flat_map(|i| [maker.get(i), reader.get(i)]).flatten().copied();
            let mut candidates: Vec<usize> = candidates.collect();
            candidates.sort();
            candidates.dedup();
            // The nearest first: it is the last of what the group depends on.
            for with in candidates.into_iter().rev() {
                place = self.join(&mut line, with, place).unwrap_or(place);
            }
            if let Some(group) = &line.slots[place] {
                maker.extend(group.roots.iter().map(|r| (*r, place)));
                reader.extend(group.inputs.iter().filter(|i| self.is_alike(**i, group)).map(|i| (*i, place)));
            }
        }
        let mut out: Vec<Group> = line.slots.into_iter().flatten().collect();
        self.drop_unread(&mut out);
        out
    }

    /// Whether a tensor has as many elements as a group's results.
    fn is_alike(&self, id: NodeId, group: &Group) -> bool {
        self.g.ty(id).elems() == self.g.ty(group.roots[0]).elems()
    }

    /// Joins the group at `second` with one before it; gives the place of both.
    fn join(&self, line: &mut Line, first: usize, second: usize) -> Option<usize> {
        if first >= second {
            return None;
        }
        let (a, b) = (line.slots.get(first)?.as_ref()?, line.slots.get(second)?.as_ref()?);
        if !self.fit(a, b) {
            return None;
        }
        let between = || line.slots[first + 1..second].iter().flatten();
        let needed: Vec<NodeId> = b.inputs.iter().map(|i| self.made_as(*i)).collect();
        let place = if !between().any(|g| g.roots.iter().any(|r| needed.contains(r))) {
            first
        } else if !between().any(|g| g.inputs.iter().any(|i| a.roots.contains(i))) {
            second
        } else {
            return None;
        };
        let both = self.both(a, b);
        (line.slots[first], line.slots[second]) = (None, None);
        line.slots[place] = Some(both);
        Some(place)
    }

    /// The root that gives a value: a result of a loop comes from the loop.
    fn made_as(&self, id: NodeId) -> NodeId {
        match self.g.node(id).prim {
            Prim::Get { .. } => self.g.node(id).operands[0],
            _ => id,
        }
    }

    /// Whether two groups, in this order, can be one kernel.
    fn fit(&self, a: &Group, b: &Group) -> bool {
        let shape = &self.g.ty(a.roots[0]).shape;
        let (first, second) = (self.g.node(a.roots[0]), self.g.node(b.roots[0]));
        let given: Vec<NodeId> = a.roots.iter().copied().filter(|r| b.inputs.contains(r)).collect();
        let shares = |i: &NodeId| b.inputs.contains(i) && self.is_alike(*i, b);
        let related = !given.is_empty() || a.kind == GroupKind::Loop && a.inputs.iter().any(shares);
        let kinds = b.kind == GroupKind::Loop && matches!(a.kind, GroupKind::Loop | GroupKind::Dot);
        related
            && kinds
            && self.may_run_with(b, a)
            && first.policy == second.policy
            && a.roots.iter().chain(&b.roots).all(|r| self.g.ty(*r).shape == *shape)
            && a.members.len() + b.members.len() <= MEMBERS_MAX
            && a.inputs.len() + b.inputs.len() + a.roots.len() + b.roots.len() <= TENSORS_MAX
            && a.members.iter().chain(&b.members).all(|m| self.may_move(*m))
            && self.is_pointwise(b, false)
            && (a.kind == GroupKind::Dot || self.is_pointwise(a, true))
            && given.iter().all(|r| b.roots.iter().all(|root| reads_in_step(self.g, &b.members, *r, *root)))
    }

    /// What is computed again late, because there is no memory to keep it, stays late.
    fn may_run_with(&self, late: &Group, early: &Group) -> bool {
        let numbers =
            |g: &Group| -> BTreeSet<u32> { g.members.iter().filter_map(|m| self.g.node(*m).again()).collect() };
        numbers(late).is_subset(&numbers(early))
    }

    /// Nothing asked for a kernel of its own, or for directives.
    fn may_move(&self, id: NodeId) -> bool {
        let n = self.g.node(id);
        n.origin.kernel.is_none()
            && self.role(id) != Role::Update
            && !n.ty.dtype.is_complex()
            && !self.split.contains(&id)
    }

    /// Whether each result element is made of elements at its own place, besides what is
    /// repeated, or also of reductions of its row.
    fn is_pointwise(&self, group: &Group, rows: bool) -> bool {
        let shape = &self.g.ty(group.roots[0]).shape;
        group.members.iter().all(|&m| match (self.role(m), &self.g.node(m).prim) {
            (Role::Element, prim) => row(prim).flags().step,
            (Role::View, _) => true,
            (Role::Reduce, _) => rows && self.g.ty(self.g.node(m).operands[0]).shape == *shape,
            _ => false,
        })
    }

    fn both(&self, a: &Group, b: &Group) -> Group {
        let union = |x: &[NodeId], y: &[NodeId], made: &[NodeId]| {
            let mut out = x.to_vec();
            out.extend(y.iter().filter(|i| !x.contains(i) && !made.contains(i)));
            out
        };
        let mut members = union(&a.members, &b.members, &[]);
        members.sort();
        Group {
            kind: a.kind,
            members,
            inputs: union(&a.inputs, &b.inputs, &a.roots),
            scalars: union(&a.scalars, &b.scalars, &[]),
            roots: union(&a.roots, &b.roots, &[]),
        }
    }

    /// Results that only their own kernel needs do not leave it.
    fn drop_unread(&self, groups: &mut [Group]) {
        let read: BTreeSet<NodeId> =
            groups.iter().flat_map(|g| g.inputs.iter().copied()).chain(self.g.outputs.iter().copied()).collect();
        for group in groups.iter_mut().filter(|g| g.roots.len() > 1 && g.kind != GroupKind::Attention) {
            group.roots.retain(|r| read.contains(r) || matches!(self.role(*r), Role::Alone | Role::Part));
        }
    }
}

/// Every path from the root to the input is elementwise.
pub(crate) fn reads_in_step(g: &Graph, members: &[NodeId], input: NodeId, root: NodeId) -> bool {
    let shape = &g.ty(root).shape;
    members.iter().all(|&m| {
        let n = g.node(m);
        !n.operands.contains(&input) || (row(&n.prim).flags().step && &n.ty.shape == shape)
    }) && members.iter().all(|&m| {
        // No member moves elements that come from the input.
        row(&g.node(m).prim).flags().step || !g.node(m).operands.iter().any(|&o| comes_from(g, members, o, input))
    })
}

fn comes_from(g: &Graph, members: &[NodeId], id: NodeId, input: NodeId) -> bool {
    id == input
        || (members.binary_search(&id).is_ok() && g.node(id).operands.iter().any(|&o| comes_from(g, members, o, input)))
}

#[cfg(test)]
mod tests {
    use crate::fuse::partition;
    use tessera_ir::graph::NodeId;
    use tessera_ir::graph_text::parse;

    #[test]
    fn what_a_loop_gives_is_read_behind_the_loop() {
        let g = parse(
            r#""tessera.graph"() ({
               %0 = "tessera.graph.input"() {index=0} : Tensor[6, f32]
               %1 = "tessera.graph.exp"(%0) : Tensor[6, f32]
               %2 = "tessera.graph.scan"(%1) {carry=1, sequences=0, trips=1} ({
                 "tessera.graph"() ({
                   %0 = "tessera.graph.input"() {index=0} : Tensor[6, f32]
                   "tessera.graph.return"(%0)
                 })
               }) : Tensor[6, f32]
               %3 = "tessera.graph.get"(%2) {index=0} : Tensor[6, f32]
               %4 = "tessera.graph.sub"(%0, %3) : Tensor[6, f32]
               "tessera.graph.return"(%4)
            })"#,
        )
        .unwrap_or_else(|e| panic!("{e:?}"));
        let groups = partition(&g, &Default::default()).groups;
        let at = |id: u32| groups.iter().position(|p| p.roots.contains(&NodeId(id)));
        assert!(at(1) < at(2) && at(2) < at(4), "{groups:?}");
    }
}

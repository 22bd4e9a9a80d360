//! Two products with reductions of rows between them: `softmax(q @ k.T + mask) @ v`.
//!
//! The rows of the first product are reduced, changed element by element and contracted again.
//! One kernel computes a few of them at a time, so that they never reach memory. Everything is
//! recognised by what it does, not by how it came about: any elementwise steps, masks, biases,
//! norms instead of softmax.

use super::positions::of_positions;
use super::{Fuser, MEMBERS_MAX, Role};
use std::collections::BTreeSet;
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ir::prim::row;
use tessera_ops::prim::{Order, Prim, Steps};

/// Positions of a row at most: a register tile of rows is kept.
const KEYS_MAX: u64 = 1 << 18;
/// Steps of the first product and columns of the second at most: neither is divided.
const FEATURES_MAX: u64 = 1024;

/// What a node is for the pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    /// Of the shape of the result.
    Columns,
    /// Of the shape of the strip.
    Rows,
    /// One element for each row.
    PerRow,
    /// What is repeated over the strip, as the mask of all heads is.
    Repeated,
    /// What is read as an operand: views and cheap steps.
    Operand,
}

#[derive(Default)]
struct Found {
    members: BTreeSet<NodeId>,
    first: Option<NodeId>,
    second: Option<NodeId>,
    reduces: bool,
}

impl Fuser<'_> {
    /// Lets every strip reach memory, whatever reads it: else a view of its result would take
    /// the last steps away, and with them a need for the sums of its rows.
    pub(super) fn find_attention(&mut self) {
        for id in self.g.ids().filter(|id| self.role(*id) == Role::Dot).collect::<Vec<_>>() {
            let Some(root) = self.strip_root(id) else { continue };
            self.stored.insert(root);
            let rows =
                self.attention_members(root).map(|members| self.values_of_rows(root, &members)).unwrap_or_default();
            self.stored.extend(&rows);
            self.row_values.extend(rows.into_iter().map(|id| (id, root)));
        }
    }

    /// The last of the elementwise steps after a product that a strip which ends in it can hold.
    fn strip_root(&self, second: NodeId) -> Option<NodeId> {
        let (mut at, mut best) = (second, None);
        loop {
            if self.attention_members(at).is_some() {
                best = Some(at);
            }
            let next = match self.readers[at.0 as usize][..] {
                [next] if !self.stored.contains(&at) => next,
                _ => return best,
            };
            let steps = row(&self.g.node(next).prim).flags().step;
            if !steps || self.g.ty(next).shape != self.g.ty(second).shape {
                return best;
            }
            at = next;
        }
    }

    /// The members of such a group with this root.
    pub(super) fn attention_members(&self, root: NodeId) -> Option<BTreeSet<NodeId>> {
        let mut found = Found::default();
        let mut later = vec![];
        let mut todo = vec![(root, Space::Columns)];
        while let Some((id, space)) = todo.pop() {
            // What a row is, only the second product tells.
            if matches!(space, Space::Rows | Space::PerRow) && found.second.is_none() {
                later.push((id, space));
            } else {
                self.strip_member(&mut found, root, id, space, &mut todo)?;
            }
            if todo.is_empty() && found.second.is_some() {
                todo.append(&mut later);
            }
        }
        self.is_sound(&found, root).then_some(found.members)
    }

    /// Takes a node in and goes on with its operands; `None` where the pattern does not hold.
    fn strip_member(
        &self,
        found: &mut Found,
        root: NodeId,
        id: NodeId,
        space: Space,
        todo: &mut Vec<(NodeId, Space)>,
    ) -> Option<()> {
        let n = self.g.node(id);
        let kept = self.stored.contains(&id) && self.row_values.get(&id) != Some(&root);
        if id != root && (kept || self.role(id) == Role::Source) || !self.fits(found, root, id, space) {
            return Some(());
        }
        let seen = !found.members.insert(id);
        if seen {
            return Some(());
        }
        let all = |space: Space| n.operands.iter().map(move |&o| (o, space));
        match (&n.prim, space) {
            (Prim::Dot { .. }, Space::Columns | Space::Rows) => {
                let slot = if space == Space::Columns { &mut found.second } else { &mut found.first };
                if slot.replace(id).is_some() {
                    return None;
                }
                let left = if space == Space::Columns { Space::Rows } else { Space::Operand };
                todo.extend([(n.operands[0], left), (n.operands[1], Space::Operand)]);
            }
            (prim, _) if row(prim).flags().step => todo.extend(all(space)),
            (Prim::Broadcast { .. }, Space::Columns | Space::Rows) if self.is_of_rows(id) => {
                todo.extend(all(Space::PerRow))
            }
            (Prim::Broadcast { .. } | Prim::Reshape, Space::PerRow) => todo.extend(all(Space::PerRow)),
            (Prim::Broadcast { .. }, Space::Rows) | (_, Space::Repeated) => todo.extend(all(Space::Repeated)),
            (Prim::Reduce { .. }, Space::PerRow) => {
                found.reduces = true;
                todo.extend(all(Space::Rows));
            }
            _ => todo.extend(all(Space::Operand)),
        }
        Some(())
    }

    /// Whether a node can be a member in this space; else it is an input.
    fn fits(&self, found: &Found, root: NodeId, id: NodeId, space: Space) -> bool {
        let n = self.g.node(id);
        let strip = found.second.map(|s| &self.g.ty(self.g.node(s).operands[0]).shape);
        match (self.role(id), space) {
            (Role::View, _) => true,
            (Role::Element, Space::Operand) => self.is_cheap(id),
            (Role::Element, Space::Repeated) => self.is_cheap(id) || self.is_of_positions(id),
            (Role::Element, _) if !row(&n.prim).flags().step => false,
            (Role::Element | Role::Dot, Space::Columns) => n.ty.shape == self.g.ty(root).shape,
            (Role::Element | Role::Dot, Space::Rows) => Some(&n.ty.shape) == strip,
            (Role::Element, Space::PerRow) => true,
            (Role::Reduce, Space::PerRow) => {
                let Prim::Reduce { axes, .. } = &n.prim else { return false };
                let of = &self.g.ty(n.operands[0]).shape;
                Some(of) == strip && axes[..] == [of.len() - 1]
            }
            _ => false,
        }
    }

    /// Whether a broadcast repeats one element along the last dim.
    fn is_of_rows(&self, id: NodeId) -> bool {
        let n = self.g.node(id);
        let Prim::Broadcast { dims } = &n.prim else { return false };
        let (from, last) = (&self.g.ty(n.operands[0]).shape, n.ty.shape.len() - 1);
        dims.iter().zip(from).all(|(d, s)| (*d != last || *s == 1) && (*s == n.ty.shape[*d] || *d == last))
    }

    fn is_of_positions(&self, id: NodeId) -> bool {
        of_positions(self.g, id, &|n| self.role(n), &|n| self.is_scalar_input(n))
    }

    /// What a strip may compute although others read it, too.
    fn is_free(&self, id: NodeId) -> bool {
        match self.role(id) {
            Role::View => true,
            Role::Element => self.is_cheap(id) || self.is_of_positions(id),
            _ => false,
        }
    }

    /// What others need of a strip besides its root: values of rows, in their order.
    pub(super) fn values_of_rows(&self, root: NodeId, members: &BTreeSet<NodeId>) -> Vec<NodeId> {
        let needed = |id: &NodeId| *id != root && !self.is_free(*id) && !self.is_read_inside(*id, root, members);
        members.iter().copied().filter(needed).collect()
    }

    /// Whether a member that others need can leave the kernel: one element for each row of the strip,
    /// read only after it.
    fn leaves(&self, id: NodeId, root: NodeId, strip: &[u64], members: &BTreeSet<NodeId>) -> bool {
        let [rows @ .., _] = strip else { return false };
        let shape = &self.g.ty(id).shape;
        let per_row = shape == rows || shape.split_last().is_some_and(|(one, lead)| *one == 1 && lead == rows);
        per_row && self.readers_outside(id, members).all(|r| r > root)
    }

    /// What reads a node elsewhere, directly or through views.
    fn readers_outside<'a>(
        &'a self,
        id: NodeId,
        members: &'a BTreeSet<NodeId>,
    ) -> Box<dyn Iterator<Item = NodeId> + 'a> {
        Box::new(self.readers[id.0 as usize].iter().flat_map(move |&r| {
            let through = self.role(r) == Role::View && !self.stored.contains(&r);
            let here = (!members.contains(&r) && !through).then_some(r);
            let further = through.then(|| self.readers_outside(r, members));
            here.into_iter().chain(further.into_iter().flatten())
        }))
    }

    /// Whether the members are a strip: two products, a reduction, nothing that others need but values
    /// of rows.
    fn is_sound(&self, found: &Found, root: NodeId) -> bool {
        let (Some(first), Some(second)) = (found.first, found.second) else { return false };
        let members = &found.members;
        let shape = |id: NodeId| &self.g.ty(id).shape;
        let operand = |id: NodeId, i: usize| self.g.node(id).operands[i];
        let (Prim::Dot { accum, steps: Steps::All, order, .. }, Prim::Dot { accum: other, steps, order: also, .. }) =
            (&self.g.node(first).prim, &self.g.node(second).prim)
        else {
            return false;
        };
        let strip = shape(first);
        let [.., s, t] = strip[..] else { return false };
        let depth = shape(operand(first, 0)).last().copied().unwrap_or(0);
        let columns = shape(second).last().copied().unwrap_or(0);
        let sizes = s >= 2
            && (2..=KEYS_MAX).contains(&t)
            && (1..=FEATURES_MAX).contains(&depth)
            && (1..=FEATURES_MAX).contains(&columns)
            && strip.iter().all(|d| *d > 0);
        // Strips are for vectors.
        let vectors = *order != Order::Atoms && *also != Order::Atoms;
        let types = vectors && accum == other && matches!(accum, DType::F32 | DType::F64) && *steps != Steps::From;
        let policy = self.g.node(root).policy;
        let inside = |id: &NodeId| {
            let free = self.is_free(*id);
            let alone = self.is_read_inside(*id, root, members);
            self.g.node(*id).policy == policy
                && (*id == root || free || alone || self.leaves(*id, root, strip, members))
        };
        found.reduces && sizes && types && members.len() <= MEMBERS_MAX && members.iter().all(inside)
    }
}

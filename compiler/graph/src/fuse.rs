//! Divides a graph into kernels.
//!
//! Also called: operator fusion, with prologues and epilogues of products.
//!
//! Walks backwards from what must reach memory (outputs, operands of nodes that run alone) and
//! takes producers in: elementwise nodes and views always when their only readers are inside,
//! cheap ones also when they are read elsewhere (they are computed twice rather than stored),
//! a reduction when the group reads it back over the rows it reduced (softmax, norms).
//! Every value is computed with the rounding that its own node states, so fusion changes no bit.

mod dims;
mod multi_output;
mod positions;
mod attention;
mod unfused;

pub(crate) use multi_output::reads_in_step;
pub use unfused::{Unfused, unfused};

use crate::loop_rows;
use dims::{dim_after, regroups};
use std::collections::{BTreeMap, BTreeSet};
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::{Group, GroupKind, Partition, Role};
use tessera_ir::prim::{Site, row, written_shape};
use tessera_ops::prim::Prim;

/// Elements of a row that a kernel may keep at hand to read it several times.
const ROW_ELEMS_MAX: u64 = 64 * 1024;
/// Positions of a row that make it worth computing something once before it.
const ROW_ELEMS_MIN: u64 = 8;
/// Members of one group: bounds compile time and registers.
const MEMBERS_MAX: usize = 192;
/// Tensors that a kernel puts together, which asks for each element whether it comes from each of them.
const JOINED_MAX: usize = 8;

struct Fuser<'a> {
    g: &'a Graph,
    roles: Vec<Role>,
    /// Readers of each node, ascending.
    readers: Vec<Vec<NodeId>>,
    /// Nodes whose value must reach memory.
    stored: BTreeSet<NodeId>,
    /// Nodes that get a kernel of their own.
    split: &'a BTreeSet<NodeId>,
    far: bool,
    /// Values of rows that leave a strip, and its root.
    row_values: BTreeMap<NodeId, NodeId>,
    /// Exchanges that go together.
    batches: BTreeMap<u32, BTreeSet<NodeId>>,
    /// By loop, the views through which it reads.
    loop_views: BTreeMap<NodeId, BTreeSet<NodeId>>,
}

/// What the code generator could not take: told after a first try.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Nodes that get a kernel of their own.
    pub split: BTreeSet<NodeId>,
    /// Nodes that run through their reference kernels.
    pub native: BTreeSet<NodeId>,
    /// Whether tensors lie where the host does not copy them: kernels put all of them together.
    pub far: bool,
}

/// The groups of a graph, in running order.
pub fn partition(g: &Graph, limits: &Limits) -> Partition {
    let role = |id: NodeId| row(&g.node(id).prim).role(Site { g, node: g.node(id) });
    let mut roles: Vec<Role> = g.ids().map(role).collect();
    for id in &limits.native {
        roles[id.0 as usize] = Role::Alone;
    }
    let joins_many = |id: &NodeId| {
        let n = g.node(*id);
        matches!(n.prim, Prim::Concat { .. }) && n.operands.len() > JOINED_MAX
    };
    for id in g.ids().filter(|id| !limits.far && joins_many(id)) {
        roles[id.0 as usize] = Role::Alone;
    }
    let mut readers = vec![vec![]; g.nodes.len()];
    for id in g.ids() {
        for o in &g.node(id).operands {
            if readers[o.0 as usize].last() != Some(&id) {
                readers[o.0 as usize].push(id);
            }
        }
    }
    let mut batches: BTreeMap<u32, BTreeSet<NodeId>> = BTreeMap::new();
    for id in g.ids() {
        if let Prim::Exchange(e) = &g.node(id).prim {
            batches.entry(e.batch).or_default().insert(id);
        }
    }
    let (stored, row_values, loop_views) = (limits.split.clone(), BTreeMap::new(), BTreeMap::new());
    let (split, far) = (&limits.split, limits.far);
    let mut f = Fuser { g, roles, readers, stored, split, far, row_values, batches, loop_views };
    f.find_stored();
    f.find_loop_views();
    f.find_attention();
    f.groups()
}

impl Fuser<'_> {
    fn role(&self, id: NodeId) -> Role {
        self.roles[id.0 as usize]
    }

    fn is_scalar_input(&self, id: NodeId) -> bool {
        match self.g.node(id).prim {
            Prim::Input(i) => self.g.inputs.get(i as usize).is_some_and(|i| i.scalar),
            _ => false,
        }
    }

    /// What must be in memory whatever the groups: outputs, and all that nodes which run alone
    /// read or write.
    fn find_stored(&mut self) {
        self.stored.extend(&self.g.outputs);
        for id in self.g.ids() {
            if matches!(self.role(id), Role::Alone | Role::Part) {
                self.stored.insert(id);
                if !matches!(self.g.node(id).prim, Prim::Scan { .. }) {
                    self.stored.extend(&self.g.node(id).operands);
                }
            }
            if matches!(self.role(id), Role::Position | Role::Update) {
                self.stored.extend(self.g.node(id).operands.first());
            }
            if matches!(self.role(id), Role::Ordered | Role::Update) {
                self.stored.insert(id);
            }
        }
    }

    /// The views through which loops read what is in memory anyway; what else they read must get there.
    fn find_loop_views(&mut self) {
        for id in self.g.ids().filter(|&id| matches!(self.g.node(id).prim, Prim::Scan { .. })) {
            let there = |n| self.stored.contains(&n) || matches!(self.role(n), Role::Source | Role::Part | Role::Alone);
            let reads = loop_rows::reads(self.g, id, &|n| there(n) && !self.is_scalar_input(n));
            self.stored.extend(reads.plain);
            self.loop_views.insert(id, reads.views);
        }
    }

    /// Makes the groups from the last stored node to the first; what a group reads from
    /// outside becomes stored in turn.
    fn groups(&mut self) -> Partition {
        let mut groups = vec![];
        let mut made = BTreeSet::new();
        for id in self.g.ids().collect::<Vec<_>>().into_iter().rev() {
            if !self.stored.contains(&id) || made.contains(&id) {
                continue;
            }
            let group = match self.role(id) {
                Role::Element | Role::Dot if let Some(members) = self.attention_members(id) => {
                    let rows = self.values_of_rows(id, &members);
                    let mut group = self.close(GroupKind::Attention, id, members);
                    group.roots.extend(rows);
                    group
                }
                Role::Source | Role::Part => continue,
                Role::Alone => self.alone(id),
                Role::Dot => self.grow(id, GroupKind::Dot),
                Role::View if self.is_plain_copy(id) => self.copy(id),
                Role::Element if self.is_copied_together(id) => self.alone(id),
                _ => self.grow(id, GroupKind::Loop),
            };
            for &input in &group.inputs {
                self.stored.insert(input);
            }
            made.extend(group.roots.iter().copied());
            groups.push(group);
        }
        groups.reverse();
        // A group runs after the groups whose roots it reads; roots ascend, and every input
        // comes before its reader, so the order by root is a topological order.
        groups.sort_by_key(|g| g.roots[0]);
        Partition { groups: self.joined(groups) }
    }

    fn is_plain_copy(&self, id: NodeId) -> bool {
        matches!(self.g.node(id).prim, Prim::Reshape) && {
            let o = self.g.node(id).operands[0];
            !self.is_scalar_input(o) && (self.stored.contains(&o) || self.role(o) == Role::Source)
        }
    }

    /// Whether a concatenation is of tensors that are all in memory: it is copies.
    fn is_copied_together(&self, id: NodeId) -> bool {
        let n = self.g.node(id);
        let there = |mut o: NodeId| {
            while self.g.node(o).prim == Prim::Reshape && !self.stored.contains(&o) {
                o = self.g.node(o).operands[0];
            }
            !self.is_scalar_input(o) && (self.stored.contains(&o) || self.role(o) == Role::Source)
        };
        !self.far && matches!(n.prim, Prim::Concat { .. }) && n.operands.iter().all(|&o| there(o))
    }

    /// The exchanges that go together with one.
    fn batch(&self, id: NodeId) -> Option<&BTreeSet<NodeId>> {
        let Prim::Exchange(e) = &self.g.node(id).prim else { return None };
        self.batches.get(&e.batch)
    }

    fn alone(&self, id: NodeId) -> Group {
        if let Some(batch) = self.batch(id) {
            let mut inputs: Vec<NodeId> = batch.iter().flat_map(|&e| self.g.node(e).operands.clone()).collect();
            inputs.sort();
            inputs.dedup();
            let (members, roots) = (batch.iter().copied().collect(), batch.iter().rev().copied().collect());
            return Group { kind: GroupKind::Native, members, inputs, scalars: vec![], roots };
        }
        if matches!(self.g.node(id).prim, Prim::Scan { .. }) {
            let mut members = self.loop_views.get(&id).cloned().unwrap_or_default();
            members.insert(id);
            return self.close(GroupKind::Native, id, members);
        }
        self.close(GroupKind::Native, id, BTreeSet::from([id]))
    }

    fn copy(&self, id: NodeId) -> Group {
        self.close(GroupKind::Copy, id, BTreeSet::from([id]))
    }

    /// Takes producers in, from the root on.
    fn grow(&mut self, root: NodeId, kind: GroupKind) -> Group {
        let mut members = BTreeSet::from([root]);
        let mut kind = kind;
        // Backwards: every reader of a node is decided before the node itself.
        for candidate in (0..root.0).rev().map(NodeId) {
            if members.len() >= MEMBERS_MAX {
                break;
            }
            let wanted = self.readers[candidate.0 as usize].iter().any(|r| members.contains(r));
            if wanted && self.may_join(candidate, root, kind, &members) {
                members.insert(candidate);
                if self.role(candidate) == Role::Dot {
                    kind = GroupKind::Dot;
                }
            }
        }
        self.close(kind, root, members)
    }

    fn may_join(&self, id: NodeId, root: NodeId, kind: GroupKind, members: &BTreeSet<NodeId>) -> bool {
        if self.g.node(id).policy != self.g.node(root).policy {
            return false;
        }
        if self.is_indexed(id, members) || self.reads_what_is_written(id, root) {
            return false;
        }
        let inside = !self.stored.contains(&id) && self.is_read_inside(id, root, members);
        match self.role(id) {
            Role::Source | Role::Alone | Role::Part | Role::Ordered | Role::Update => false,
            Role::Position => {
                inside
                    && kind == GroupKind::Loop
                    && self.reads_once(id, kind, members)
                    && !self.is_selective(root, members)
            }
            // A view of something stored is read through; a view of computed values as well,
            // which then are computed where they are read.
            Role::View => self.view_is_free(id, members) && !(kind == GroupKind::Dot && self.is_turned(id, members)),
            Role::Element => {
                let meets = || !self.transforms(members) || self.is_on_one_side(id, members) && !self.draws(id);
                (inside || self.is_cheap(id)) && self.reads_once(id, kind, members) && meets()
            }
            Role::Reduce => {
                let ordered = self.role(root) == Role::Ordered || self.writes_in_order(root);
                let one = !ordered && !self.transforms(members);
                inside && kind == GroupKind::Loop && one && self.is_row_reduction(id, root, members)
            }
            Role::Dot => {
                let straight = !self.writes_in_order(root) && self.is_epilogue(id, root, members);
                inside && kind == GroupKind::Loop && !self.transforms(members) && straight
            }
            Role::Transform => inside && kind == GroupKind::Loop && self.ends_transform(id, members),
        }
    }

    /// Whether the members alone need the node, also through views, which any group can have.
    fn is_read_inside(&self, id: NodeId, root: NodeId, members: &BTreeSet<NodeId>) -> bool {
        self.readers[id.0 as usize].iter().all(|&r| {
            let elsewhere = || self.stored.contains(&r) || !self.is_read_inside(r, root, members);
            members.contains(&r) && (r == root || self.role(r) != Role::View || !elsewhere())
        })
    }

    /// The shape that a group walks, by its root.
    fn space(&self, root: NodeId) -> &[u64] {
        written_shape(self.g, root)
    }

    /// Whether a node reads what the root writes over, which may happen in the same memory.
    fn reads_what_is_written(&self, id: NodeId, root: NodeId) -> bool {
        let base = self.g.node(root).operands.first();
        self.role(root) == Role::Update && base.is_some_and(|b| self.g.node(id).operands.contains(b))
    }

    /// Whether the root may write an element several times, so that the order counts.
    fn writes_in_order(&self, root: NodeId) -> bool {
        matches!(self.g.node(root).prim, Prim::Scatter { .. })
    }

    /// Whether a member reads the node at positions that come from data, or writes over it.
    fn is_indexed(&self, id: NodeId, members: &BTreeSet<NodeId>) -> bool {
        let at_positions = |r: NodeId| matches!(self.role(r), Role::Position | Role::Update);
        let reads = |r: &&NodeId| at_positions(**r) && self.g.node(**r).operands.first() == Some(&id);
        self.readers[id.0 as usize].iter().filter(|r| members.contains(r)).any(|r| reads(&r))
    }

    /// Whether the group may compute a producer in more or in fewer places than the producer
    /// has elements: positions are checked where they are computed, each of them.
    fn is_selective(&self, root: NodeId, members: &BTreeSet<NodeId>) -> bool {
        let selects = |m: &NodeId| row(&self.g.node(*m).prim).flags().selects;
        self.space(root).contains(&0) || members.iter().any(selects)
    }

    /// A view costs index arithmetic only, but through it values may be computed many times:
    /// a broadcast of an expensive chain is not taken into the repeated loop.
    fn view_is_free(&self, id: NodeId, members: &BTreeSet<NodeId>) -> bool {
        let n = self.g.node(id);
        match n.prim {
            Prim::Broadcast { .. } => {
                let o = n.operands[0];
                let repeated = n.ty.elems().unwrap_or(0) > self.g.ty(o).elems().unwrap_or(0);
                !repeated
                    || matches!(self.role(o), Role::Source | Role::View | Role::Reduce | Role::Element)
                    || !members.is_empty()
            }
            _ => true,
        }
    }

    /// Whether computing the node inside does not repeat it: none of its readers inside is a
    /// broadcast that multiplies elements (except over rows, before which it is computed), a
    /// dot, or overlapping windows (through which padding alone is free).
    fn reads_once(&self, id: NodeId, kind: GroupKind, members: &BTreeSet<NodeId>) -> bool {
        let elems = self.g.ty(id).elems().unwrap_or(0);
        let loops = kind == GroupKind::Loop;
        self.readers[id.0 as usize].iter().filter(|r| members.contains(r)).all(|&r| match self.g.node(r).prim {
            Prim::Broadcast { .. } => {
                self.is_cheap(id) || self.g.ty(r).elems().unwrap_or(0) <= elems || loops && self.is_row_wise(r)
            }
            Prim::Dot { .. } => self.is_cheap(id),
            _ if self.is_windowed(r, members) => self.is_cheap(id) || matches!(self.g.node(id).prim, Prim::Pad { .. }),
            // What only rearranges is read by what reads it.
            Prim::Reshape | Prim::Transpose { .. } | Prim::Slice { .. } => {
                self.is_cheap(id) || self.reads_once(r, kind, members)
            }
            _ => true,
        })
    }

    /// Whether the node, or what only rearranges it, is read through overlapping windows.
    fn is_windowed(&self, id: NodeId, members: &BTreeSet<NodeId>) -> bool {
        match self.g.node(id).prim {
            Prim::Windows { .. } => true,
            Prim::Broadcast { .. } | Prim::Reshape | Prim::Transpose { .. } | Prim::Slice { .. } | Prim::Pad { .. } => {
                self.readers[id.0 as usize].iter().any(|r| members.contains(r) && self.is_windowed(*r, members))
            }
            _ => false,
        }
    }

    /// A view that turns the last dim of what it reads away from the rows that a product reads: it would get one element at a
    /// time, each from another place. A copy goes by blocks.
    fn is_turned(&self, id: NodeId, members: &BTreeSet<NodeId>) -> bool {
        let n = self.g.node(id);
        let Prim::Transpose { perm } = &n.prim else { return false };
        let from = &self.g.ty(n.operands[0]).shape;
        let last = (0..from.len()).rfind(|&d| from[d] > 1);
        let at = perm.iter().position(|&d| Some(d) == last);
        at.is_some_and(|at| n.ty.shape[at + 1..].iter().any(|&s| s > 1) && self.is_scattered(id, at, false, members))
    }

    /// Whether a product reads neighbours along dim `at` of a node far from one another: they are in rows of windows, or of a
    /// dim that is `joined` with others behind it.
    fn is_scattered(&self, id: NodeId, at: usize, joined: bool, members: &BTreeSet<NodeId>) -> bool {
        let shape = &self.g.ty(id).shape;
        self.readers[id.0 as usize].iter().filter(|r| members.contains(r)).any(|&r| {
            let n = self.g.node(r);
            match &n.prim {
                Prim::Transpose { perm } => {
                    perm.iter().position(|&d| d == at).is_some_and(|at| self.is_scattered(r, at, joined, members))
                }
                Prim::Pad { .. } | Prim::Slice { .. } => self.is_scattered(r, at, joined, members),
                Prim::Reshape => match dim_after(shape, &n.ty.shape, at) {
                    Some((to, last)) => self.is_scattered(r, to, joined || !last, members),
                    None => false,
                },
                // The dims before an image are steps of the product.
                Prim::Windows { .. } => shape[at + 1..].iter().any(|&s| s > 1),
                Prim::Dot { .. } => {
                    let sides = [(n.operands[0], 2), (n.operands[1], 1)];
                    joined && sides.contains(&(id, shape.len() - at))
                }
                _ => false,
            }
        })
    }

    /// A broadcast of one element to each row of many: the loop over a row leaves it outside.
    fn is_row_wise(&self, id: NodeId) -> bool {
        let n = self.g.node(id);
        let Prim::Broadcast { dims } = &n.prim else { return false };
        let from = &self.g.ty(n.operands[0]).shape;
        let lead = dims.iter().zip(from).filter(|(_, s)| **s != 1).map(|(d, _)| d + 1).max().unwrap_or(0);
        let leading = dims.iter().zip(from).filter(|(_, s)| **s != 1).enumerate().all(|(i, (d, _))| {
            // The dims before are kept as well, or have one position.
            n.ty.shape[..*d].iter().filter(|s| **s != 1).count() == i
        });
        leading && n.ty.shape[lead..].iter().product::<u64>() >= ROW_ELEMS_MIN
    }

    /// A cast or one plain arithmetic step on values that exist: cheaper again than a store and
    /// a load.
    fn is_cheap(&self, id: NodeId) -> bool {
        let n = self.g.node(id);
        row(&n.prim).flags().cheap
            && n.operands.iter().all(|&o| {
                let through = self.through_views(o);
                self.role(through) == Role::Source || self.role(through) == Role::View || self.stored.contains(&through)
            })
    }

    /// The node that a chain of views reads.
    fn through_views(&self, mut id: NodeId) -> NodeId {
        while self.role(id) == Role::View {
            match self.g.node(id).operands.first() {
                Some(&o) => id = o,
                None => break,
            }
        }
        id
    }

    /// Softmax and norms: the reduced dims are the last dims of its operand, the root has its
    /// shape or one element for each row, every reader stays per row or broadcasts it back to
    /// rows, and a row is short enough to be read again from cache.
    fn is_row_reduction(&self, id: NodeId, root: NodeId, members: &BTreeSet<NodeId>) -> bool {
        let n = self.g.node(id);
        let Prim::Reduce { axes, .. } = &n.prim else { return false };
        let (source, target) = (&self.g.ty(n.operands[0]).shape[..], self.space(root));
        let lead = source.len() - axes.len();
        // A row that is written over a part of a tensor lies in even steps there if it is along one dim.
        let even = self.role(root) != Role::Update || source[lead..].iter().filter(|&&n| n > 1).count() <= 1;
        let trailing = axes.iter().all(|&a| a >= lead) && even;
        let row: u64 = source[lead..].iter().product();
        let per_row = target.get(..lead) == Some(&source[..lead]) && target[lead..].iter().all(|&s| s == 1);
        if source != target && !per_row || !trailing || axes.is_empty() || row > ROW_ELEMS_MAX || row == 0 {
            return false;
        }
        // All reductions of a group share the row.
        let agree = members.iter().all(|&m| match &self.g.node(m).prim {
            Prim::Reduce { axes: other, .. } => {
                other.len() == axes.len() && self.g.ty(self.g.node(m).operands[0]).shape == *source
            }
            _ => true,
        });
        agree && self.returns_to_rows(id, source, lead, members)
    }

    /// Whether every use of a per-row value stays per row or goes back over the row.
    fn returns_to_rows(&self, id: NodeId, target: &[u64], lead: usize, members: &BTreeSet<NodeId>) -> bool {
        self.readers[id.0 as usize].iter().filter(|r| members.contains(r)).all(|&r| {
            let n = self.g.node(r);
            match &n.prim {
                Prim::Broadcast { dims } => {
                    let kept = dims.iter().enumerate().all(|(i, &d)| i == d);
                    kept && n.ty.shape == target && self.g.ty(id).shape.iter().skip(lead).all(|&s| s == 1)
                }
                Prim::Reshape => {
                    let same_rows =
                        n.ty.shape.get(..lead) == target.get(..lead) && n.ty.shape[lead..].iter().all(|&s| s == 1);
                    same_rows && self.returns_to_rows(r, target, lead, members)
                }
                prim => {
                    let step = row(prim).flags().step && n.ty.shape.as_slice() != target;
                    step && self.returns_to_rows(r, target, lead, members)
                }
            }
        })
    }

    /// A product whose result goes through elementwise steps only, and through reshapes that
    /// split or join its dims.
    fn is_epilogue(&self, id: NodeId, root: NodeId, members: &BTreeSet<NodeId>) -> bool {
        let shape = &self.g.ty(id).shape;
        let straight = members.iter().all(|&m| {
            let n = self.g.node(m);
            match self.role(m) {
                Role::Update => m == root,
                Role::Element => row(&n.prim).flags().step,
                Role::View if n.prim == Prim::Reshape => !self.depends_on(m, id) || regroups(shape, &n.ty.shape),
                Role::View => !self.depends_on(m, id),
                _ => false,
            }
        });
        straight && regroups(shape, self.space(root))
    }

    fn transforms(&self, members: &BTreeSet<NodeId>) -> bool {
        members.iter().any(|m| self.role(*m) == Role::Transform)
    }

    /// A transform whose result goes through elementwise steps only. What else these read is computed apart from its lines:
    /// it is in memory, or cheap.
    fn ends_transform(&self, id: NodeId, members: &BTreeSet<NodeId>) -> bool {
        let shape = &self.g.ty(id).shape;
        let step = |m: &NodeId| {
            let n = self.g.node(*m);
            let in_step = row(&n.prim).flags().step || matches!(n.prim, Prim::Part { .. } | Prim::Complex);
            in_step && n.ty.shape == *shape
        };
        members.iter().all(|m| match self.depends_on(*m, id) {
            true => step(m),
            false => matches!(self.role(*m), Role::View | Role::Element),
        })
    }

    /// Whether what is before a transform and what is after it do not both compute the node, which then is cheap.
    fn is_on_one_side(&self, id: NodeId, members: &BTreeSet<NodeId>) -> bool {
        let Some(transform) = members.iter().find(|m| self.role(**m) == Role::Transform) else { return true };
        let mut readers = self.readers[id.0 as usize].iter().filter(|r| members.contains(r));
        let before = |r: &NodeId| self.depends_on(*transform, *r);
        let first = readers.next().map(before);
        self.is_cheap(id) || readers.all(|r| Some(before(r)) == first)
    }

    /// Whether random words are made on the way, which come in blocks along rows: a kernel with lines in its lanes would
    /// make most of them for nothing.
    fn draws(&self, id: NodeId) -> bool {
        let mut todo = vec![id];
        let mut seen = BTreeSet::new();
        while let Some(n) = todo.pop() {
            if matches!(self.g.node(n).prim, Prim::RandomBits) {
                return true;
            }
            if matches!(self.role(n), Role::Element | Role::View) && !self.stored.contains(&n) && seen.insert(n) {
                todo.extend(&self.g.node(n).operands);
            }
        }
        false
    }

    fn depends_on(&self, from: NodeId, on: NodeId) -> bool {
        let mut todo = vec![from];
        let mut seen = BTreeSet::new();
        while let Some(n) = todo.pop() {
            if n == on {
                return true;
            }
            if n > on && seen.insert(n) {
                todo.extend(&self.g.node(n).operands);
            }
        }
        false
    }

    /// The group of these members: what they read from outside, and nothing that nobody reads.
    fn close(&self, kind: GroupKind, root: NodeId, members: BTreeSet<NodeId>) -> Group {
        let mut needed = BTreeSet::from([root]);
        for &m in members.iter().rev() {
            if needed.contains(&m) {
                needed.extend(self.g.node(m).operands.iter().filter(|o| members.contains(o)));
            }
        }
        let members: Vec<NodeId> = needed.into_iter().collect();
        let (mut inputs, mut scalars) = (vec![], vec![]);
        for &m in &members {
            for &o in &self.g.node(m).operands {
                if members.binary_search(&o).is_ok() {
                    continue;
                }
                let list = if self.is_scalar_input(o) && kind != GroupKind::Native && kind != GroupKind::Copy {
                    &mut scalars
                } else {
                    &mut inputs
                };
                if !list.contains(&o) {
                    list.push(o);
                }
            }
        }
        Group { kind, members, inputs, scalars, roots: vec![root] }
    }
}

//! Why two kernels are two, in words: what keeps a value that one kernel leaves and another reads from being computed
//! inside the other.

use super::ROW_ELEMS_MAX;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::{Group, GroupKind, Partition, Role};
use tessera_ir::prim::{Site, row, written_shape};
use tessera_ops::prim::Prim;

/// A value that goes through memory from one group to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unfused {
    /// Positions of the groups.
    pub from: usize,
    pub to: usize,
    pub value: NodeId,
    pub why: String,
}

/// Every value that goes through memory between groups, in the order in which they run.
pub fn unfused(g: &Graph, partition: &Partition) -> Vec<Unfused> {
    let mut out = vec![];
    for (to, reader) in partition.groups.iter().enumerate() {
        for &value in &reader.inputs {
            let from = partition.groups.iter().position(|group| group.roots.contains(&value));
            if let Some(from) = from {
                let readers = partition.groups.iter().filter(|r| r.inputs.contains(&value)).count();
                out.push(Unfused { from, to, value, why: why(g, value, reader, readers) });
            }
        }
    }
    out.sort_by_key(|a| (a.from, a.to, a.value));
    out
}

fn role(g: &Graph, id: NodeId) -> Role {
    row(&g.node(id).prim).role(Site { g, node: g.node(id) })
}

fn why(g: &Graph, value: NodeId, reader: &Group, readers: usize) -> String {
    let root = reader.roots[0];
    let at_positions = reader.members.iter().any(|&m| {
        let n = g.node(m);
        role(g, m) == Role::Position && n.operands.first() == Some(&value)
    });
    match (role(g, value), reader.kind) {
        (Role::Alone | Role::Part, _) => "it runs by itself, in the runtime".into(),
        (_, GroupKind::Native) => "what reads it runs by itself and takes it from memory".into(),
        (_, GroupKind::Copy) => "it is copied as it is".into(),
        _ if g.outputs.contains(&value) => "it is a result, too".into(),
        _ if g.node(value).policy != g.node(root).policy => "their sums follow different policies".into(),
        (Role::Update, _) => "it is written over a part of a tensor, which ends a kernel".into(),
        _ if role(g, root) == Role::Update && g.node(root).operands.first() == Some(&value) => {
            "a part of it is written over, which takes it from memory".into()
        }
        _ if at_positions => "it is read at positions that come from data".into(),
        (Role::Ordered, _) => "it walks along a dim in order, which ends a kernel".into(),
        _ if readers > 1 => format!("{readers} kernels read it, and computing it in each costs more than storing it"),
        (Role::Dot, GroupKind::Dot | GroupKind::Attention) => {
            "a product reads each number of its operands many times".into()
        }
        (Role::View, GroupKind::Dot) => "its rows are windows that would be read one number at a time".into(),
        (Role::Element, _) if reader.members.iter().any(|&m| role(g, m) == Role::Transform) => {
            "it makes random words, which come in rows and not beside the lines of a transform, or is needed before and after it".into()
        }
        (_, GroupKind::Dot | GroupKind::Attention) => {
            "a product reads each number of its operands many times, and this is more than one plain step".into()
        }
        (Role::Dot, _) => "what follows a product inside its kernel goes element by element, and this does not".into(),
        (Role::Transform, _) => {
            "what follows a transform inside its kernel goes element by element, and this does not".into()
        }
        (Role::Reduce, _) => reduction(g, value, root),
        _ => "it would be computed again for each place that reads it".into(),
    }
}

/// Why a reduction is not in the kernel that reads it.
fn reduction(g: &Graph, value: NodeId, root: NodeId) -> String {
    let n = g.node(value);
    let Prim::Reduce { axes, .. } = &n.prim else { return "it is reduced before".into() };
    let source = &g.ty(n.operands[0]).shape;
    let lead = source.len() - axes.len();
    let row: u64 = axes.iter().map(|&a| source[a]).product();
    if axes.iter().any(|&a| a < lead) {
        return "it reduces other dims than the last ones".into();
    }
    if row > ROW_ELEMS_MAX {
        return format!("a row of {row} numbers is too long to be read twice");
    }
    if written_shape(g, root) != *source {
        return "what reads it does not go back over the rows that were reduced".into();
    }
    "the reductions of the other kernel have rows of another length".into()
}

//! What the devices along an axis do together, along the leading dim.

use super::Batch;
use tessera_base::Sharding;
use tessera_ir::graph::Node;
use tessera_ir::lift::Value;
use tessera_ops::prim::{CollectiveKind, Prim, Reduction};
use tessera_ops::surface::{Build, Id, expand};

impl Batch<'_, '_> {
    /// A collective over the axis of the values.
    pub(super) fn together(&mut self, node: &Node, kind: &CollectiveKind) -> Value {
        let Some(&o) = node.operands.first() else {
            let numbers = self.l.numbers(&[self.l.size]);
            return Value::Each(self.split(numbers));
        };
        let x = self.l.each(o);
        match kind {
            CollectiveKind::Rank => Value::Each(x),
            CollectiveKind::Sum | CollectiveKind::Max | CollectiveKind::Min => {
                let reduction = match kind {
                    CollectiveKind::Max => Reduction::Max,
                    CollectiveKind::Min => Reduction::Min,
                    _ => Reduction::Sum,
                };
                let all = expand::reduce(&mut self.l.w, x, reduction, &[0], false);
                Value::Plain(self.everywhere(all))
            }
            CollectiveKind::Gather { dim } => {
                let rank = node.ty.shape.len();
                let perm: Vec<usize> = (1..=*dim).chain([0]).chain(dim + 1..=rank).collect();
                let turned = expand::transpose(&mut self.l.w, x, &perm);
                let joined = expand::reshape(&mut self.l.w, turned, &node.ty.shape);
                Value::Plain(self.everywhere(joined))
            }
            CollectiveKind::Scatter { dim } => {
                let parts = self.dealt(x, *dim);
                Value::Each(expand::reduce(&mut self.l.w, parts, Reduction::Sum, &[1], false))
            }
            CollectiveKind::Turn { from, to } => {
                let parts = self.dealt(x, *to);
                let rank = node.ty.shape.len();
                let perm: Vec<usize> =
                    [0].into_iter().chain(2..from + 2).chain([1]).chain(from + 2..rank + 2).collect();
                let turned = expand::transpose(&mut self.l.w, parts, &perm);
                let shape = [&[self.l.size][..], &node.ty.shape].concat();
                Value::Each(expand::reshape(&mut self.l.w, turned, &shape))
            }
            CollectiveKind::Rows { from } => {
                Value::Each(self.l.push(node, Prim::Rows { axis: 0, from: from.clone() }, &[x]))
            }
        }
    }

    /// Each block cut along a dim into a part for each device: `[to, from, …]`.
    fn dealt(&mut self, x: Id, dim: usize) -> Id {
        let mut shape = self.l.w.shape(x);
        shape[dim + 1] /= self.l.size.max(1);
        shape.insert(dim + 1, self.l.size);
        let cut = expand::reshape(&mut self.l.w, x, &shape);
        let perm: Vec<usize> = [dim + 1].into_iter().chain((0..shape.len()).filter(|d| *d != dim + 1)).collect();
        let turned = expand::transpose(&mut self.l.w, cut, &perm);
        self.split(turned)
    }

    /// What the first device has.
    pub(super) fn first(&mut self, x: Id) -> Id {
        let shape = self.l.w.shape(x);
        let row = expand::slice(&mut self.l.w, x, 0, 0, 1);
        expand::reshape(&mut self.l.w, row, &shape[1..])
    }

    /// Each device has its own row.
    fn split(&mut self, x: Id) -> Id {
        let Some(axis) = self.l.axis else { return x };
        let rank = self.l.w.shape(x).len();
        let mut dims = vec![vec![]; rank];
        dims[0].push(axis.name.clone());
        self.l.with_sharding(x, Sharding { dims, partial: vec![], mesh: Some(axis.mesh.clone()) })
    }

    /// Every device has all of it.
    fn everywhere(&mut self, x: Id) -> Id {
        let Some(axis) = self.l.axis else { return x };
        self.l.with_sharding(x, Sharding::replicated(&axis.mesh))
    }
}

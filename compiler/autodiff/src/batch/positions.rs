//! Reading and writing at positions, of which each value may have its own.

use super::{Batch, Value};
use tessera_base::DType;
use tessera_ir::graph::{Node, NodeId};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Scalar};
use tessera_ops::surface::{Build, Id, expand};

impl Batch<'_, '_> {
    /// The number of each value, in the shape `[size, …]` of an index.
    pub(super) fn numbers(&mut self, shape: &[u64]) -> Id {
        expand::iota(&mut self.w, shape, 0)
    }

    /// Rows of a table at positions of which each value has its own.
    pub(super) fn take(&mut self, node: &Node, axis: usize) -> Id {
        let (table, index) = (node.operands[0], node.operands[1]);
        let (rank, taken) = (self.body.ty(table).shape.len(), self.body.ty(index).shape.len());
        let index = self.each(index);
        let dtype = node.ty.dtype;
        if let Value::Plain(table) = self.value(table) {
            // [before…, size, taken…, after…]
            let mut shape = node.ty.shape.clone();
            shape.insert(axis, self.size);
            let rows = self.w.push(Prim::Take { axis }, &[table, index], shape, dtype);
            let perm: Vec<usize> = [axis].into_iter().chain((0..rank + taken).filter(|d| *d != axis)).collect();
            return expand::transpose(&mut self.w, rows, &perm);
        }
        let table = self.each(table);
        let order: Vec<usize> = [0, axis + 1].into_iter().chain((1..=rank).filter(|d| *d != axis + 1)).collect();
        let table = expand::transpose(&mut self.w, table, &order);
        let positions = self.w.shape(index);
        let numbers = self.numbers(&positions);
        let shape = [&positions[..], &self.w.shape(table)[2..]].concat();
        let rows = self.w.push(Prim::Gather, &[table, numbers, index], shape, dtype);
        // [size, taken…, before…, after…]
        let before = 1 + taken..1 + taken + axis;
        let perm: Vec<usize> =
            [0].into_iter().chain(before).chain(1..1 + taken).chain(1 + taken + axis..rank + taken).collect();
        expand::transpose(&mut self.w, rows, &perm)
    }

    pub(super) fn gather(&mut self, node: &Node) -> Id {
        let base = self.each(node.operands[0]);
        let mut operands = vec![base];
        let index: Vec<Id> = node.operands[1..].iter().map(|&o| self.each(o)).collect();
        let shape = self.w.shape(index[0]);
        operands.push(self.numbers(&shape));
        operands.extend(index);
        self.push(node, Prim::Gather, &operands)
    }

    /// Operands: base, values, indices….
    pub(super) fn scatter(&mut self, node: &Node, add: bool) -> Id {
        let mut operands = vec![self.each(node.operands[0]), self.each(node.operands[1])];
        let index: Vec<Id> = node.operands[2..].iter().map(|&o| self.each(o)).collect();
        let shape = self.w.shape(index[0]);
        operands.push(self.numbers(&shape));
        operands.extend(index);
        self.push(node, Prim::Scatter { add }, &operands)
    }

    /// A block that is read or written where scalars say. `None` for devices, which each know their own.
    pub(super) fn dynamic(&mut self, node: &Node) -> Option<Id> {
        let update = node.prim == Prim::DynamicUpdate;
        let first = if update { 2 } else { 1 };
        let starts = &node.operands[first..];
        let block = match &node.prim {
            Prim::DynamicSlice { sizes } => sizes.clone(),
            _ => self.body.ty(node.operands[1]).shape.clone(),
        };
        let shared: Option<Vec<Id>> = starts
            .iter()
            .map(|&s| match self.value(s) {
                Value::Plain(x) => Some(x),
                Value::Each(_) => None,
            })
            .collect();
        if let Some(shared) = shared {
            let zero = expand::full(&mut self.w, &[], DType::I64, Scalar::I(0));
            let given: Vec<Id> = node.operands[..first].iter().map(|&o| self.each(o)).collect();
            let operands = [&given[..], &[zero], &shared].concat();
            let prim = match update {
                true => Prim::DynamicUpdate,
                false => Prim::DynamicSlice { sizes: [&[self.size][..], &block].concat() },
            };
            return Some(self.push(node, prim, &operands));
        }
        if self.axis.is_some() {
            return None;
        }
        // Dims at the end that are taken whole need no positions.
        let base = self.body.ty(node.operands[0]).shape.clone();
        let whole = |d: usize| block[d] == base[d] && self.is_zero(starts[d]);
        let depth = (0..block.len()).rev().find(|&d| !whole(d)).map_or(1, |d| d + 1).min(block.len());
        let shape = [&[self.size][..], &block[..depth]].concat();
        let mut index = vec![self.numbers(&shape)];
        for d in 0..depth {
            let start = self.each(starts[d]);
            index.push(self.positions(start, base[d], d + 1, &shape));
        }
        let mut operands: Vec<Id> = node.operands[..first].iter().map(|&o| self.each(o)).collect();
        operands.extend(index);
        let prim = if update { Prim::Scatter { add: false } } else { Prim::Gather };
        Some(self.push(node, prim, &operands))
    }

    /// The positions from each value's start on, along dim `dim` of an index. A start before the first position, which a
    /// gather would count from the end, lies outside.
    fn positions(&mut self, start: Id, count: u64, dim: usize, shape: &[u64]) -> Id {
        let w = &mut self.w;
        let size = w.shape(start);
        let zero = expand::full(w, &size, DType::I64, Scalar::I(0));
        let all = expand::full(w, &size, DType::I64, Scalar::I(count as i64));
        let before = expand::map(w, MapOp::lt, &[start, zero]);
        let outside = expand::map(w, MapOp::sub, &[start, all]);
        let start = expand::select(w, before, outside, start);
        let start = expand::broadcast_dims(w, start, shape, vec![0]);
        let steps = expand::iota(w, shape, dim);
        expand::map(w, MapOp::add, &[start, steps])
    }

    fn is_zero(&self, id: NodeId) -> bool {
        self.body.node(id).prim == Prim::Full { value: Scalar::I(0) }
    }
}

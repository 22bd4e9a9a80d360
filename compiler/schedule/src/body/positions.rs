//! Reads at positions that come from data.
//!
//! The tensor that is read lies in memory; the positions may be computed in the kernel. Each is
//! checked where it is computed, so that what reads with it needs no check of its own.

use super::{Body, Part, refuse};
use crate::Refusal;
use tessera_abi::plan::Bounds;
use tessera_base::DType;
use tessera_ir::graph::{Node, NodeId};
use tessera_ir::index::{Index, linear, row_major};
use tessera_ir::schedule::{Guard, ValueId, ValueOp};

impl Body<'_> {
    pub(super) fn take(
        &mut self,
        n: NodeId,
        node: &Node,
        axis: usize,
        at: &[Index],
        guards: &[Guard],
    ) -> Result<ValueId, Refusal> {
        let [a, index] = node.operands[..] else { return Err(refuse(n, "needs two operands")) };
        let depth = self.graph.ty(index).shape.len();
        let (before, rest) = at.split_at(axis.min(at.len()));
        let (index_at, after) = rest.split_at(depth.min(rest.len()));
        let position = self.position(n, index, index_at, a, axis, None, guards)?;
        let place = [before, &[Index::default()], after].concat();
        self.read_at(n, a, &place, &[(axis, position)])
    }

    pub(super) fn take_along(
        &mut self,
        n: NodeId,
        node: &Node,
        axis: usize,
        at: &[Index],
        guards: &[Guard],
    ) -> Result<ValueId, Refusal> {
        let [a, index] = node.operands[..] else { return Err(refuse(n, "needs two operands")) };
        let position = self.position(n, index, at, a, axis, None, guards)?;
        let mut place = at.to_vec();
        place[axis] = Index::default();
        self.read_at(n, a, &place, &[(axis, position)])
    }

    pub(super) fn gather(
        &mut self,
        n: NodeId,
        node: &Node,
        at: &[Index],
        guards: &[Guard],
    ) -> Result<ValueId, Refusal> {
        let Some((&a, indices)) = node.operands.split_first() else { return Err(refuse(n, "lacks an operand")) };
        let depth = indices.first().map_or(0, |&i| self.graph.ty(i).shape.len());
        let (index_at, rest) = at.split_at(depth.min(at.len()));
        let mut by = vec![];
        for (axis, &index) in indices.iter().enumerate() {
            by.push((axis, self.position(n, index, index_at, a, axis, None, guards)?));
        }
        let place = [vec![Index::default(); indices.len()].as_slice(), rest].concat();
        self.read_at(n, a, &place, &by)
    }

    pub(super) fn dynamic_slice(
        &mut self,
        n: NodeId,
        node: &Node,
        sizes: &[u64],
        at: &[Index],
        guards: &[Guard],
    ) -> Result<ValueId, Refusal> {
        let Some((&a, starts)) = node.operands.split_first() else { return Err(refuse(n, "lacks an operand")) };
        let mut by = vec![];
        for (axis, (&start, &size)) in starts.iter().zip(sizes).enumerate() {
            by.push((axis, self.position(n, start, &[], a, axis, Some(size), guards)?));
        }
        self.read_at(n, a, at, &by)
    }

    /// The position along `axis` of `a` that `index` names at `at`.
    fn position(
        &mut self,
        n: NodeId,
        index: NodeId,
        at: &[Index],
        a: NodeId,
        axis: usize,
        block: Option<u64>,
        guards: &[Guard],
    ) -> Result<ValueId, Refusal> {
        if !guards.is_empty() {
            return Err(refuse(n, "reads positions under a guard"));
        }
        let size = self.graph.ty(a).shape.get(axis).copied().ok_or_else(|| refuse(n, "lacks a dim"))?;
        let arg = self.value(index, at, &[], Part::Real)?;
        Ok(self.push(ValueOp::Position { arg, bounds: Bounds { axis: axis as u32, size, block } }, DType::I64))
    }

    /// The element of `a` at `place`, further along some dims by the values given for them.
    fn read_at(&mut self, n: NodeId, a: NodeId, place: &[Index], by: &[(usize, ValueId)]) -> Result<ValueId, Refusal> {
        let ty = self.graph.ty(a);
        if ty.dtype.is_complex() {
            return Err(refuse(n, "reads complex numbers at positions from data"));
        }
        let operand = *self.inputs.get(&a).ok_or_else(|| refuse(n, "reads what is not in memory"))?;
        let strides = row_major(&ty.shape);
        let by = by.iter().map(|&(axis, v)| (v, strides[axis])).collect();
        let at = linear(place, &strides);
        Ok(self.push(ValueOp::Gather { operand, at, by, guards: vec![] }, ty.dtype))
    }
}

//! Operations that walk along one dim in order: positions of extremes, running sums.

use super::{Body, Part, refuse};
use crate::Refusal;
use tessera_base::DType;
use tessera_ir::graph::{Node, NodeId};
use tessera_ir::index::{Index, Term};
use tessera_ir::schedule::{Guard, ValueId, ValueOp};
use tessera_ops::prim::Reduction;
use tessera_ops::reference::identity;

impl Body<'_> {
    pub(super) fn arg_reduce(
        &mut self,
        n: NodeId,
        node: &Node,
        largest: bool,
        axis: usize,
        at: &[Index],
        guards: &[Guard],
    ) -> Result<ValueId, Refusal> {
        let &[a] = &node.operands[..] else { return Err(refuse(n, "needs one operand")) };
        if !guards.is_empty() {
            return Err(refuse(n, "searches under a guard"));
        }
        let shape = &self.graph.ty(a).shape;
        let extent = shape.get(axis).copied().ok_or_else(|| refuse(n, "lacks a dim"))?;
        let r = self.axis(format!("r{}", self.s.axes.len()), extent, true);
        let mut place = at.to_vec();
        place.insert(axis.min(place.len()), Index::var(r));
        let arg = self.value(a, &place, &[], Part::Real)?;
        // The order of bool is that of 0 and 1.
        let arg = if self.s.value(arg).dtype == DType::Bool { self.cast(arg, DType::U8) } else { arg };
        let v = self.push(ValueOp::ArgReduce { largest, arg, axis: r }, DType::I64);
        Ok(self.cast(v, node.ty.dtype))
    }

    pub(super) fn cumulate(
        &mut self,
        n: NodeId,
        node: &Node,
        kind: Reduction,
        axis: usize,
        at: &[Index],
        guards: &[Guard],
    ) -> Result<ValueId, Refusal> {
        let &[a] = &node.operands[..] else { return Err(refuse(n, "needs one operand")) };
        let single = self.graph.ty(a).shape.get(axis) == Some(&1);
        let along = match at.get(axis).map(|e| (&e.terms[..], e.constant)) {
            Some(([(Term::Var(v), 1)], 0)) if guards.is_empty() => *v,
            // A dim of one position needs no axis.
            Some(([], 0)) if guards.is_empty() && single => self.axis(format!("c{}", self.s.axes.len()), 1, false),
            _ => return Err(refuse(n, "runs along what is no axis of the kernel")),
        };
        let dtype = self.graph.ty(a).dtype;
        let accum = dtype.accumulator();
        let arg = self.value(a, at, &[], Part::Real)?;
        let arg = self.cast(arg, accum);
        let start = identity(kind, dtype);
        let v = self.push(ValueOp::Cumulate { kind, start, arg, axis: along }, accum);
        Ok(self.cast(v, node.ty.dtype))
    }
}

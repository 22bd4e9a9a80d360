//! `w[i]` in a loop over positions `i`: the row is an element of the loop, like that of a sequence.
//!
//! The loop then reads it where it lies, and its derivative writes each row's cotangent to its place. Found while the body is
//! traced, which then is traced again with the rows among its elements.

use super::Tracer;
use super::index::Along;
use super::turns::Over;
use super::value::{Scalar, Tensor};
use tessera_base::Span;
use tessera_ir::graph::NodeId;
use tessera_ops::prim::Prim;
use tessera_ops::surface::Id;

impl Tracer<'_> {
    /// The row of `base` that the turn takes, where `dims` picks it from what the turns leave as it is.
    pub(super) fn row_of_turn(&mut self, base: Tensor, dims: &[Along]) -> Option<Tensor> {
        let depth = self.depth();
        let Some(Along::At(Scalar::Node(_, Tensor::Node { level, id }))) = dims.first() else { return None };
        let turn = self.levels.last()?.turn.as_ref()?;
        let is_position = *level == depth && *id == turn.position;
        let outside = match base {
            Tensor::Leaf(_) => true,
            Tensor::Node { level, .. } => level < depth,
        };
        let ty = self.ty(base);
        let split = ty.sharding.dims.first().is_some_and(|axes| !axes.is_empty());
        if !is_position || !outside || split || !turn.fits(*ty.shape.first()?) {
            return None;
        }
        let outer = self.node_at(base, depth - 1);
        let turn = self.level().turn.as_mut()?;
        match turn.rows.iter().find(|(o, _)| *o == outer) {
            Some(&(_, held)) => Some(self.tensor(held)),
            None => {
                if !turn.wanted.contains(&outer) {
                    turn.wanted.push(outer);
                }
                None
            }
        }
    }

    /// The rows of a node that turns take, one for each.
    pub(super) fn rows_over(&mut self, of: NodeId, over: &Over, span: Span) -> NodeId {
        let Some((first, by)) = over.positions else { return of };
        let ty = self.level().graph.ty(of).clone();
        let (mut start, mut step, mut shape) = (vec![0; ty.shape.len()], vec![1; ty.shape.len()], ty.shape.clone());
        if (first, by, over.trips) == (0, 1, shape[0]) {
            return of;
        }
        (start[0], step[0], shape[0]) = (first, if over.trips > 1 { by } else { 1 }, over.trips);
        NodeId(self.prim(Prim::Slice { start, step }, &[Id(of.0)], shape, ty.dtype, span).0)
    }
}

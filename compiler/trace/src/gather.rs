//! Index tensors: `x[t]`, `x[i, :, t]`, `x[t, u]`.
//!
//! As in NumPy, the ints and tensors of an index form one group. Tensors broadcast, and the
//! dims they give stand where the group stands, or first when slices separate its members.

use super::index::{Along, Resolved};
use super::value::Tensor;
use super::{R, Tracer};
use tessera_base::{Code, Span};
use tessera_core::ir::IndexPart;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Id, expand};

/// Where the dims of a group stand.
pub(super) struct Group {
    /// Before how many dims of slices (new dims not counted).
    pub kept_before: usize,
    /// Before how many dims of the result.
    pub at: usize,
}

pub(super) fn group_of(parts: &[IndexPart]) -> Group {
    let (mut kept, mut out) = (0, 0);
    let (mut first, mut open, mut separated) = (None, false, false);
    for part in parts {
        match part {
            IndexPart::Int(_) | IndexPart::Tensor(_) => {
                separated |= first.is_some() && !open;
                first = first.or(Some(Group { kept_before: kept, at: out }));
                open = true;
            }
            IndexPart::Slice { .. } => {
                (kept, out, open) = (kept + 1, out + 1, false);
            }
            IndexPart::Whole(n) => {
                (kept, out, open) = (kept + n, out + n, false);
            }
            IndexPart::NewAxis => {
                (out, open) = (out + 1, false);
            }
        }
    }
    match first {
        Some(group) if !separated => group,
        _ => Group { kept_before: 0, at: 0 },
    }
}

/// The result's dims where `None` is a new one, `Some(true)` the group's first dim.
pub(super) struct Layout {
    /// Sizes of the result with the group in its place and new dims written out.
    pub shape: Vec<u64>,
}

impl Tracer<'_> {
    pub(super) fn gather(&mut self, base: Tensor, parts: &[IndexPart], index: Resolved, span: Span) -> R<Tensor> {
        // Slices and ints first; dims that ints pick from vanish.
        let picked = self.basic(base, &index.dims, span);
        let sizes = self.ty(picked).shape;
        let kept: Vec<usize> = (0..sizes.len()).filter(|&d| !matches!(index.dims[d], Along::At(_))).collect();
        let rest: Vec<u64> = kept.iter().map(|&d| sizes[d]).collect();
        let source = self.reshaped(picked, &rest, span);
        let tensors: Vec<(usize, Tensor)> = kept
            .iter()
            .enumerate()
            .filter_map(|(at, &d)| match index.dims[d] {
                Along::Tensor(t) => Some((at, t)),
                _ => None,
            })
            .collect();
        let others: Vec<u64> =
            rest.iter().enumerate().filter(|(i, _)| tensors.iter().all(|(at, _)| at != i)).map(|(_, &n)| n).collect();
        let group = group_of(parts);
        let (gathered, inner, before) = match tensors[..] {
            [(axis, t)] => (self.take(source, axis, t, span), self.ty(t).shape, axis),
            _ => {
                let (gathered, inner) = self.pointwise(source, &tensors, span)?;
                (gathered, inner, 0)
            }
        };
        let moved = self.move_block(gathered, before, inner.len(), group.kept_before, span);
        let layout = self.layout(&index, &inner, &others, &group);
        Ok(self.reshaped(moved, &layout.shape, span))
    }

    /// The shape of the result: the slices' dims and new ones, with the group's dims among them.
    pub(super) fn layout(&self, index: &Resolved, inner: &[u64], others: &[u64], group: &Group) -> Layout {
        let mut others = others.iter().copied();
        let mut shape: Vec<u64> = index
            .layout
            .iter()
            .filter_map(|d| match d {
                None => Some(1),
                Some(d) if matches!(index.dims[*d], Along::Tensor(_)) => None,
                Some(_) => others.next(),
            })
            .collect();
        let at = group.at.min(shape.len());
        shape.splice(at..at, inner.iter().copied());
        Layout { shape }
    }

    fn take(&mut self, source: Tensor, axis: usize, t: Tensor, span: Span) -> Tensor {
        let (ty, inner) = (self.ty(source), self.ty(t).shape);
        let mut shape = ty.shape.clone();
        shape.splice(axis..axis + 1, inner);
        let (x, at) = (self.id(source), self.id(t));
        let mut b = self.adder("index", span);
        let at = expand::positions(&mut b, at);
        let id = self.prim(Prim::Take { axis }, &[x, at], shape, ty.dtype, span);
        self.tensor_id(id)
    }

    /// Several index tensors, element by element: the indexed dims come first.
    fn pointwise(&mut self, source: Tensor, tensors: &[(usize, Tensor)], span: Span) -> R<(Tensor, Vec<u64>)> {
        let ty = self.ty(source);
        let (indices, inner) = self.index_nodes(tensors, &ty.shape, span)?;
        let axes: Vec<usize> = tensors.iter().map(|(at, _)| *at).collect();
        let front = self.with_first(source, &axes, span);
        let shape: Vec<u64> = inner.iter().copied().chain(self.ty(front).shape[axes.len()..].iter().copied()).collect();
        let mut operands = vec![self.id(front)];
        operands.extend(indices);
        let id = self.prim(Prim::Gather, &operands, shape, ty.dtype, span);
        Ok((self.tensor_id(id), inner))
    }

    /// Index tensors broadcast to one shape, as positions from the start.
    pub(super) fn index_nodes(
        &mut self,
        tensors: &[(usize, Tensor)],
        shape: &[u64],
        span: Span,
    ) -> R<(Vec<Id>, Vec<u64>)> {
        let mut inner = vec![];
        for (_, t) in tensors {
            let next = self.ty(*t).shape;
            let both = expand::common_shape(&inner, &next);
            for have in [&inner, &next] {
                let lead = both.len() - have.len();
                if have.iter().zip(&both[lead..]).any(|(&h, &b)| h != b && h != 1) {
                    let message = format!("index tensors of shapes {inner:?} and {next:?} do not broadcast");
                    return Err(self.error(Code::E0708, span, message));
                }
            }
            inner = both;
        }
        let mut ids = vec![];
        for (at, t) in tensors {
            let id = self.positions(*t, shape[*at], span);
            let mut b = self.adder("index", span);
            ids.push(expand::broadcast_to(&mut b, id, &inner));
        }
        Ok((ids, inner))
    }

    /// The tensor with these dims first.
    pub(super) fn with_first(&mut self, t: Tensor, axes: &[usize], span: Span) -> Tensor {
        let rank = self.ty(t).shape.len();
        let perm: Vec<usize> = axes.iter().copied().chain((0..rank).filter(|d| !axes.contains(d))).collect();
        self.permuted(t, &perm, span)
    }

    pub(super) fn permuted(&mut self, t: Tensor, perm: &[usize], span: Span) -> Tensor {
        let id = self.id(t);
        let mut b = self.adder("index", span);
        let id = expand::transpose(&mut b, id, perm);
        self.tensor_id(id)
    }

    /// Moves a block of `len` neighbouring dims from position `from` to `to` among the others.
    pub(super) fn move_block(&mut self, t: Tensor, from: usize, len: usize, to: usize, span: Span) -> Tensor {
        let rank = self.ty(t).shape.len();
        let block = from..from + len;
        let mut perm: Vec<usize> = (0..rank).filter(|d| !block.contains(d)).collect();
        let to = to.min(perm.len());
        perm.splice(to..to, block);
        self.permuted(t, &perm, span)
    }
}

//! Writing parts of tensors: `x[index] = value` gives a new tensor.

use super::gather::group_of;
use super::index::{Along, Resolved};
use super::op::scalar;
use super::scalar::Known;
use super::value::{Scalar, Tensor, Value};
use super::{R, Tracer};
use tessera_abi::slice::Slice;
use tessera_base::{Code, DType, Span};
use tessera_core::ir::IndexPart;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Arg, Id, expand};
use tessera_runtime::tensor_index::shape_text;

impl Tracer<'_> {
    pub(super) fn assign(&mut self, base: Tensor, parts: &[IndexPart], value: (&Value, u64), span: Span) -> R<Tensor> {
        let ty = self.ty(base);
        let mut index = self.resolve(&ty.shape, parts, span)?;
        if index.dims.iter().any(|d| matches!(d, Along::Tensor(_))) {
            return self.scatter(base, parts, index, value, span);
        }
        self.settle(&mut index, span)?;
        let sizes: Vec<u64> = index.dims.iter().map(count).collect();
        let shape: Vec<u64> = index.layout.iter().map(|d| d.map_or(1, |d| sizes[d])).collect();
        let value = self.fitted(value, &shape, ty.dtype, span)?;
        let value = self.reshaped(value, &sizes, span);
        Ok(self.write(base, &index.dims, value, span))
    }

    /// Positions that only the caller knows do not go with steps: there they become known.
    fn settle(&mut self, index: &mut Resolved, span: Span) -> R<()> {
        let strided = index.dims.iter().any(|d| matches!(d, Along::Slice(s) if s.step != 1 && s.count > 1));
        for d in &mut index.dims {
            if let (true, Along::At(s)) = (strided, &*d) {
                *d = Along::At(Scalar::Known(self.known(s, "this index", span)?));
            }
        }
        Ok(())
    }

    /// The base with a block written over the slices and positions.
    fn write(&mut self, base: Tensor, dims: &[Along], value: Tensor, span: Span) -> Tensor {
        let ty = self.ty(base);
        let all = |d: (&Along, &u64)| matches!(d.0, Along::Slice(s) if s.start == 0 && s.step == 1 && s.count == *d.1);
        if dims.iter().zip(&ty.shape).all(all) {
            return value;
        }
        if self.ty(value).elems() == Some(0) {
            return base;
        }
        let moving = dims.iter().any(|d| matches!(d, Along::At(s) if !matches!(s, Scalar::Known(_))));
        let mut operands = vec![self.id(base), self.id(value)];
        let prim = if moving {
            for d in dims {
                let start = match d {
                    Along::At(s) => s.clone(),
                    Along::Slice(s) => Scalar::Known(Known::Int(s.start)),
                    Along::Tensor(_) => Scalar::Known(Known::Int(0)),
                };
                operands.push(Id(self.scalar_node(&start, span).0));
            }
            Prim::DynamicUpdate
        } else {
            let (mut start, mut step) = (vec![], vec![]);
            for d in dims {
                let (at, by) = match d {
                    Along::At(Scalar::Known(Known::Int(i))) => (*i, 1),
                    Along::Slice(s) => (s.start, s.step),
                    _ => (0, 1),
                };
                start.push(at);
                step.push(by);
            }
            Prim::UpdateSlice { start, step }
        };
        let id = self.prim(prim, &operands, ty.shape, ty.dtype, span);
        self.tensor_id(id)
    }

    /// The value broadcast to a shape, in the element type of the slot.
    fn fitted(&mut self, (value, loose): (&Value, u64), shape: &[u64], dtype: DType, span: Span) -> R<Tensor> {
        let arg = match value {
            Value::Tensor(t) => {
                let have = self.ty(*t).shape;
                let lead = shape.len().checked_sub(have.len());
                let repeats = |i: usize| i >= 64 || loose >> i & 1 == 1;
                let fits = lead.is_some_and(|lead| {
                    have.iter().zip(&shape[lead..]).enumerate().all(|(i, (&h, &s))| h == s || h == 1 && repeats(i))
                });
                if !fits {
                    let (have, slot) = (shape_text(&have), shape_text(shape));
                    let message = format!("a value of shape {have} does not broadcast to {slot}");
                    return Err(self.error(Code::E0708, span, message));
                }
                Arg::Tensor(self.id(*t))
            }
            Value::Scalar(Scalar::Known(Known::Bool(b))) => Arg::Bool(*b),
            Value::Scalar(Scalar::Known(v)) => Arg::Scalar(scalar(*v)),
            Value::Scalar(s) => Arg::Dynamic(Id(self.scalar_node(s, span).0)),
            other => return Err(self.broken(span, "a tensor or a number", other)),
        };
        let mut b = self.adder("assign", span);
        match expand::operand(&mut b, &arg, shape, dtype) {
            Ok(id) => Ok(self.tensor_id(id)),
            Err(e) => Err(self.error(e.code, span, e.message)),
        }
    }

    /// Index tensors: the slices are cut out, scattered into, and written back.
    fn scatter(
        &mut self,
        base: Tensor,
        parts: &[IndexPart],
        index: Resolved,
        value: (&Value, u64),
        span: Span,
    ) -> R<Tensor> {
        let ty = self.ty(base);
        let mut tensors = vec![];
        for (d, along) in index.dims.iter().enumerate() {
            match along {
                Along::Tensor(t) => tensors.push((d, *t)),
                Along::At(s) => tensors.push((d, self.position_tensor(s, span))),
                Along::Slice(_) => {}
            }
        }
        let axes: Vec<usize> = tensors.iter().map(|(d, _)| *d).collect();
        // The block that the slices select, with the indexed dims whole and first.
        let cut: Vec<Along> = index
            .dims
            .iter()
            .zip(&ty.shape)
            .map(|(d, &n)| match d {
                Along::Slice(s) => Along::Slice(*s),
                _ => Along::Slice(Slice { start: 0, step: 1, count: n }),
            })
            .collect();
        let block = self.basic(base, &cut, span);
        let front = self.with_first(block, &axes, span);
        let (indices, inner) = self.index_nodes(&tensors, &ty.shape, span)?;
        let others: Vec<u64> = self.ty(front).shape[axes.len()..].to_vec();
        // The value in the layout of `x[index]`, then without new dims, then the group first.
        let group = group_of(parts);
        let slot = self.layout(&index, &inner, &others, &group);
        let value = self.fitted(value, &slot.shape, ty.dtype, span)?;
        let before = group.kept_before.min(others.len());
        let plain: Vec<u64> = [&others[..before], &inner, &others[before..]].concat();
        let value = self.reshaped(value, &plain, span);
        let value = self.move_block(value, before, inner.len(), 0, span);
        let mut operands = vec![self.id(front), self.id(value)];
        operands.extend(indices);
        let shape = self.ty(front).shape;
        let id = self.prim(Prim::Scatter { add: false }, &operands, shape, ty.dtype, span);
        let scattered = self.tensor_id(id);
        let mut back = vec![0; ty.shape.len()];
        let order = axes.iter().copied().chain((0..ty.shape.len()).filter(|d| !axes.contains(d)));
        for (now, was) in order.enumerate() {
            back[was] = now;
        }
        let block = self.permuted(scattered, &back, span);
        Ok(self.write(base, &cut, block, span))
    }
}

fn count(d: &Along) -> u64 {
    match d {
        Along::Slice(s) => s.count,
        _ => 1,
    }
}

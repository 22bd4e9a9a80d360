//! Reading parts of tensors: `x[i, a:b, None]`. Index tensors are in [`super::gather`].

use super::scalar::{Kind, Known, ScalarOp};
use super::value::{Scalar, Tensor};
use super::{R, Tracer};
use tessera_abi::slice::Slice;
use tessera_base::{Code, DType, Span};
use tessera_core::ir::IndexPart;
use tessera_ops::map::MapOp;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Id, expand};

/// One dim of the tensor that is indexed.
#[derive(Clone)]
pub enum Along {
    Slice(Slice),
    /// An int: the dim vanishes.
    At(Scalar),
    /// A tensor of positions.
    Tensor(Tensor),
}

/// An index resolved against a shape.
pub struct Resolved {
    /// One per dim of the tensor.
    pub dims: Vec<Along>,
    /// The dims of the result in order: a dim of the tensor, or `None` for a new one.
    pub layout: Vec<Option<usize>>,
}

impl Tracer<'_> {
    /// What each part of an index means for a tensor of this shape.
    pub(super) fn resolve(&mut self, shape: &[u64], parts: &[IndexPart], span: Span) -> R<Resolved> {
        let (mut dims, mut layout) = (vec![], vec![]);
        for part in parts {
            let dim = dims.len();
            let size = |t: &Self| match shape.get(dim) {
                Some(&n) => Ok(n),
                None => {
                    Err(t.error(Code::E0708, span, format!("too many indices for a tensor of rank {}", shape.len())))
                }
            };
            match part {
                IndexPart::NewAxis => layout.push(None),
                IndexPart::Whole(n) => {
                    for _ in 0..*n {
                        layout.push(Some(dims.len()));
                        dims.push(whole(shape, dims.len()));
                    }
                }
                IndexPart::Slice { low, high, step } => {
                    let len = size(self)?;
                    let (low, high) = (self.bound(low.as_ref())?, self.bound(high.as_ref())?);
                    let step = self.bound(step.as_ref())?;
                    let slice = Slice::of(len, low, high, step);
                    let slice =
                        slice.ok_or_else(|| self.error(Code::E0711, span, "the step of a slice cannot be 0"))?;
                    layout.push(Some(dim));
                    dims.push(Along::Slice(slice));
                }
                IndexPart::Int(e) => {
                    let len = size(self)?;
                    let at = self.scalar(e)?;
                    // Out of range fails now, or when the region is called.
                    let position = ScalarOp::Position { dim: dim as u32, size: len };
                    dims.push(Along::At(self.apply(position, std::slice::from_ref(&at), e.span)?));
                }
                IndexPart::Tensor(e) => {
                    size(self)?;
                    layout.push(Some(dim));
                    dims.push(Along::Tensor(self.tensor_of(e)?));
                }
            }
        }
        while dims.len() < shape.len() {
            layout.push(Some(dims.len()));
            dims.push(whole(shape, dims.len()));
        }
        Ok(Resolved { dims, layout })
    }

    /// `base[index]`.
    pub(super) fn index(&mut self, base: Tensor, parts: &[IndexPart], span: Span) -> R<Tensor> {
        let shape = self.ty(base).shape;
        let index = self.resolve(&shape, parts, span)?;
        if index.dims.iter().any(|d| matches!(d, Along::Tensor(_))) {
            return self.gather(base, parts, index, span);
        }
        let picked = self.basic(base, &index.dims, span);
        let sizes = self.ty(picked).shape;
        let shape: Vec<u64> = index.layout.iter().map(|d| d.map_or(1, |d| sizes[d])).collect();
        Ok(self.reshaped(picked, &shape, span))
    }

    /// Slices and single positions; a dim that an int picks from stays with size 1.
    pub(super) fn basic(&mut self, base: Tensor, dims: &[Along], span: Span) -> Tensor {
        let ty = self.ty(base);
        if let Some(row) = self.row_of_turn(base, dims) {
            let one = self.reshaped(row, &[&[1], &ty.shape[1..]].concat(), span);
            let dims: Vec<Along> = std::iter::once(whole(&[1], 0)).chain(dims.iter().skip(1).cloned()).collect();
            return self.basic(one, &dims, span);
        }
        let sliced = self.static_part(base, &ty.shape, dims, span);
        let moving = |d: &Along| matches!(d, Along::At(s) if !matches!(s, Scalar::Known(_)));
        if !dims.iter().any(moving) {
            return sliced;
        }
        let sizes: Vec<u64> =
            self.ty(sliced).shape.iter().zip(dims).map(|(&n, d)| if moving(d) { 1 } else { n }).collect();
        let mut operands = vec![self.id(sliced)];
        for d in dims {
            let start = match d {
                Along::At(s) if moving(d) => s.clone(),
                _ => Scalar::Known(Known::Int(0)),
            };
            operands.push(Id(self.scalar_node(&start, span).0));
        }
        let id = self.prim(Prim::DynamicSlice { sizes: sizes.clone() }, &operands, sizes, ty.dtype, span);
        self.tensor_id(id)
    }

    /// The part of a basic index that is known.
    fn static_part(&mut self, base: Tensor, shape: &[u64], dims: &[Along], span: Span) -> Tensor {
        let (mut start, mut step, mut sizes) = (vec![], vec![], vec![]);
        for (d, &n) in dims.iter().zip(shape) {
            let s = match d {
                Along::Slice(s) => *s,
                Along::At(Scalar::Known(Known::Int(i))) => Slice { start: *i, step: 1, count: 1 },
                _ => Slice { start: 0, step: 1, count: n },
            };
            start.push(s.start);
            step.push(if s.count <= 1 { 1 } else { s.step });
            sizes.push(s.count);
        }
        if sizes == shape && step.iter().all(|&s| s == 1) {
            return base;
        }
        let dtype = self.ty(base).dtype;
        let id = self.id(base);
        let id = self.prim(Prim::Slice { start, step }, &[id], sizes, dtype, span);
        self.tensor_id(id)
    }

    pub(super) fn reshaped(&mut self, t: Tensor, shape: &[u64], span: Span) -> Tensor {
        if self.ty(t).shape == shape {
            return t;
        }
        let id = self.id(t);
        let mut b = self.adder("index", span);
        let id = expand::reshape(&mut b, id, shape);
        self.tensor_id(id)
    }

    /// Row `i` of the leading dim.
    pub(super) fn row(&mut self, t: Tensor, i: u64, span: Span) -> Tensor {
        let shape = self.ty(t).shape;
        let mut dims: Vec<Along> = (0..shape.len()).map(|d| whole(&shape, d)).collect();
        if let Some(first) = dims.first_mut() {
            *first = Along::At(Scalar::Known(Known::Int(i as i64)));
        }
        let picked = self.basic(t, &dims, span);
        self.reshaped(picked, &shape[1.min(shape.len())..], span)
    }

    /// Positions as i64, negative ones counted from the end of a dim of `len` elements.
    pub(super) fn positions(&mut self, t: Tensor, len: u64, span: Span) -> Id {
        let id = self.id(t);
        let mut b = self.adder("index", span);
        let at = expand::cast(&mut b, id, DType::I64);
        let n = expand::like(&mut b, at, len as f64);
        let zero = expand::like(&mut b, at, 0.0);
        let wrapped = expand::map(&mut b, MapOp::add, &[at, n]);
        let negative = expand::map(&mut b, MapOp::lt, &[at, zero]);
        expand::select(&mut b, negative, wrapped, at)
    }

    /// A scalar position as a tensor.
    pub(super) fn position_tensor(&mut self, s: &Scalar, span: Span) -> Tensor {
        debug_assert!(s.kind() == Kind::Int, "positions are ints");
        let id = self.scalar_node(s, span);
        self.tensor(id)
    }
}

fn whole(shape: &[u64], dim: usize) -> Along {
    Along::Slice(Slice { start: 0, step: 1, count: shape.get(dim).copied().unwrap_or(0) })
}

//! The rules of the primitives: cotangents of the operands from that of the result.

mod index;
mod map;
mod product;
mod reduce;
mod view;

use crate::writer::Writer;
use tessera_base::{Blocks, DType};
use tessera_ir::graph::{Node, NodeId};
use tessera_ops::prim::{Prim, Scalar};
use tessera_ops::surface::{Build, Id, expand};

/// Cotangents of the operands, or why there are none.
pub type Pulled = Result<Vec<Option<Id>>, &'static str>;

/// One application of a rule.
pub struct At<'a, 'g> {
    pub w: &'a mut Writer<'g>,
    /// Operands.
    pub x: Vec<Id>,
    /// The result.
    pub y: Id,
    /// Cotangent of the result, of its type.
    pub c: Id,
    /// Which operands' cotangents are asked for.
    pub needed: &'a [bool],
}

impl At<'_, '_> {
    pub fn shape(&self, id: Id) -> Vec<u64> {
        self.w.shape(id)
    }

    pub fn dtype(&self, id: Id) -> DType {
        self.w.dtype(id)
    }

    /// Zeros of the type of a node.
    pub fn zeros(&mut self, like: Id) -> Id {
        let (shape, dtype) = (self.shape(like), self.dtype(like));
        self.zeros_of(&shape, dtype)
    }

    pub fn zeros_of(&mut self, shape: &[u64], dtype: DType) -> Id {
        expand::full(self.w, shape, dtype, Scalar::F(0.0))
    }

    /// Adds a primitive of the type of another node.
    pub fn like(&mut self, like: Id, prim: Prim, operands: &[Id]) -> Id {
        let (shape, dtype) = (self.shape(like), self.dtype(like));
        self.w.push(prim, operands, shape, dtype)
    }
}

/// Cotangents of a node's operands; those that are not needed may be left out.
pub fn pull(w: &mut Writer, node: &Node, id: NodeId, c: NodeId, needed: &[bool]) -> Pulled {
    let x = node.operands.iter().map(|o| Id(o.0)).collect();
    let mut at = At { w, x, y: Id(id.0), c: Id(c.0), needed };
    match &node.prim {
        Prim::Map(op) => Ok(map::map(&mut at, *op)),
        // The value itself, where it is not refused.
        Prim::Check(_) => Ok(vec![Some(at.c), None]),
        Prim::Cast => Ok(map::cast(&mut at)),
        Prim::Part { imag } => Ok(map::part(&mut at, *imag)),
        Prim::Complex => Ok(map::complex(&mut at)),
        Prim::Broadcast { dims } => Ok(view::broadcast(&mut at, dims)),
        Prim::Reshape => Ok(view::reshape(&mut at)),
        Prim::Layout => Ok(view::layout(&mut at)),
        Prim::Exchange(_) => Err("a graph of one device of a mesh"),
        Prim::Collective(_) => Err("a collective, from inside per-device code"),
        Prim::Rows { axis, from } => Ok(view::rows(&mut at, *axis, from)),
        Prim::Transpose { perm } => Ok(view::transpose(&mut at, perm)),
        Prim::Slice { start, step } => Ok(view::slice(&mut at, start, step)),
        Prim::Windows { stride, dilation } => Ok(view::windows(&mut at, stride, dilation)),
        Prim::Pad { low, .. } => Ok(view::pad(&mut at, low)),
        Prim::Concat { axis } => Ok(view::concat(&mut at, *axis)),
        Prim::UpdateSlice { start, step } => Ok(view::update_slice(&mut at, start, step)),
        Prim::Reduce { kind, axes } => reduce::reduce(&mut at, *kind, axes),
        Prim::Cumulate { kind, axis } => reduce::cumulate(&mut at, *kind, *axis),
        Prim::Dot { accum, steps, .. } => Ok(product::dot(&mut at, *accum, *steps)),
        Prim::BlockDot { format } => Ok(block_dot(&mut at, *format)),
        Prim::DynamicSlice { .. } => Ok(index::dynamic_slice(&mut at)),
        Prim::DynamicUpdate => Ok(index::dynamic_update(&mut at)),
        Prim::Take { axis } => Ok(index::take(&mut at, *axis)),
        Prim::Gather => Ok(index::gather(&mut at)),
        Prim::Scatter { add } => Ok(index::scatter(&mut at, *add)),
        Prim::TakeAlong { axis } => Ok(index::take_along(&mut at, *axis)),
        Prim::ScatterAddAlong { axis } => Ok(index::scatter_add_along(&mut at, *axis)),
        Prim::Sort { axis, descending } => Ok(index::sort(&mut at, *axis, *descending)),
        Prim::Fft(_) => Err("a transform whose operator does not state its derivative"),
        Prim::Input(_)
        | Prim::Full { .. }
        | Prim::Iota { .. }
        | Prim::Literal(_)
        | Prim::ArgReduce { .. }
        | Prim::ArgSort { .. }
        | Prim::RandomBits
        | Prim::Quantize { .. }
        | Prim::Dequantize { .. }
        | Prim::Scan { .. }
        | Prim::Get { .. } => Ok(vec![None; node.operands.len()]),
    }
}

/// The cotangent times the numbers of the blocks, which have none themselves.
fn block_dot(at: &mut At, format: Blocks) -> Vec<Option<Id>> {
    let (rows, depth) = (at.shape(at.x[1])[0], at.shape(at.x[0])[1]);
    let numbers = at.w.push(Prim::Dequantize { format }, &[at.x[1]], vec![rows, depth], DType::F32);
    vec![Some(expand::dot(at.w, at.c, numbers, DType::F32, DType::F32)), None]
}

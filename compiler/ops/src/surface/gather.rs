//! `gather scatter_add take_along_axis`: pointwise positions along one axis.

use super::expand;
use super::row::{Call, Lowered, Row, req};
use super::rule::{self, Inferred};
use super::*;
use crate::prim::Prim;

pub const GATHER: Row = Row::new(
    "gather",
    &[req("x", ParamKind::Tensor), req("axis", ParamKind::Axis), req("index", ParamKind::Tensor)],
    |cx, args, _| {
        let (x, index) = (rule::tensor(args, 0)?, rule::tensor(args, 2)?);
        let axis = rule::axis(args, 1, x)?;
        aligned(cx, (0, x), (2, index), axis)?;
        rule::one(index.shape.clone(), x.dtype)
    },
    lower_gather,
)
.method()
.doc(
    "Element by element: `out[i, j] = x[index[i, j], j]` for axis 0, and so on, as PyTorch's `gather`.\n\n\
     `index` holds ints and has the rank of `x`; off the axis its sizes are at most those of `x`. Negative positions \
     count from the end; out of range is an error at run time.\n\n```tessera\nop.gather(logp, -1, targets[:, None])\n```",
);

/// Checks an index tensor against the tensor it goes into, off the axis.
fn aligned(cx: &mut InferCx, x: (usize, &TensorType), index: (usize, &TensorType), axis: usize) -> Result<(), OpError> {
    let ((i, x), (j, index)) = (x, index);
    rule::indices(index, j)?;
    let blame = |e: OpError| e.arg(i, x.to_string()).arg(j, index.to_string());
    if x.rank() != index.rank() {
        return Err(blame(OpError::new(
            Code::E0207,
            format!("positions of rank {} for a tensor of rank {}", index.rank(), x.rank()),
        )));
    }
    for (d, (n, m)) in x.shape.iter().zip(&index.shape).enumerate() {
        if d != axis {
            let text = || format!("the positions have {m} entries along axis {d}, and the tensor {n}");
            rule::require_reach(cx, n, m, Code::E0202, text, blame)?;
        }
    }
    Ok(())
}

/// The leading part of each dim but `axis`, to the sizes of `like`.
fn crop(b: &mut dyn Build, mut x: Id, like: &[u64], axis: Option<usize>) -> Id {
    for (d, &n) in like.iter().enumerate() {
        if Some(d) != axis {
            x = expand::slice(b, x, d, 0, n);
        }
    }
    x
}

fn lower_gather(call: &mut Call) -> Lowered {
    let (t, x, index) = (call.ty(0)?, call.id(0)?, call.id(2)?);
    let axis = rule::axis(&call.sym, 1, &t)?;
    let shape = call.b.shape(index);
    let x = crop(call.b, x, &shape, Some(axis));
    Ok(vec![take_along(call.b, x, index, axis)])
}

/// `x` along `axis` at the positions of `index`; off the axis the sizes are equal.
pub fn take_along(b: &mut dyn Build, x: Id, index: Id, axis: usize) -> Id {
    let index = expand::positions(b, index);
    let (shape, dtype) = (b.shape(index), b.dtype(x));
    b.push(Prim::TakeAlong { axis }, &[x, index], shape, dtype)
}

pub const TAKE_ALONG_AXIS: Row = Row::new(
    "take_along_axis",
    &[req("x", ParamKind::Tensor), req("indices", ParamKind::Tensor), req("axis", ParamKind::Axis)],
    infer_along,
    lower_along,
)
.method()
.known_as(&["take_along_dim"])
.doc(
    "Element by element along an axis, as `gather`, with NumPy's order of arguments; off the axis the sizes broadcast.\n\n\
     ```tessera\nop.take_along_axis(x, op.argsort(x, axis=1), axis=1)\n```",
);

/// The shapes of both operands after broadcasting off the axis.
fn along_shape(cx: &mut InferCx, args: &[SymArg]) -> Result<(usize, Vec<Size>), OpError> {
    let (x, index) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    let axis = rule::axis(args, 2, x)?;
    rule::indices(index, 1)?;
    if x.rank() != index.rank() {
        return Err(OpError::new(
            Code::E0207,
            format!("positions of rank {} for a tensor of rank {}", index.rank(), x.rank()),
        )
        .arg(0, x.to_string())
        .arg(1, index.to_string()));
    }
    let without = |t: &TensorType| {
        let mut dims = t.shape.clone();
        dims[axis] = Size::constant(1);
        dims
    };
    let (a, b) = (without(x), without(index));
    let parts = [
        rule::Part { position: 0, dims: &a, operand: rule::Operand::Tensor(x) },
        rule::Part { position: 1, dims: &b, operand: rule::Operand::Tensor(index) },
    ];
    let mut shape = rule::broadcast(cx, &parts)?;
    shape[axis] = index.shape[axis].clone();
    Ok((axis, shape))
}

fn infer_along(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (_, shape) = along_shape(cx, args)?;
    rule::one(shape, rule::tensor(args, 0)?.dtype)
}

fn lower_along(call: &mut Call) -> Lowered {
    let (axis, _) = call.again(along_shape)?;
    let (x, index, shape) = (call.id(0)?, call.id(1)?, call.result().0);
    let b = &mut *call.b;
    let mut wide = shape.clone();
    wide[axis] = b.shape(x)[axis];
    let x = expand::broadcast_to(b, x, &wide);
    let index = expand::broadcast_to(b, index, &shape);
    Ok(vec![take_along(b, x, index, axis)])
}

pub const SCATTER_ADD: Row = Row::new(
    "scatter_add",
    &[
        req("x", ParamKind::Tensor),
        req("axis", ParamKind::Axis),
        req("index", ParamKind::Tensor),
        req("src", ParamKind::Operand),
    ],
    infer_scatter,
    lower_scatter,
)
.method()
.known_as(&["index_add"])
.doc(
    "`x` with the elements of `src` added at the positions given: `out[index[i, j], j] += src[i, j]` for axis 0, as \
     PyTorch's `scatter_add`.\n\n\
     Repeated positions add up in ascending order of `src`; types narrower than f32 add in f32. `src` has at least the \
     sizes of `index`, or is a number.\n\n```tessera\nop.scatter_add(op.zeros((n,)), 0, ids, values)\n```",
);

fn infer_scatter(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (x, index, src) = (rule::tensor(args, 0)?, rule::tensor(args, 2)?, rule::operand(args, 3)?);
    let axis = rule::axis(args, 1, x)?;
    aligned(cx, (0, x), (2, index), axis)?;
    if let Some(d) = x.dtype.filter(|d| *d == DType::Bool || d.is_complex()) {
        return Err(OpError::new(Code::E0205, format!("`scatter_add` adds numbers, not {d}")).arg(0, x.to_string()));
    }
    if let rule::Operand::Tensor(t) = src {
        let blame = |e: OpError| e.arg(2, index.to_string()).arg(3, t.to_string());
        if t.rank() != index.rank() {
            return Err(blame(OpError::new(
                Code::E0207,
                format!("values of rank {} for positions of rank {}", t.rank(), index.rank()),
            )));
        }
        for (d, (n, m)) in t.shape.iter().zip(&index.shape).enumerate() {
            let text = || format!("there are {m} positions along axis {d}, and {n} values");
            rule::require_reach(cx, n, m, Code::E0202, text, blame)?;
        }
    }
    let joined = rule::join(&[(0, rule::Operand::Tensor(x)), (3, src)])?;
    if let (Some(have), Some(d)) = (x.dtype, joined)
        && have != d
    {
        return Err(OpError::new(
            Code::E0206,
            format!("values of type {} do not fit exactly into a tensor of {have}", src.label()),
        )
        .arg(0, x.to_string())
        .arg(3, src.label())
        .help(format!("convert the values: `.to({have})`")));
    }
    rule::one(x.shape.clone(), x.dtype)
}

fn lower_scatter(call: &mut Call) -> Lowered {
    let (t, x, index) = (call.ty(0)?, call.id(0)?, call.id(2)?);
    let axis = rule::axis(&call.sym, 1, &t)?;
    let dtype = call.b.dtype(x);
    let wide = if dtype.is_float() { dtype.compute() } else { dtype };
    let at = call.b.shape(index);
    let src_shape = match call.args.get(3) {
        Some(Arg::Tensor(s)) => call.b.shape(*s),
        _ => at.clone(),
    };
    let src = call.operand(3, &src_shape, wide)?;
    let b = &mut *call.b;
    let (x, index) = (expand::cast(b, x, wide), expand::positions(b, index));
    let src = crop(b, src, &at, None);
    let shape = b.shape(x);
    // Only the leading part that the positions reach changes.
    let part = crop(b, x, &at, Some(axis));
    let reached = b.shape(part);
    let added = b.push(Prim::ScatterAddAlong { axis }, &[part, index, src], reached.clone(), wide);
    if reached == shape {
        return Ok(vec![added]);
    }
    let (start, step) = (vec![0; shape.len()], vec![1; shape.len()]);
    Ok(vec![b.push(Prim::UpdateSlice { start, step }, &[x, added], shape, wide)])
}

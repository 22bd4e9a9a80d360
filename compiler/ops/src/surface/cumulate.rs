//! `cumsum cumprod cummax cummin logcumsumexp`: running sums, products, extremes and logarithms of sums.

use super::expand;
use super::reduce::{no_complex, stepwise};
use super::row::{Call, Lowered, Row, accumulator, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;
use crate::prim::{Prim, Reduction};

const PARAMS: &[Param] = &[req("x", ParamKind::Tensor), opt("axis", ParamKind::Axis, Default::None)];

pub const CUMSUM: Row = Row::new("cumsum", PARAMS, |_, a, _| infer("cumsum", a), |c| lower(c, Reduction::Sum))
    .method()
    .known_as(&["cumulative_sum"])
    .signature("a b -> a b")
    .halves()
    .doc(
        "Running sum along an axis; without an axis, of the flattened tensor.\n\n\
         Element `i` is the sum of elements 0 to `i`, added in ascending order. Dtypes as for `sum`.\n\n\
         ```tessera\nop.cumsum(op.arange(4))    # [0 1 3 6]\n```",
    );

pub const CUMPROD: Row = Row::new("cumprod", PARAMS, |_, a, _| infer("cumprod", a), |c| lower(c, Reduction::Prod))
    .method()
    .known_as(&["cumulative_prod"])
    .signature("a b -> a b")
    .halves()
    .doc("Running product along an axis; without an axis, of the flattened tensor. Dtypes as for `sum`.");

pub const CUMMAX: Row = Row::new("cummax", PARAMS, |_, a, _| infer_extreme("cummax", a), |c| lower_extreme(c, Reduction::Max))
    .method()
    .known_as(&["maximum_accumulate", "cumulative_max"])
    .signature("a b -> a b")
    .doc(
        "The largest element so far along an axis; without an axis, of the flattened tensor. NaN stays.\n\n\
         Keeps the dtype. Among equals the cotangent goes to the last one.\n\n```tessera\nop.cummax(op.array([1, 3, 2]))    # [1 3 3]\n```",
    );

pub const CUMMIN: Row =
    Row::new("cummin", PARAMS, |_, a, _| infer_extreme("cummin", a), |c| lower_extreme(c, Reduction::Min))
        .method()
        .known_as(&["minimum_accumulate", "cumulative_min"])
        .signature("a b -> a b")
        .doc("The smallest element so far along an axis; without an axis, of the flattened tensor. As `cummax`.");

fn infer_extreme(name: &str, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    no_complex(name, x, 0)?;
    if rule::absent(args, 1) {
        return rule::one(vec![x.elems()], x.dtype);
    }
    rule::axis(args, 1, x)?;
    rule::one(x.shape.clone(), x.dtype)
}

/// The axis that the call names, and the operand in the shape of the result.
fn along(call: &mut Call) -> Result<(usize, Id), OpError> {
    let (t, x) = (call.ty(0)?, call.id(0)?);
    let shape = call.result().0;
    let axis = if rule::absent(&call.sym, 1) { 0 } else { rule::axis(&call.sym, 1, &t)? };
    Ok((axis, expand::reshape(call.b, x, &shape)))
}

fn lower_extreme(call: &mut Call, kind: Reduction) -> Lowered {
    let (axis, x) = along(call)?;
    let b = &mut *call.b;
    // Of bool the largest so far is whether any was true.
    let x = if b.dtype(x) == DType::Bool { expand::cast(b, x, DType::U8) } else { x };
    let (shape, dtype) = (b.shape(x), b.dtype(x));
    let y = b.push(Prim::Cumulate { kind, axis }, &[x], shape, dtype);
    b.derive(Derivative {
        inputs: vec![x],
        output: y,
        saved: vec![],
        pull: Arc::new(move |b, p| vec![Some(pull_extreme(b, p, axis))]),
    });
    Ok(vec![y])
}

/// Each cotangent goes to the last position so far that holds the extreme.
fn pull_extreme(b: &mut dyn Build, p: &Pulled, axis: usize) -> Id {
    let shape = b.shape(p.output);
    let holds = expand::map(b, MapOp::eq, &[p.inputs[0], p.output]);
    let at = expand::iota(b, &shape, axis);
    let first = expand::full(b, &shape, DType::I64, Scalar::I(0));
    let at = expand::select(b, holds, at, first);
    let at = b.push(Prim::Cumulate { kind: Reduction::Max, axis }, &[at], shape.clone(), DType::I64);
    let dtype = b.dtype(p.cotangent);
    let c = expand::cast(b, p.cotangent, dtype.compute());
    let zero = expand::like(b, c, 0.0);
    let sum = b.push(Prim::ScatterAddAlong { axis }, &[zero, at, c], shape, dtype.compute());
    expand::cast(b, sum, dtype)
}

pub const LOGCUMSUMEXP: Row = Row::new("logcumsumexp", PARAMS, |_, a, _| infer_log("logcumsumexp", a), lower_log)
    .method()
    .known_as(&["cumlogsumexp", "cumulative_logsumexp"])
    .signature("a b -> a b")
    .doc(
        "The logarithm of the running sum of exponentials along an axis; without an axis, of the flattened tensor.\n\n\
             Each element and what is before it are joined in pairs, then in fours, and so on, by `logaddexp`, so that \
             neither large nor very negative elements overflow. Ints become f32.\n\n\
             ```tessera\nop.logcumsumexp(log_weights)\n```",
    );

fn infer_log(name: &str, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    no_complex(name, x, 0)?;
    let dtype = rule::as_float(name, x, 0)?;
    if rule::absent(args, 1) {
        return rule::one(vec![x.elems()], dtype);
    }
    rule::axis(args, 1, x)?;
    rule::one(x.shape.clone(), dtype)
}

fn lower_log(call: &mut Call) -> Lowered {
    let (axis, x) = along(call)?;
    let b = &mut *call.b;
    let wide = super::row::wide_of(b.dtype(x));
    let mut y = expand::cast(b, x, wide);
    let (shape, dtype) = (b.shape(y), b.dtype(y));
    let count = shape[axis];
    let mut step = 1;
    while step < count {
        let mut before = shape.clone();
        before[axis] = step;
        let nothing = expand::full(b, &before, dtype, Scalar::F(f64::NEG_INFINITY));
        let moved = expand::slice(b, y, axis, 0, count - step);
        let moved = expand::concat(b, &[nothing, moved], axis);
        y = expand::map(b, MapOp::logaddexp, &[y, moved]);
        step *= 2;
    }
    Ok(vec![y])
}

fn infer(name: &str, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    no_complex(name, x, 0)?;
    let dtype = x.dtype.map(|d| if d.is_float() { d } else { DType::I64 });
    if rule::absent(args, 1) {
        return rule::one(vec![x.elems()], dtype);
    }
    rule::axis(args, 1, x)?;
    rule::one(x.shape.clone(), dtype)
}

fn lower(call: &mut Call, kind: Reduction) -> Lowered {
    let (t, x) = (call.ty(0)?, call.id(0)?);
    let shape = call.result().0;
    let axis = if rule::absent(&call.sym, 1) { 0 } else { rule::axis(&call.sym, 1, &t)? };
    let dtype = accumulator(call.b.dtype(x), call.hints);
    let x = expand::cast(call.b, x, dtype);
    let x = expand::reshape(call.b, x, &shape);
    let kind = stepwise(kind, dtype);
    Ok(vec![call.b.push(Prim::Cumulate { kind, axis }, &[x], shape, dtype)])
}

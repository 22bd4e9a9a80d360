//! `softmax log_softmax logsumexp`: exponentials relative to the largest element.

use super::expand;
use super::reduce::{PARAMS as REDUCE, no_complex, not_empty};
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;
use crate::prim::Reduction;

const PARAMS: &[Param] = &[req("x", ParamKind::Tensor), opt("axis", ParamKind::Axis, Default::Int(-1))];

pub const SOFTMAX: Row = Row::new("softmax", PARAMS, |_, a, _| infer("softmax", a), |c| lower(c, false))
    .method()
    .signature("a b -> a b")
    .doc(
        "Exponentials along an axis, multiplied by the reciprocal of their sum.\n\n\
         The largest element is subtracted first. Computed in f32 for narrower floats and rounded once; ints become f32. \
         A slice of which every element is -inf gives NaN.\n\n```tessera\nop.softmax(scores, axis=-1)\n```",
    );

pub const LOG_SOFTMAX: Row = Row::new("log_softmax", PARAMS, |_, a, _| infer("log_softmax", a), |c| lower(c, true))
    .method()
    .known_as(&["logsoftmax"])
    .signature("a b -> a b")
    .doc("The logarithm of `softmax`, without forming the quotient. Dtypes as for `softmax`.");

pub const LOGSUMEXP: Row = Row::new("logsumexp", REDUCE, infer_sum, lower_sum)
    .method()
    .known_as(&["log_sum_exp", "lse"])
    .signature("a b -> a")
    .sum_of(&[0])
    .doc(
        "Logarithm of the sum of exponentials over an axis, a tuple of axes, or all elements.\n\n\
         Stable: neither large nor very negative elements overflow. A slice of which every element is -inf gives -inf.\n\n\
         ```tessera\nop.logsumexp(x, axis=-1)\n```",
    );

fn infer(name: &str, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::axis(args, 1, x)?;
    rule::one(x.shape.clone(), rule::as_float(name, x, 0)?)
}

fn lower(call: &mut Call, log: bool) -> Lowered {
    let t = call.ty(0)?;
    let axis = rule::axis(&call.sym, 1, &t)?;
    let x = call.wide(0)?;
    if t.shape.iter().any(Size::is_zero) {
        return Ok(vec![x]);
    }
    Ok(vec![normalised(call.b, x, axis, log)])
}

/// Exponentials along an axis over their sum. `x` is f32 or f64, and not empty.
pub fn softmax(b: &mut dyn Build, x: Id, axis: usize) -> Id {
    if b.shape(x).contains(&0) { x } else { normalised(b, x, axis, false) }
}

fn normalised(b: &mut dyn Build, x: Id, axis: usize, log: bool) -> Id {
    let top = expand::reduce(b, x, Reduction::Max, &[axis], true);
    let shifted = expand::binary(b, MapOp::sub, x, top);
    let exps = expand::unary(b, MapOp::exp, shifted);
    let sum = expand::reduce(b, exps, Reduction::Sum, &[axis], true);
    let y = if log {
        let log_sum = expand::unary(b, MapOp::log, sum);
        expand::binary(b, MapOp::sub, shifted, log_sum)
    } else {
        // At least 1: its reciprocal is a normal number.
        let inverse = expand::unary(b, MapOp::reciprocal, sum);
        expand::binary(b, MapOp::mul, exps, inverse)
    };
    let pull: Pull = match log {
        true => Arc::new(move |b, p| vec![Some(pull_log_softmax(b, p, axis))]),
        false => Arc::new(move |b, p| vec![Some(pull_softmax(b, p, axis))]),
    };
    b.derive(Derivative { inputs: vec![x], output: y, saved: vec![], pull });
    y
}

/// `x̄ = y∘(c − Σ c∘y)`.
fn pull_softmax(b: &mut dyn Build, p: &Pulled, axis: usize) -> Id {
    let products = expand::map(b, MapOp::mul, &[p.cotangent, p.output]);
    let sum = expand::reduce(b, products, Reduction::Sum, &[axis], true);
    let rest = expand::binary(b, MapOp::sub, p.cotangent, sum);
    expand::map(b, MapOp::mul, &[p.output, rest])
}

/// `x̄ = c − exp(y)·Σ c`.
fn pull_log_softmax(b: &mut dyn Build, p: &Pulled, axis: usize) -> Id {
    let sum = expand::reduce(b, p.cotangent, Reduction::Sum, &[axis], true);
    let softmax = expand::unary(b, MapOp::exp, p.output);
    let part = expand::binary(b, MapOp::mul, softmax, sum);
    expand::map(b, MapOp::sub, &[p.cotangent, part])
}

fn infer_sum(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    no_complex("logsumexp", x, 0)?;
    let axes = rule::axes(args, 1, x)?;
    not_empty("logsumexp", x, &axes)?;
    rule::one(rule::reduced(&x.shape, &axes, rule::flag(args, 2)?), rule::as_float("logsumexp", x, 0)?)
}

fn lower_sum(call: &mut Call) -> Lowered {
    let t = call.ty(0)?;
    let axes = rule::axes(&call.sym, 1, &t)?;
    let x = call.wide(0)?;
    let out = call.result().0;
    let sum = log_sum_exp(call.b, x, &axes);
    Ok(vec![expand::reshape(call.b, sum, &out)])
}

/// `log(sum(exp(x)))` over `axes`, which stay as dims of size 1. `x` is f32 or f64.
pub fn log_sum_exp(b: &mut dyn Build, x: Id, axes: &[usize]) -> Id {
    let top = expand::reduce(b, x, Reduction::Max, axes, true);
    // An infinite maximum would give inf - inf.
    let finite = expand::unary(b, MapOp::isfinite, top);
    let zero = expand::like(b, top, 0.0);
    let base = expand::select(b, finite, top, zero);
    let shifted = expand::binary(b, MapOp::sub, x, base);
    let exps = expand::unary(b, MapOp::exp, shifted);
    let sum = expand::reduce(b, exps, Reduction::Sum, axes, true);
    let log = expand::unary(b, MapOp::log, sum);
    let z = expand::binary(b, MapOp::add, log, base);
    b.derive(Derivative { inputs: vec![x], output: z, saved: vec![], pull: Arc::new(pull_log_sum_exp) });
    z
}

/// `x̄ = c·exp(x − z)`; zero where every element is -inf. Where one is +inf it gets NaN, as its share is ∞/∞, and the
/// others zero, as in PyTorch and JAX.
fn pull_log_sum_exp(b: &mut dyn Build, p: &Pulled) -> Vec<Option<Id>> {
    let zero = expand::like(b, p.output, 0.0);
    let least = expand::like(b, p.output, f64::NEG_INFINITY);
    let nothing = expand::map(b, MapOp::eq, &[p.output, least]);
    let base = expand::select(b, nothing, zero, p.output);
    let shifted = expand::binary(b, MapOp::sub, p.inputs[0], base);
    let weights = expand::unary(b, MapOp::exp, shifted);
    vec![Some(expand::binary(b, MapOp::mul, weights, p.cotangent))]
}

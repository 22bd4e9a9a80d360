//! `cross_entropy mse l1`: losses.

use super::embedding::take;
use super::expand;
use super::gather::take_along;
use super::reduce::not_empty;
use super::row::{Call, Lowered, Row, opt, req, wide_of};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;
use crate::prim::Reduction;

const WORDS: &[&str] = &["mean", "sum", "none"];
const REDUCTION: Param = opt("reduction", ParamKind::Str, Default::Str("mean"));

pub const CROSS_ENTROPY: Row = Row::new(
    "cross_entropy",
    &[
        req("logits", ParamKind::Tensor),
        req("targets", ParamKind::Tensor),
        REDUCTION,
        Param { name: "axis", kind: ParamKind::Axis, default: Default::Int(-1), keyword_only: true },
    ],
    infer_cross,
    lower_cross,
)
.known_as(&["softmax_cross_entropy", "nll_loss", "CrossEntropyLoss"])
.signature("b v, b -> ")
.sum_of(&[0])
.doc(
    "Cross entropy of unnormalised log-probabilities against targets.\n\n\
     Targets are class positions (ints, the shape of `logits` without the class axis) or probabilities (floats, the shape \
     of `logits`). Classes lie along `axis`, the last one by default; PyTorch has them at axis 1. `reduction` is \
     `\"mean\"` over all rows, `\"sum\"` or `\"none\"`. f32 inside for narrower types.\n\n\
     ```tessera\nop.cross_entropy(logits, tokens)    # Tensor[B, T, V, f32], Tensor[B, T, i64] -> Tensor[f32]\n```",
);

fn infer_cross(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (logits, targets) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    let axis = rule::axis(args, 3, logits)?;
    not_empty("cross_entropy", logits, &[axis])?;
    let word = rule::choice(args, 2, WORDS)?;
    let rows = rule::reduced(&logits.shape, &[axis], false);
    let mut dtype = rule::as_float("cross_entropy", logits, 0)?;
    if targets.dtype == Some(DType::Bool) || targets.dtype == Some(DType::C64) {
        return Err(OpError::new(Code::E0205, "targets are class positions (ints) or probabilities (floats)")
            .arg(1, targets.to_string()));
    }
    if by_position(targets) {
        let expected = rule::typed(rows.clone(), targets.dtype);
        if targets.rank() != rows.len() {
            let error = OpError::new(Code::E0207, format!("one class position for each row is needed: {expected}"));
            return Err(error.arg(0, logits.to_string()).arg(1, targets.to_string()));
        }
        for (want, have) in rows.iter().zip(&targets.shape) {
            let text = || format!("one class position for each row is needed: {expected}");
            rule::require(cx, want, have, Code::E0202, text, |e| {
                e.arg(0, logits.to_string()).arg(1, targets.to_string())
            })?;
        }
    } else {
        rule::same_shape(cx, (0, logits), (1, targets))?;
        dtype = rule::join_tensors(&[(0, logits), (1, targets)])?;
    }
    rule::one(if word == "none" { rows } else { vec![] }, dtype)
}

/// Targets of an open dtype count as positions where they have one dim less.
fn by_position(targets: &TensorType) -> bool {
    targets.dtype.is_none_or(DType::is_int)
}

fn lower_cross(call: &mut Call) -> Lowered {
    let (t, target_type, targets) = (call.ty(0)?, call.ty(1)?, call.id(1)?);
    let axis = rule::axis(&call.sym, 3, &t)?;
    let x = call.wide(0)?;
    let b = &mut *call.b;
    // log sum exp(x - m) - (x - m)[target], with m the largest element of the row.
    let top = expand::reduce(b, x, Reduction::Max, &[axis], true);
    let shifted = expand::binary(b, MapOp::sub, x, top);
    let exps = expand::unary(b, MapOp::exp, shifted);
    let sum = expand::reduce(b, exps, Reduction::Sum, &[axis], true);
    let log = expand::unary(b, MapOp::log, sum);
    let losses = if by_position(&target_type) {
        // From the logits themselves, so that the row of differences stays inside one kernel.
        let index = expand::unsqueeze(b, targets, &[axis]);
        let picked = take_along(b, x, index, axis);
        let picked = expand::map(b, MapOp::sub, &[picked, top]);
        let losses = expand::map(b, MapOp::sub, &[log, picked]);
        let mut rows = b.shape(losses);
        rows.remove(axis);
        let losses = expand::reshape(b, losses, &rows);
        let pull: Pull = Arc::new(move |b, p| vec![Some(pull_cross(b, p, axis))]);
        b.derive(Derivative { inputs: vec![x], output: losses, saved: vec![index, top, log], pull });
        losses
    } else {
        b.hold(top);
        let wide = DType::join(b.dtype(x), wide_of(b.dtype(targets))).unwrap_or(DType::F64);
        let surprise = expand::binary(b, MapOp::sub, log, shifted);
        let (p, surprise) = (expand::cast(b, targets, wide), expand::cast(b, surprise, wide));
        let weighted = expand::map(b, MapOp::mul, &[p, surprise]);
        expand::reduce(b, weighted, Reduction::Sum, &[axis], false)
    };
    let word = rule::text(&call.sym, 2)?.to_owned();
    Ok(vec![reduced(b, losses, &word)])
}

/// `x̄ = (softmax(x) − onehot(target))·c`, in one pass. Saved: targets, maxima and logarithms of the
/// sums, as columns.
fn pull_cross(b: &mut dyn Build, p: &Pulled, axis: usize) -> Id {
    let (x, [index, top, log]) = (p.inputs[0], [p.saved[0], p.saved[1], p.saved[2]]);
    let shape = b.shape(x);
    let shifted = expand::binary(b, MapOp::sub, x, top);
    let shifted = expand::binary(b, MapOp::sub, shifted, log);
    let softmax = expand::unary(b, MapOp::exp, shifted);
    // Read from the numbers of the classes: negative targets count from the end, and others than classes stop the program
    // though the loss itself may not be computed.
    let column = b.shape(index);
    let numbers = expand::iota(b, &[&vec![1; axis][..], &[shape[axis]]].concat(), axis);
    let index = take(b, numbers, index, axis);
    let index = expand::reshape(b, index, &column);
    let index = expand::broadcast_to(b, index, &shape);
    let here = expand::iota(b, &shape, axis);
    let hit = expand::map(b, MapOp::eq, &[here, index]);
    let one = expand::like(b, x, 1.0);
    let less = expand::map(b, MapOp::sub, &[softmax, one]);
    let difference = expand::select(b, hit, less, softmax);
    let column = expand::unsqueeze(b, p.cotangent, &[axis]);
    expand::binary(b, MapOp::mul, difference, column)
}

fn reduced(b: &mut dyn Build, losses: Id, word: &str) -> Id {
    let axes: Vec<usize> = (0..b.shape(losses).len()).collect();
    match word {
        "none" => losses,
        "sum" => expand::reduce(b, losses, Reduction::Sum, &axes, false),
        _ => {
            let mean = expand::mean(b, losses, &axes);
            expand::reshape(b, mean, &[])
        }
    }
}

const PAIR: &[Param] = &[req("x", ParamKind::Tensor), req("y", ParamKind::Tensor), REDUCTION];

pub const MSE: Row = Row::new("mse", PAIR, |cx, a, _| infer_pair("mse", cx, a), |c| lower_pair(c, MapOp::square))
    .known_as(&["mse_loss", "mean_squared_error", "MSELoss"])
    .signature("b, b -> ")
    .sum_of(&[0, 1])
    .doc(
        "Mean square difference of two tensors of one shape.\n\n\
         `reduction` is `\"mean\"`, `\"sum\"` or `\"none\"`. f32 inside for narrower types.\n\n```tessera\nop.mse(prediction, y)\n```",
    );

pub const L1: Row = Row::new("l1", PAIR, |cx, a, _| infer_pair("l1", cx, a), |c| lower_pair(c, MapOp::abs))
    .known_as(&["mae", "l1_loss", "mean_absolute_error", "L1Loss"])
    .signature("b, b -> ")
    .sum_of(&[0, 1])
    .doc("Mean absolute difference of two tensors of one shape. As `mse`.");

fn infer_pair(name: &str, cx: &mut InferCx, args: &[SymArg]) -> Inferred {
    let (x, y) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    let word = rule::choice(args, 2, WORDS)?;
    rule::as_float(name, x, 0)?;
    rule::same_shape(cx, (0, x), (1, y))?;
    let dtype = rule::join_tensors(&[(0, x), (1, y)])?.map(|d| if d.is_float() { d } else { DType::F32 });
    rule::one(if word == "none" { x.shape.clone() } else { vec![] }, dtype)
}

fn lower_pair(call: &mut Call, distance: MapOp) -> Lowered {
    let (tx, ty) = (call.ty(0)?, call.ty(1)?);
    let wide = wide_of(rule::join_tensors(&[(0, &tx), (1, &ty)])?.unwrap_or(DType::F32));
    let (x, y) = (call.id(0)?, call.id(1)?);
    let b = &mut *call.b;
    let (x, y) = (expand::cast(b, x, wide), expand::cast(b, y, wide));
    let difference = expand::map(b, MapOp::sub, &[x, y]);
    let losses = expand::unary(b, distance, difference);
    let word = rule::text(&call.sym, 2)?.to_owned();
    Ok(vec![reduced(b, losses, &word)])
}

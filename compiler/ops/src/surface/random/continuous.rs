//! Draws by the inverse of a distribution function: exponential, Gumbel, Laplace, logistic, Cauchy, truncated normal.

use super::parameters::{self, known};
use super::{DTYPE, KEY_PARAM, SHAPE, float_dtype, int_op, key_arg, two_words, unit, words};
use crate::map::MapOp;
use crate::surface::row::{Call, Lowered, Row, req};
use crate::surface::rule::{self, Inferred};
use crate::surface::*;

const STANDARD: &[Param] = &[KEY_PARAM, SHAPE, DTYPE];

fn infer(cx: &mut InferCx, args: &[SymArg]) -> Inferred {
    key_arg(cx, args, 0)?;
    rule::one(rule::shape(args, 1)?, Some(float_dtype(args, 2)?))
}

/// The dtype in which a draw is computed, and its uniform numbers in it.
fn uniform(call: &mut Call) -> Result<Id, OpError> {
    let (key, shape) = (call.id(0)?, call.result().0);
    let dtype = float_dtype(&call.sym, 2)?.compute();
    Ok(unit(call.b, key, &shape, dtype))
}

/// `−ln(1 − u)`.
pub fn exponential(b: &mut dyn Build, u: Id) -> Id {
    let minus = expand::unary(b, MapOp::neg, u);
    let log = expand::unary(b, MapOp::log1p, minus);
    expand::unary(b, MapOp::neg, log)
}

/// `u`, and half of the step between its values where it is 0, so that its logarithm is finite.
fn above_zero(b: &mut dyn Build, u: Id) -> Id {
    let step = if b.dtype(u) == DType::F64 { 2f64.powi(-54) } else { 2f64.powi(-25) };
    expand::binary_const(b, MapOp::maximum, u, step)
}

/// `−ln(−ln u)`.
pub fn gumbel(b: &mut dyn Build, u: Id) -> Id {
    // Of 1 − u, whose values are as many, so that ln has the digits of small ones.
    let u = above_zero(b, u);
    let e = exponential(b, u);
    let log = expand::unary(b, MapOp::log, e);
    expand::unary(b, MapOp::neg, log)
}

pub const EXPONENTIAL: Row = Row::new("random.exponential", STANDARD, |cx, args, _| infer(cx, args), |call| {
    let u = uniform(call)?;
    Ok(vec![exponential(call.b, u)])
})
.known_as(&["random.standard_exponential", "random.expovariate"])
.doc(
    "Exponential numbers with mean 1; f32 unless `dtype` says otherwise. Multiply by the mean, or divide by the rate.\n\n\
     `-log(1 - u)` of a uniform number: the largest f32 number is about 16.6.\n\n\
     ```tessera\nrandom.exponential(key, (1000,)) / rate\n```",
);

pub const GUMBEL: Row = Row::new(
    "random.gumbel",
    STANDARD,
    |cx, args, _| infer(cx, args),
    |call| {
        let u = uniform(call)?;
        Ok(vec![gumbel(call.b, u)])
    },
)
.doc(
    "Numbers of the standard Gumbel distribution, `-log(-log(u))`; f32 unless `dtype` says otherwise.\n\n\
     The position of the largest of `logits + random.gumbel(…)` is a draw from these logits.\n\n\
     ```tessera\nrandom.gumbel(key, (8, classes))\n```",
);

pub const LOGISTIC: Row = Row::new("random.logistic", STANDARD, |cx, args, _| infer(cx, args), |call| {
    let u = uniform(call)?;
    let u = above_zero(call.b, u);
    Ok(vec![expand::unary(call.b, MapOp::logit, u)])
})
.doc("Numbers of the standard logistic distribution, `log(u / (1 - u))`; f32 unless `dtype` says otherwise.\n\n```tessera\nrandom.logistic(key, (1000,))\n```");

pub const CAUCHY: Row = Row::new("random.cauchy", STANDARD, |cx, args, _| infer(cx, args), |call| {
    let u = uniform(call)?;
    let b = &mut *call.b;
    let centred = expand::binary_const(b, MapOp::sub, u, 0.5);
    let angle = expand::binary_const(b, MapOp::mul, centred, std::f64::consts::PI);
    Ok(vec![expand::unary(b, MapOp::tan, angle)])
})
.known_as(&["random.standard_cauchy"])
.doc("Numbers of the standard Cauchy distribution, `tan(π (u - 1/2))`; f32 unless `dtype` says otherwise.\n\n```tessera\nrandom.cauchy(key, (1000,))\n```");

/// One bit for each element that no uniform number of the same words has, as 0 or 1.
fn spare_bit(b: &mut dyn Build, key: Id, shape: &[u64], dtype: DType) -> Id {
    let word = if dtype == DType::F64 { two_words(b, key, shape).1 } else { words(b, key, shape) };
    int_op(b, MapOp::bit_and, word, 1)
}

/// `x` where the bit is 1, `−x` where it is 0.
fn signed(b: &mut dyn Build, bit: Id, x: Id) -> Id {
    let set = expand::cast(b, bit, DType::Bool);
    let minus = expand::unary(b, MapOp::neg, x);
    expand::select(b, set, x, minus)
}

pub const LAPLACE: Row = Row::new(
    "random.laplace",
    STANDARD,
    |cx, args, _| infer(cx, args),
    |call| {
        let u = uniform(call)?;
        let (key, shape) = (call.id(0)?, call.result().0);
        let b = &mut *call.b;
        let size = exponential(b, u);
        let dtype = b.dtype(u);
        let bit = spare_bit(b, key, &shape, dtype);
        Ok(vec![signed(b, bit, size)])
    },
)
.doc(
    "Numbers of the standard Laplace distribution, an exponential number of either sign; f32 unless `dtype` says \
     otherwise.\n\n```tessera\nloc + scale * random.laplace(key, (1000,))\n```",
);

pub const RADEMACHER: Row = Row::new("random.rademacher", STANDARD, infer_rademacher, |call| {
    let (key, shape) = (call.id(0)?, call.result().0);
    let dtype = rule::dtype(&call.sym, 2)?.unwrap_or(DType::I64);
    let b = &mut *call.b;
    let bit = spare_bit(b, key, &shape, DType::F32);
    let one = expand::full(b, &shape, dtype, Scalar::I(1));
    Ok(vec![signed(b, bit, one)])
})
.doc("1 or -1, either with probability 1/2; i64 unless `dtype` says otherwise.\n\n```tessera\nrandom.rademacher(key, (8,), dtype=f32)\n```");

fn infer_rademacher(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    key_arg(cx, args, 0)?;
    let dtype = rule::dtype(args, 2)?.unwrap_or(DType::I64);
    if matches!(dtype, DType::Bool | DType::U8) || dtype.is_complex() {
        return Err(OpError::new(Code::E0214, format!("-1 is no value of {dtype}")).arg(2, dtype.name()));
    }
    rule::one(rule::shape(args, 1)?, Some(dtype))
}

const BOUNDS: &[usize] = &[1, 2];

pub const TRUNCATED_NORMAL: Row = Row::new(
    "random.truncated_normal",
    &[
        KEY_PARAM,
        req("lower", ParamKind::Operand),
        req("upper", ParamKind::Operand),
        parameters::SHAPE,
        parameters::DTYPE,
    ],
    |cx, args, _| rule::one(parameters::shape(cx, args, BOUNDS, 3)?, parameters::dtype(args, BOUNDS, 4)?),
    lower_truncated,
)
.known_as(&["random.trunc_normal", "random.truncnorm"])
.doc(
    "Standard normal numbers under the condition that they lie between `lower` and `upper`, numbers or tensors that \
     broadcast to `shape` (by default their own).\n\n\
     The inverse of the distribution function at a uniform number between its values at the bounds, in f64 and on the side \
     of the tail, so that bounds on one side are kept as far as the function has digits, about 37 from 0. The derivative by the bounds is that of the inverse.\n\n\
     ```tessera\nrandom.truncated_normal(key, -2.0, 2.0, (D, 4*D))\n```",
);

fn lower_truncated(call: &mut Call) -> Lowered {
    let (key, shape) = (call.id(0)?, call.result().0);
    let dtype = parameters::dtype(&call.sym, BOUNDS, 4)?.unwrap_or(DType::F32);
    let bounds = parameters::values(call, BOUNDS, DType::F64)?;
    let both_known = known(call, 1).zip(known(call, 2));
    let b = &mut *call.b;
    let (low, high) = (bounds[0], bounds[1]);
    let u = unit(b, key, &shape, dtype.compute());
    let u = expand::cast(b, u, DType::F64);
    let whole = |b: &mut dyn Build, p: Id, q: Id| {
        let span = expand::binary(b, MapOp::sub, q, p);
        let part = expand::binary(b, MapOp::mul, u, span);
        let at = expand::binary(b, MapOp::add, part, p);
        expand::unary(b, MapOp::ndtri, at)
    };
    let of = |b: &mut dyn Build, x: Id| expand::unary(b, MapOp::ndtr, x);
    let left = {
        let (p, q) = (of(b, low), of(b, high));
        whole(b, p, q)
    };
    // The same from the other side where the bounds lie to the right of 0.
    let right = |b: &mut dyn Build| {
        let (low, high) = (expand::unary(b, MapOp::neg, low), expand::unary(b, MapOp::neg, high));
        let (p, q) = (of(b, low), of(b, high));
        let y = whole(b, p, q);
        expand::unary(b, MapOp::neg, y)
    };
    let y = match both_known {
        Some((low, high)) if low + high <= 0.0 => left,
        Some(_) => right(b),
        None => {
            let right = right(b);
            let sum = expand::binary(b, MapOp::add, low, high);
            let zero = expand::like(b, sum, 0.0);
            let on_right = expand::map(b, MapOp::gt, &[sum, zero]);
            let on_right = expand::broadcast_to(b, on_right, &shape);
            expand::select(b, on_right, right, left)
        }
    };
    let y = expand::binary(b, MapOp::maximum, y, low);
    Ok(vec![expand::binary(b, MapOp::minimum, y, high)])
}

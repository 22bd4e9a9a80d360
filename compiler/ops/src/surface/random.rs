//! The module `random`: numbers from keys by Philox 4x32-10 (Salmon et al., 2011).
//!
//! A key is an i64 tensor of two 32-bit words. Word `i` depends on the key and `i` alone, so numbers are the same on every
//! device, mesh and thread count; element `i` of `n` that needs two words takes `i` and `n + i`. A key is used
//! once: [`SPLIT`] makes new ones.

mod parameters;
mod continuous;
mod gamma;
mod counts;
mod weights;

pub use continuous::{CAUCHY, EXPONENTIAL, GUMBEL, LAPLACE, LOGISTIC, RADEMACHER, TRUNCATED_NORMAL};
pub use counts::{BINOMIAL, CATEGORICAL, GEOMETRIC, POISSON};
pub use gamma::{BETA, CHISQUARE, DIRICHLET, GAMMA, LOGGAMMA, T};
pub use weights::{CHOICE, PERMUTATION};

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred, Operand};
use super::*;
use crate::map::MapOp;
use crate::prim::Prim;
use tessera_abi::check::{Check, range_refused};

const KEY_PARAM: Param = req("key", ParamKind::Key);
const SHAPE: Param = req("shape", ParamKind::Shape);
const DTYPE: Param = opt("dtype", ParamKind::DType, Default::None);

/// Words that keep the streams of `split` and `fold_in` apart from the numbers of a key.
const SPLIT_TAG: i64 = 0x7370_6c69;
const FOLD_TAG: i64 = 0x666f_6c64;
const LOW_WORD: i64 = 0xffff_ffff;

/// Checks a key argument.
pub fn key_arg(cx: &mut InferCx, args: &[SymArg], i: usize) -> Result<(), OpError> {
    let key = rule::tensor(args, i)?;
    let error = || {
        OpError::new(Code::E0204, "a random key is needed here: an i64 tensor of shape (2,)")
            .arg(i, key.to_string())
            .help("make one with `random.key(0)`, several with `random.split(key, n)`")
    };
    if key.dtype.is_some_and(|d| d != DType::I64) || key.rank() != 1 {
        return Err(error());
    }
    cx.require_equal(&key.shape[0], &Size::constant(2)).map_err(|_| error())
}

/// Words of 32 bits as i64, one for each element of the shape.
fn words(b: &mut dyn Build, key: Id, shape: &[u64]) -> Id {
    b.push(Prim::RandomBits, &[key], shape.to_vec(), DType::I64)
}

fn int_op(b: &mut dyn Build, op: MapOp, x: Id, n: i64) -> Id {
    let shape = b.shape(x);
    let y = expand::full(b, &shape, DType::I64, Scalar::I(n));
    expand::map(b, op, &[x, y])
}

/// Two independent words for each element of the shape.
fn two_words(b: &mut dyn Build, key: Id, shape: &[u64]) -> (Id, Id) {
    let all = words(b, key, &[&[2], shape].concat());
    let part = |b: &mut dyn Build, i: u64| {
        let x = expand::slice(b, all, 0, i, 1);
        expand::reshape(b, x, shape)
    };
    (part(b, 0), part(b, 1))
}

/// Uniform integers in `0 .. 2**63`.
fn wide_words(b: &mut dyn Build, key: Id, shape: &[u64]) -> Id {
    let (high, low) = two_words(b, key, shape);
    let high = int_op(b, MapOp::shr, high, 1);
    let high = int_op(b, MapOp::shl, high, 32);
    expand::map(b, MapOp::bit_or, &[high, low])
}

/// Uniform numbers in `[0, 1)` with as many bits as the dtype's significand has: every value
/// is exact, so 1 is never reached by rounding.
pub fn unit(b: &mut dyn Build, key: Id, shape: &[u64], dtype: DType) -> Id {
    if dtype == DType::F64 {
        let (high, low) = two_words(b, key, shape);
        let high = int_op(b, MapOp::shr, high, 5);
        let high = int_op(b, MapOp::shl, high, 26);
        let low = int_op(b, MapOp::shr, low, 6);
        let both = expand::map(b, MapOp::bit_or, &[high, low]);
        let x = expand::cast(b, both, DType::F64);
        return expand::binary_const(b, MapOp::mul, x, 2f64.powi(-53));
    }
    let bits = match dtype {
        DType::F16 => 11,
        DType::Bf16 => 8,
        _ => 24,
    };
    let x = words(b, key, shape);
    let x = int_op(b, MapOp::shr, x, 32 - bits);
    // It fits i32, of which a vector holds twice as many.
    let x = expand::cast(b, x, DType::I32);
    let x = expand::cast(b, x, DType::F32);
    let x = expand::binary_const(b, MapOp::mul, x, 2f64.powi(-(bits as i32)));
    expand::cast(b, x, dtype)
}

/// The dtype of random floats: f32 by default.
fn float_dtype(args: &[SymArg], i: usize) -> Result<DType, OpError> {
    let dtype = rule::dtype(args, i)?.unwrap_or(DType::F32);
    if matches!(dtype, DType::F64 | DType::F32 | DType::Bf16 | DType::F16) {
        return Ok(dtype);
    }
    let error =
        OpError::new(Code::E0214, format!("random floats are f64, f32, bf16 or f16, not {dtype}")).arg(i, dtype.name());
    Err(if dtype.is_int() {
        error.help("for ints: `random.randint(key, shape, low, high)`")
    } else {
        error.help("draw f32 and convert: `.to(…)`")
    })
}

pub const KEY: Row = Row::new("random.key", &[req("seed", ParamKind::Operand)], infer_key, lower_key)
    .known_as(&["random.PRNGKey", "random.seed", "random.manual_seed", "random.default_rng"])
    .doc("A key from an int: its low and its high 32 bits.\n\n```tessera\nkey = random.key(0)\n```");

fn infer_key(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let is_int = match rule::number(args, 0)? {
        Operand::Weak(w) => w == Weak::Int,
        Operand::Tensor(t) => t.dtype.is_none_or(DType::is_int),
    };
    if !is_int {
        return Err(OpError::new(Code::E0204, "a seed is an int").arg(0, rule::describe(args.first())));
    }
    rule::one(vec![Size::constant(2)], Some(DType::I64))
}

/// The two words of an int, as a key.
fn key_of(b: &mut dyn Build, n: Id) -> Id {
    let low = int_op(b, MapOp::bit_and, n, LOW_WORD);
    let high = int_op(b, MapOp::shr, n, 32);
    let high = int_op(b, MapOp::bit_and, high, LOW_WORD);
    let (low, high) = (expand::reshape(b, low, &[1]), expand::reshape(b, high, &[1]));
    expand::concat(b, &[low, high], 0)
}

fn lower_key(call: &mut Call) -> Lowered {
    let seed = call.operand(0, &[], DType::I64)?;
    Ok(vec![key_of(call.b, seed)])
}

pub const SPLIT: Row = Row::new(
    "random.split",
    &[KEY_PARAM, opt("num", ParamKind::Int, Default::Int(2))],
    |cx, args, _| {
        key_arg(cx, args, 0)?;
        let n = rule::int(args, 1)?;
        if n.as_const().is_some_and(|v| v < 0) {
            return Err(rule::negative(n, 1));
        }
        rule::one(vec![n.clone(), Size::constant(2)], Some(DType::I64))
    },
    |call| {
        let (key, shape) = (call.id(0)?, call.result().0);
        let key = tagged(call.b, key, SPLIT_TAG);
        Ok(vec![words(call.b, key, &shape)])
    },
)
.doc(
    "`num` new keys from one, as the rows of a tensor. The old key should not be used again.\n\n\
     The words are Philox's own output for the key, in a stream apart from the one that gives numbers.\n\n\
     ```tessera\nk1, k2 = random.split(key)\n```",
);

/// The key of a stream apart.
fn tagged(b: &mut dyn Build, key: Id, tag: i64) -> Id {
    let zero = expand::full(b, &[1], DType::I64, Scalar::I(0));
    let tag = expand::full(b, &[1], DType::I64, Scalar::I(tag));
    let tag = expand::concat(b, &[zero, tag], 0);
    expand::map(b, MapOp::bit_xor, &[key, tag])
}

pub const FOLD_IN: Row = Row::new(
    "random.fold_in",
    &[KEY_PARAM, req("data", ParamKind::Operand)],
    |cx, args, hints| {
        key_arg(cx, args, 0)?;
        infer_key(cx, &args[1..], hints).map_err(|mut e| {
            e.args.iter_mut().for_each(|(i, _)| *i += 1);
            e
        })
    },
    |call| {
        let (key, data) = (call.id(0)?, call.operand(1, &[], DType::I64)?);
        let b = &mut *call.b;
        // The key is mixed before the data meets it: else keys 0 and 1 with data 1 and 0 would agree.
        let key = tagged(b, key, FOLD_TAG);
        let mixed = words(b, key, &[2]);
        let data = key_of(b, data);
        let both = expand::map(b, MapOp::bit_xor, &[mixed, data]);
        Ok(vec![words(b, both, &[2])])
    },
)
.doc("A new key from a key and an int, for example the number of a step or layer.\n\n```tessera\nk = random.fold_in(key, step)\n```");

pub const UNIFORM: Row = Row::new(
    "random.uniform",
    &[
        KEY_PARAM,
        SHAPE,
        opt("low", ParamKind::Float, Default::Float(0.0)),
        opt("high", ParamKind::Float, Default::Float(1.0)),
        DTYPE,
    ],
    |cx, args, _| {
        key_arg(cx, args, 0)?;
        rule::float(args, 2)?;
        rule::float(args, 3)?;
        rule::one(rule::shape(args, 1)?, Some(float_dtype(args, 4)?))
    },
    lower_uniform,
)
.known_as(&["random.rand", "random.random"])
.doc(
    "Uniform numbers from `low` (included) to `high`; f32 unless `dtype` says otherwise.\n\n\
     24 random bits for f32, 53, 11 and 8 for f64, f16 and bf16. With the default bounds 1 is never drawn; with others \
     rounding may give `high`.\n\n```tessera\nrandom.uniform(key, (1000,))\n```",
);

fn lower_uniform(call: &mut Call) -> Lowered {
    let key = call.id(0)?;
    let shape = call.result().0;
    let dtype = float_dtype(&call.sym, 4)?;
    let u = unit(call.b, key, &shape, dtype);
    let is = |arg: Option<&Arg>, v: f64| match arg {
        Some(Arg::Float(x)) => *x == v,
        Some(Arg::Scalar(Scalar::F(x))) => *x == v,
        Some(Arg::Int(n) | Arg::Scalar(Scalar::I(n))) => *n as f64 == v,
        _ => false,
    };
    if is(call.args.get(2), 0.0) && is(call.args.get(3), 1.0) {
        return Ok(vec![u]);
    }
    let wide = dtype.compute();
    let (low, high) = (call.operand(2, &shape, wide)?, call.operand(3, &shape, wide)?);
    let b = &mut *call.b;
    let span = expand::map(b, MapOp::sub, &[high, low]);
    let u = expand::cast(b, u, wide);
    let scaled = expand::map(b, MapOp::mul, &[u, span]);
    Ok(vec![expand::map(b, MapOp::add, &[scaled, low])])
}

pub const NORMAL: Row = Row::new(
    "random.normal",
    &[KEY_PARAM, SHAPE, DTYPE],
    |cx, args, _| {
        key_arg(cx, args, 0)?;
        rule::one(rule::shape(args, 1)?, Some(float_dtype(args, 2)?))
    },
    lower_normal,
)
.known_as(&["random.randn", "random.gauss", "random.standard_normal"])
.doc(
    "Standard normal numbers; f32 unless `dtype` says otherwise.\n\n\
     By Box and Muller's transformation of two uniform numbers, `sqrt(-2 log u) * cos(2 π v)`, in f32 (f64 for f64): the \
     largest f32 number is about 5.8.\n\n```tessera\n0.02 * random.normal(key, (D, 4*D))\n```",
);

fn lower_normal(call: &mut Call) -> Lowered {
    let key = call.id(0)?;
    let shape = call.result().0;
    let dtype = float_dtype(&call.sym, 2)?.compute();
    let b = &mut *call.b;
    let like = expand::full(b, &shape, dtype, Scalar::F(0.0));
    Ok(vec![normal(b, key, like)])
}

/// Standard normal numbers of the sizes and the dtype, f32 or f64, of another tensor.
fn normal(b: &mut dyn Build, key: Id, like: Id) -> Id {
    let (shape, dtype) = (b.shape(like), b.dtype(like));
    let all = unit(b, key, &[&[2], &shape[..]].concat(), dtype);
    let part = |b: &mut dyn Build, i: u64| {
        let x = expand::slice(b, all, 0, i, 1);
        expand::reshape(b, x, &shape)
    };
    let (u, v) = (part(b, 0), part(b, 1));
    // 1 - u lies in (0, 1], so that the logarithm is finite; the difference is exact.
    let one = expand::like(b, u, 1.0);
    let u = expand::map(b, MapOp::sub, &[one, u]);
    let log = expand::unary(b, MapOp::log, u);
    let square = expand::binary_const(b, MapOp::mul, log, -2.0);
    let radius = expand::unary(b, MapOp::sqrt, square);
    let angle = expand::binary_const(b, MapOp::mul, v, std::f64::consts::TAU);
    let cos = expand::unary(b, MapOp::cos, angle);
    expand::map(b, MapOp::mul, &[radius, cos])
}

pub const RANDINT: Row = Row::new(
    "random.randint",
    &[KEY_PARAM, SHAPE, req("low", ParamKind::Operand), req("high", ParamKind::Operand), DTYPE],
    infer_randint,
    lower_randint,
)
.known_as(&["random.integers"])
.doc(
    "Uniform ints from `low` (included) to `high` (excluded); i64 unless `dtype` says otherwise.\n\n\
     63 random bits modulo the range: no value is favoured by more than one part in 2⁶³ over the range. \
     E0711: no int lies between the bounds, or more than 2⁶³ - 1 do.\n\n\
     ```tessera\nrandom.randint(key, (B, T), 0, vocab)\n```",
);

fn infer_randint(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    key_arg(cx, args, 0)?;
    for i in [2, 3] {
        let ok = match rule::number(args, i)? {
            Operand::Weak(w) => w == Weak::Int,
            Operand::Tensor(t) => t.dtype.is_none_or(DType::is_int),
        };
        if !ok {
            return Err(
                OpError::new(Code::E0204, "the bounds of random ints are ints").arg(i, rule::describe(args.get(i)))
            );
        }
    }
    let dtype = rule::dtype(args, 4)?.unwrap_or(DType::I64);
    if !dtype.is_int() {
        return Err(OpError::new(Code::E0214, format!("random ints are not {dtype}")).arg(4, dtype.name()));
    }
    rule::one(rule::shape(args, 1)?, Some(dtype))
}

fn lower_randint(call: &mut Call) -> Lowered {
    let key = call.id(0)?;
    let shape = call.result().0;
    let known = |arg: Option<&Arg>| match arg {
        Some(Arg::Int(n) | Arg::Scalar(Scalar::I(n))) => Some(*n),
        _ => None,
    };
    if let (Some(low), Some(high)) = (known(call.args.get(2)), known(call.args.get(3)))
        && let Some(why) = range_refused(low, high)
    {
        return Err(OpError::new(Code::E0711, why).arg(2, "low").arg(3, "high"));
    }
    let all_known = [2, 3].iter().all(|&i| known(call.args.get(i)).is_some());
    let (low, high) = (call.operand(2, &[], DType::I64)?, call.operand(3, &[], DType::I64)?);
    let b = &mut *call.b;
    let low = if all_known { low } else { b.push(Prim::Check(Check::Range), &[low, high], vec![], DType::I64) };
    let (low, high) = (expand::broadcast_to(b, low, &shape), expand::broadcast_to(b, high, &shape));
    let bits = wide_words(b, key, &shape);
    let span = expand::map(b, MapOp::sub, &[high, low]);
    let offset = expand::map(b, MapOp::r#mod, &[bits, span]);
    Ok(vec![expand::map(b, MapOp::add, &[offset, low])])
}

pub const BERNOULLI: Row = Row::new(
    "random.bernoulli",
    &[KEY_PARAM, opt("p", ParamKind::Operand, Default::Float(0.5)), opt("shape", ParamKind::Shape, Default::None)],
    infer_bernoulli,
    lower_bernoulli,
)
.doc("True with probability `p`, a number or a tensor that broadcasts to `shape` (by default its own).\n\n```tessera\nrandom.bernoulli(key, 0.9, (B, D))\n```");

fn infer_bernoulli(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    key_arg(cx, args, 0)?;
    let p = rule::operand(args, 1)?;
    if rule::absent(args, 2) {
        return rule::one(p.shape().to_vec(), Some(DType::Bool));
    }
    let shape = rule::shape(args, 2)?;
    if let Operand::Tensor(t) = p {
        parameters::fits(cx, t, 1, &shape, 2)?;
    }
    rule::one(shape, Some(DType::Bool))
}

fn lower_bernoulli(call: &mut Call) -> Lowered {
    let key = call.id(0)?;
    let shape = call.result().0;
    let p = call.operand(1, &shape, DType::F32)?;
    let u = unit(call.b, key, &shape, DType::F32);
    Ok(vec![expand::map(call.b, MapOp::lt, &[u, p])])
}

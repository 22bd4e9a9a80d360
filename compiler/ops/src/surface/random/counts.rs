//! Draws that are ints: Poisson, binomial, geometric, and categories.

use super::continuous::gumbel;
use super::parameters::{self, known};
use super::{KEY_PARAM, key_arg, unit};
use crate::map::MapOp;
use crate::prim::Prim;
use crate::surface::row::{Call, Lowered, Row, opt, req, wide_of};
use crate::surface::rule::{self, Inferred};
use crate::surface::*;

const ONE: &[usize] = &[1];
const TWO: &[usize] = &[1, 2];

/// Short ways to write f64 arithmetic of operands that broadcast.
struct Numbers<'a>(&'a mut dyn Build);

impl Numbers<'_> {
    fn two(&mut self, op: MapOp, x: Id, y: Id) -> Id {
        expand::binary(self.0, op, x, y)
    }

    fn with(&mut self, op: MapOp, x: Id, c: f64) -> Id {
        expand::binary_const(self.0, op, x, c)
    }

    fn one(&mut self, op: MapOp, x: Id) -> Id {
        expand::unary(self.0, op, x)
    }

    fn add(&mut self, x: Id, y: Id) -> Id {
        self.two(MapOp::add, x, y)
    }

    fn sub(&mut self, x: Id, y: Id) -> Id {
        self.two(MapOp::sub, x, y)
    }

    fn mul(&mut self, x: Id, y: Id) -> Id {
        self.two(MapOp::mul, x, y)
    }

    fn div(&mut self, x: Id, y: Id) -> Id {
        self.two(MapOp::div, x, y)
    }

    /// `c − x`.
    fn from(&mut self, c: f64, x: Id) -> Id {
        let c = expand::like(self.0, x, c);
        self.sub(c, x)
    }

    /// `x` where the condition holds, else `y`.
    fn select(&mut self, condition: Id, x: Id, y: Id) -> Id {
        let shapes = [condition, x, y].map(|v| self.0.shape(v));
        let shape = shapes.iter().fold(vec![], |all, s| expand::common_shape(&all, s));
        let [c, x, y] = [condition, x, y].map(|v| expand::broadcast_to(self.0, v, &shape));
        expand::select(self.0, c, x, y)
    }

    /// 1 where the condition holds, else 0.
    fn count(&mut self, condition: Id) -> Id {
        expand::cast(self.0, condition, DType::F64)
    }
}

/// The dtype of counts: ints, i64 by default.
fn int_dtype(args: &[SymArg], i: usize) -> Result<DType, OpError> {
    let dtype = rule::dtype(args, i)?.unwrap_or(DType::I64);
    if dtype.is_int() {
        return Ok(dtype);
    }
    Err(OpError::new(Code::E0214, format!("counts are ints, and not {dtype}"))
        .arg(i, dtype.name())
        .help("draw ints and convert: `.to(…)`"))
}

fn infer(cx: &mut InferCx, args: &[SymArg], at: &[usize]) -> Inferred {
    let last = at.len() + 1;
    rule::one(parameters::shape(cx, args, at, last)?, Some(int_dtype(args, last + 1)?))
}

/// Expected counts below this are found by adding up probabilities from 0 on, others by what is known of large ones.
const SMALL: f64 = 10.0;
/// Probabilities that are added up: with an expected count of 10, what is left out is below 2⁻⁵⁵.
const TERMS: u32 = 52;

/// How many of the sums of `first`, `first · ratio(0)`, `first · ratio(0) ratio(1)`, … lie at or below `u`: the inverse of a
/// distribution function.
fn by_sums(n: &mut Numbers, u: Id, first: Id, mut ratio: impl FnMut(&mut Numbers, u32) -> Id) -> Id {
    let (mut term, mut sum) = (first, first);
    let mut count = expand::like(n.0, u, 0.0);
    for k in 0..TERMS {
        let above = n.two(MapOp::ge, u, sum);
        let one = n.count(above);
        count = n.add(count, one);
        let factor = ratio(n, k);
        term = n.mul(term, factor);
        sum = n.add(sum, term);
    }
    count
}

pub const POISSON: Row = Row::new(
    "random.poisson",
    &[
        KEY_PARAM,
        opt("lam", ParamKind::Operand, Default::Float(1.0)),
        parameters::SHAPE,
        parameters::DTYPE,
    ],
    |cx, args, _| infer(cx, args, ONE),
    lower_poisson,
)
.doc(
    "Poisson numbers with the mean `lam`, a number or a tensor that broadcasts to `shape` (by default its own); i64 unless \
     `dtype` says otherwise.\n\n\
     The inverse of the distribution function at a uniform number of 53 bits: for means below 10 by adding up probabilities, \
     for larger ones by the expansion of Cornish and Fisher and the function itself next to it. Where `lam` is written in \
     the program only one of the two is computed. 0 where the mean is negative or NaN.\n\n\
     ```tessera\nrandom.poisson(key, 3.5, (1000,))\n```",
);

fn lower_poisson(call: &mut Call) -> Lowered {
    let (key, (shape, dtype)) = (call.id(0)?, call.result());
    let lam = parameters::values(call, ONE, DType::F64)?[0];
    let mean = known(call, 1);
    let b = &mut *call.b;
    let u = unit(b, key, &shape, DType::F64);
    let n = &mut Numbers(b);
    let small = |n: &mut Numbers| {
        let lam = n.with(MapOp::minimum, lam, SMALL);
        let minus = n.one(MapOp::neg, lam);
        let first = n.one(MapOp::exp, minus);
        by_sums(n, u, first, |n, k| n.with(MapOp::div, lam, f64::from(k + 1)))
    };
    let count = match mean {
        Some(v) if v < SMALL => small(n),
        Some(_) => large_poisson(n, u, lam),
        None => {
            let (small, large) = (small(n), large_poisson(n, u, lam));
            let limit = expand::like(n.0, lam, SMALL);
            let is_small = n.two(MapOp::lt, lam, limit);
            n.select(is_small, small, large)
        }
    };
    let zero = expand::like(n.0, lam, 0.0);
    let inside = n.two(MapOp::gt, lam, zero);
    let none = expand::like(n.0, count, 0.0);
    let count = n.select(inside, count, none);
    Ok(vec![expand::cast(n.0, count, dtype)])
}

/// For means of at least 10: the third order of Cornish and Fisher's expansion is off by one at most, and by the
/// probabilities next to it the inverse is exact as far as f64 knows the distribution function.
fn large_poisson(n: &mut Numbers, u: Id, lam: Id) -> Id {
    // Inside of (0, 1), so that it has a normal quantile.
    let inside = n.with(MapOp::maximum, u, 2f64.powi(-54));
    let z = n.one(MapOp::ndtri, inside);
    let root = n.one(MapOp::sqrt, lam);
    let square = n.mul(z, z);
    let first = n.mul(z, root);
    let sum = n.add(lam, first);
    let less = n.with(MapOp::sub, square, 1.0);
    let second = n.with(MapOp::mul, less, 1.0 / 6.0);
    let sum = n.add(sum, second);
    let third = n.from(1.0, square);
    let third = n.mul(third, z);
    let third = n.with(MapOp::mul, third, 1.0 / 72.0);
    let third = n.div(third, root);
    let sum = n.add(sum, third);
    let k = n.one(MapOp::floor, sum);
    let k = n.with(MapOp::maximum, k, 2.0);
    // The distribution function at k, and at one and two below and one above.
    let a = n.with(MapOp::add, k, 1.0);
    let shape = n.0.shape(k);
    let lam = expand::broadcast_to(n.0, lam, &shape);
    let at = n.two(MapOp::gammaincc, a, lam);
    let own = n.two(MapOp::gammainc_dx, a, lam);
    let below = n.sub(at, own);
    let before = n.div(k, lam);
    let before = n.mul(own, before);
    let below_that = n.sub(below, before);
    let after = n.div(lam, a);
    let after = n.mul(own, after);
    let above = n.add(at, after);
    let mut count = n.with(MapOp::sub, k, 2.0);
    for bound in [below_that, below, at, above] {
        let beyond = n.two(MapOp::ge, u, bound);
        let one = n.count(beyond);
        count = n.add(count, one);
    }
    count
}

/// Proposals for an element of a binomial distribution.
const TRIALS: u64 = 6;

pub const BINOMIAL: Row = Row::new(
    "random.binomial",
    &[
        KEY_PARAM,
        req("n", ParamKind::Operand),
        req("p", ParamKind::Operand),
        parameters::SHAPE,
        parameters::DTYPE,
    ],
    |cx, args, _| infer(cx, args, TWO),
    lower_binomial,
)
.doc(
    "How many of `n` independent trials succeed, each with probability `p`: numbers or tensors that broadcast to `shape` (by \
     default their own); i64 unless `dtype` says otherwise.\n\n\
     Where fewer than 10 successes (or failures) are expected, the inverse of the distribution function, by adding up \
     probabilities. Else Hörmann's transformed rejection (1993) with six proposals; where all are rejected, less than once \
     in 1500, a normal quantile with its skewness counts, by which the distribution is off by less than one part in 10⁵. Where \
     `n` and `p` are written in the program only one of the two is computed. 0 where `n` is negative or `p` is NaN.\n\n\
     ```tessera\nrandom.binomial(key, 100, 0.25, (1000,))\n```",
);

fn lower_binomial(call: &mut Call) -> Lowered {
    let (key, (shape, dtype)) = (call.id(0)?, call.result());
    let values = parameters::values(call, TWO, DType::F64)?;
    let expected = known(call, 1).zip(known(call, 2)).map(|(n, p)| n * p.min(1.0 - p));
    let (trials, p) = (values[0], values[1]);
    let b = &mut *call.b;
    let uniform = unit(b, key, &[&[1 + 2 * TRIALS], &shape[..]].concat(), DType::F64);
    let number = |n: &mut Numbers, i: u64| {
        let x = expand::slice(n.0, uniform, 0, i, 1);
        expand::reshape(n.0, x, &shape)
    };
    let n = &mut Numbers(b);
    let trials = n.one(MapOp::floor, trials);
    let trials = n.with(MapOp::maximum, trials, 0.0);
    let p = n.with(MapOp::maximum, p, 0.0);
    let p = n.with(MapOp::minimum, p, 1.0);
    let other = n.from(1.0, p);
    let q = n.two(MapOp::minimum, p, other);
    let u = number(n, 0);
    let small = |n: &mut Numbers| {
        let minus = n.one(MapOp::neg, q);
        let log = n.one(MapOp::log1p, minus);
        let log = n.mul(trials, log);
        let first = n.one(MapOp::exp, log);
        let rest = n.from(1.0, q);
        let odds = n.div(q, rest);
        let found = by_sums(n, u, first, |n, k| {
            let left = n.with(MapOp::sub, trials, f64::from(k));
            let left = n.with(MapOp::div, left, f64::from(k + 1));
            n.mul(left, odds)
        });
        n.two(MapOp::minimum, found, trials)
    };
    let count = match expected {
        Some(v) if v < SMALL => small(n),
        Some(_) => large_binomial(n, u, trials, q, &number),
        None => {
            let (small, large) = (small(n), large_binomial(n, u, trials, q, &number));
            let mean = n.mul(trials, q);
            let limit = expand::like(n.0, mean, SMALL);
            let is_small = n.two(MapOp::lt, mean, limit);
            n.select(is_small, small, large)
        }
    };
    // Successes are the failures where those are rarer.
    let half = expand::like(n.0, p, 0.5);
    let frequent = n.two(MapOp::gt, p, half);
    let rest = n.sub(trials, count);
    let count = n.select(frequent, rest, count);
    let ordered = n.two(MapOp::eq, p, p);
    let zero = expand::like(n.0, count, 0.0);
    let count = n.select(ordered, count, zero);
    let count = expand::broadcast_to(n.0, count, &shape);
    Ok(vec![expand::cast(n.0, count, dtype)])
}

/// `ln k!` for whole `k` from 0 on, by Stirling's series from 8 on, with an error of 10⁻¹¹: a fraction of what `lgamma` costs,
/// which is for all numbers.
fn log_factorial(n: &mut Numbers, k: Id) -> Id {
    let y = n.with(MapOp::add, k, 1.0);
    let (eight, one) = (expand::like(n.0, y, 8.0), expand::like(n.0, y, 1.0));
    let small = n.two(MapOp::lt, y, eight);
    let mut product = y;
    for i in 1..8 {
        let factor = n.with(MapOp::add, y, f64::from(i));
        product = n.mul(product, factor);
    }
    let product = n.select(small, product, one);
    let moved = n.add(y, eight);
    let y = n.select(small, moved, y);
    let inverse = n.div(one, y);
    let square = n.mul(inverse, inverse);
    let mut series = expand::like(n.0, y, -1.0 / 1680.0);
    for c in [1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0] {
        let c = expand::like(n.0, y, c);
        series = expand::map(n.0, MapOp::fma, &[series, square, c]);
    }
    let series = n.mul(series, inverse);
    let log = n.one(MapOp::log, y);
    let half = n.with(MapOp::sub, y, 0.5);
    let main = n.mul(half, log);
    let main = n.sub(main, y);
    let main = n.with(MapOp::add, main, 0.918_938_533_204_672_8);
    let sum = n.add(main, series);
    let log_product = n.one(MapOp::log, product);
    n.sub(sum, log_product)
}

/// For at least 10 expected successes of probability q ≤ ½ (Hörmann, The generation of binomial random variates, J. Statist.
/// Comput. Simul. 46, 1993, algorithm BTRS).
fn large_binomial(n: &mut Numbers, u: Id, trials: Id, q: Id, number: &dyn Fn(&mut Numbers, u64) -> Id) -> Id {
    let rest = n.from(1.0, q);
    let mean = n.mul(trials, q);
    let variance = n.mul(mean, rest);
    let spread = n.one(MapOp::sqrt, variance);
    let b = n.with(MapOp::mul, spread, 2.53);
    let b = n.with(MapOp::add, b, 1.15);
    let a = n.with(MapOp::mul, b, 0.0248);
    let a = n.with(MapOp::sub, a, 0.0873);
    let part = n.with(MapOp::mul, q, 0.01);
    let a = n.add(a, part);
    let c = n.with(MapOp::add, mean, 0.5);
    let five = expand::like(n.0, b, 5.1);
    let alpha = n.div(five, b);
    let alpha = n.with(MapOp::add, alpha, 2.83);
    let alpha = n.mul(alpha, spread);
    let odds = n.div(q, rest);
    let log_odds = n.one(MapOp::log, odds);
    let next = n.with(MapOp::add, trials, 1.0);
    let mode = n.mul(next, q);
    let mode = n.one(MapOp::floor, mode);
    let log_ways = |n: &mut Numbers, k: Id| {
        let left = n.sub(trials, k);
        let (first, second) = (log_factorial(n, k), log_factorial(n, left));
        n.add(first, second)
    };
    let top = log_ways(n, mode);
    // The normal quantile with its skewness.
    let inside = n.with(MapOp::maximum, u, 2f64.powi(-54));
    let z = n.one(MapOp::ndtri, inside);
    let moved = n.mul(z, spread);
    let square = n.mul(z, z);
    let square = n.with(MapOp::sub, square, 1.0);
    let skew = n.sub(rest, q);
    let skew = n.mul(skew, square);
    let skew = n.with(MapOp::mul, skew, 1.0 / 6.0);
    let k = n.add(c, moved);
    let k = n.add(k, skew);
    let k = n.one(MapOp::floor, k);
    let k = n.with(MapOp::maximum, k, 0.0);
    let mut chosen = n.two(MapOp::minimum, k, trials);
    for trial in (0..TRIALS).rev() {
        let x = number(n, 1 + 2 * trial);
        let x = n.with(MapOp::sub, x, 0.5);
        let v = number(n, 2 + 2 * trial);
        let v = n.from(1.0, v);
        let size = n.one(MapOp::abs, x);
        let room = n.from(0.5, size);
        // At the edge, where a proposal is infinite, none is accepted.
        let room = n.with(MapOp::maximum, room, 1e-300);
        let twice = n.with(MapOp::mul, a, 2.0);
        let slope = n.div(twice, room);
        let slope = n.add(slope, b);
        let k = n.mul(slope, x);
        let k = n.add(k, c);
        let k = n.one(MapOp::floor, k);
        let zero = expand::like(n.0, k, 0.0);
        let (from, to) = (n.two(MapOp::ge, k, zero), n.two(MapOp::le, k, trials));
        let possible = n.two(MapOp::logical_and, from, to);
        let k = n.with(MapOp::maximum, k, 0.0);
        let k = n.two(MapOp::minimum, k, trials);
        let square = n.mul(room, room);
        let below = n.div(a, square);
        let below = n.add(below, b);
        let height = n.mul(v, alpha);
        let height = n.div(height, below);
        let height = n.one(MapOp::log, height);
        let ways = log_ways(n, k);
        let bound = n.sub(top, ways);
        let distance = n.sub(k, mode);
        let distance = n.mul(distance, log_odds);
        let bound = n.add(bound, distance);
        let under = n.two(MapOp::le, height, bound);
        let accepted = n.two(MapOp::logical_and, possible, under);
        chosen = n.select(accepted, k, chosen);
    }
    chosen
}

pub const GEOMETRIC: Row = Row::new(
    "random.geometric",
    &[KEY_PARAM, req("p", ParamKind::Operand), parameters::SHAPE, parameters::DTYPE],
    |cx, args, _| infer(cx, args, ONE),
    |call| {
        let (key, (shape, dtype)) = (call.id(0)?, call.result());
        let p = parameters::values(call, ONE, DType::F64)?[0];
        let b = &mut *call.b;
        let u = unit(b, key, &shape, DType::F64);
        let n = &mut Numbers(b);
        let (minus_u, minus_p) = (n.one(MapOp::neg, u), n.one(MapOp::neg, p));
        let (top, bottom) = (n.one(MapOp::log1p, minus_u), n.one(MapOp::log1p, minus_p));
        let quotient = n.div(top, bottom);
        let failures = n.one(MapOp::floor, quotient);
        let count = n.with(MapOp::add, failures, 1.0);
        Ok(vec![expand::cast(n.0, count, dtype)])
    },
)
.doc(
    "How many trials it takes to succeed for the first time, each with probability `p`, a number or a tensor that broadcasts \
     to `shape` (by default its own); 1 or more, i64 unless `dtype` says otherwise.\n\n\
     `floor(log(1 - u) / log(1 - p)) + 1` of a uniform number of 53 bits.\n\n\
     ```tessera\nrandom.geometric(key, 0.2, (1000,))\n```",
);

pub const CATEGORICAL: Row = Row::new(
    "random.categorical",
    &[
        KEY_PARAM,
        req("logits", ParamKind::Tensor),
        opt("axis", ParamKind::Axis, Default::Int(-1)),
        opt("shape", ParamKind::Shape, Default::None),
    ],
    infer_categorical,
    lower_categorical,
)
.known_as(&["random.multinomial"])
.doc(
    "Categories (i64) drawn by their logits along an axis: logarithms of probabilities up to a constant.\n\n\
     `shape` is that of the result, to which the other axes of `logits` broadcast (by default it is theirs). The position of \
     the largest of `logits` plus Gumbel numbers.\n\n\
     ```tessera\nrandom.categorical(key, logits / temperature)\n```",
);

fn infer_categorical(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    key_arg(cx, args, 0)?;
    let logits = rule::tensor(args, 1)?;
    reduce::no_complex("random.categorical", logits, 1)?;
    let axis = rule::axis(args, 2, logits)?;
    if logits.shape[axis].is_zero() {
        return Err(OpError::new(Code::E0711, "there is no category to draw").arg(1, logits.to_string()));
    }
    let mut own = logits.clone();
    own.shape.remove(axis);
    if rule::absent(args, 3) {
        return rule::one(own.shape, Some(DType::I64));
    }
    let shape = rule::shape(args, 3)?;
    parameters::fits(cx, &own, 1, &shape, 3)?;
    rule::one(shape, Some(DType::I64))
}

fn lower_categorical(call: &mut Call) -> Lowered {
    let (key, logits, shape) = (call.id(0)?, call.id(1)?, call.result().0);
    let axis = rule::axis(&call.sym, 2, &call.ty(1)?)?;
    let b = &mut *call.b;
    let wide = wide_of(b.dtype(logits));
    let logits = expand::cast(b, logits, wide);
    let logits = expand::axis_last(b, logits, axis);
    let classes = b.shape(logits).last().copied().unwrap_or(1);
    let all = [&shape[..], &[classes]].concat();
    let u = unit(b, key, &all, wide);
    let noise = gumbel(b, u);
    let sum = expand::binary(b, MapOp::add, logits, noise);
    Ok(vec![b.push(Prim::ArgReduce { largest: true, axis: shape.len() }, &[sum], shape, DType::I64)])
}

//! Powers.

use super::{exp, log};
use crate::scalar::{Cmp, FloatFn, IntOp, Kind, Val, Writer};

/// `x` to the power of `y` by the rules of IEEE 754 `pow` (and NumPy): `pow(x, 0) = pow(1, y) =
/// 1` even for NaN, NaN for a negative `x` and an exponent that is no integer.
pub fn pow(w: &mut Writer, x: Val, y: Val) -> Val {
    let magnitude = if w.kind(x) == Kind::F32 { magnitude_f32(w, x, y) } else { magnitude_f64(w, x, y) };
    // The sign of an odd power is that of the base.
    let whole = w.float_fn(FloatFn::Floor, y);
    let integral = w.cmp(Cmp::Eq, whole, y);
    let half = w.mul_c(y, 0.5);
    let half_floor = w.float_fn(FloatFn::Floor, half);
    let uneven = w.cmp(Cmp::Ne, half_floor, half);
    let odd = w.both(integral, uneven);
    let signed = w.with_sign(magnitude, x);
    let result = w.select(odd, signed, magnitude);
    // A negative finite base with a finite exponent that is no integer. Zero is not below zero,
    // and infinities are integral to the test above.
    let negative = w.cmp_c(Cmp::Lt, x, 0.0);
    let finite = w.cmp_c(Cmp::Gt, x, f64::NEG_INFINITY);
    let broken = w.not(integral);
    let outside = w.both(negative, finite);
    let outside = w.both(outside, broken);
    let nan = w.f(f64::NAN, x);
    let result = w.select(outside, nan, result);
    // NaN in, NaN out; but for x = 1 and y = 0.
    let sum = w.add(x, y);
    let unordered = w.cmp(Cmp::Ne, x, x);
    let unordered_y = w.cmp(Cmp::Ne, y, y);
    let unordered = w.either(unordered, unordered_y);
    let result = w.select(unordered, sum, result);
    let base_one = w.cmp_c(Cmp::Eq, x, 1.0);
    let no_power = w.cmp_c(Cmp::Eq, y, 0.0);
    let trivial = w.either(base_one, no_power);
    let one = w.f(1.0, x);
    w.select(trivial, one, result)
}

/// |x|^y in F64, rounded once.
fn magnitude_f32(w: &mut Writer, x: Val, y: Val) -> Val {
    let a = w.abs(x);
    let a = w.convert(a, Kind::F64);
    let y = w.convert(y, Kind::F64);
    let log = log::log2_for_f32(w, a);
    let product = w.mul(log, y);
    // 1 to an infinite power would be NaN.
    let one = w.cmp_c(Cmp::Eq, a, 1.0);
    let zero = w.f(0.0, a);
    let product = w.select(one, zero, product);
    let product = w.at_least(product, -300.0);
    let product = w.at_most(product, 300.0);
    let power = exp::exp2_for_f32(w, product);
    w.convert(power, Kind::F32)
}

/// |x|^y by a logarithm in two parts.
fn magnitude_f64(w: &mut Writer, x: Val, y: Val) -> Val {
    let a = w.abs(x);
    let (log, low) = log::log_pair(w, a);
    // 0 and ∞ have infinite logarithms.
    let is_zero = w.cmp_c(Cmp::Eq, a, 0.0);
    let pole = w.f(f64::NEG_INFINITY, a);
    let log = w.select(is_zero, pole, log);
    let is_infinite = w.cmp_c(Cmp::Eq, a, f64::INFINITY);
    let log = w.select(is_infinite, a, log);
    let product = w.mul(y, log);
    let minus = w.neg(product);
    let error = w.fma(y, log, minus);
    let error = w.fma(y, low, error);
    let one = w.cmp_c(Cmp::Eq, a, 1.0);
    let zero = w.f(0.0, a);
    let product = w.select(one, zero, product);
    let error = w.select(one, zero, error);
    let product = w.at_least(product, -800.0);
    let product = w.at_most(product, 800.0);
    // Beyond the range the error is meaningless, and NaN where the product overflowed.
    let size = w.abs(product);
    let inside = w.cmp_c(Cmp::Lt, size, 750.0);
    let error = w.select(inside, error, zero);
    exp::exp_pair(w, product, error)
}

/// `x` to the power of `n` for integers, by squaring, with wrap-around. A negative `n` gives 0.
pub fn int_pow(w: &mut Writer, x: Val, n: Val) -> Val {
    let kind = w.kind(x);
    let unsigned = kind == Kind::U8;
    let bits = if unsigned { kind.bits() } else { kind.bits() - 1 };
    let zero = w.i(0, kind);
    let mut result = w.i(1, kind);
    let mut square = x;
    for bit in 0..bits {
        let set = w.int_c(IntOp::And, n, 1 << bit);
        let set = w.cmp(Cmp::Ne, set, zero);
        let times = w.int(IntOp::Mul, result, square);
        result = w.select(set, times, result);
        if bit + 1 < bits {
            square = w.int(IntOp::Mul, square, square);
        }
    }
    if unsigned {
        return result;
    }
    let negative = w.cmp(Cmp::Lt, n, zero);
    w.select(negative, zero, result)
}

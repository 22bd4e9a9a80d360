//! Exponentials.

use super::{by_kind, exact_sum};
use crate::scalar::{Cmp, IntOp, Val, Writer};
use std::f64::consts::{LN_2, LOG2_E};

/// `(e^r − 1) / r` on |r| ≤ ln 2, for F32 (2⁻²⁹·⁶ of e^r) and F64 (2⁻⁵⁵·⁶).
const EXP_F32: [f64; 8] = [1.0, 0.5, 0.16666672, 0.04166654, 0.008332645, 0.0013895571, 0.00020095188, 2.407023e-05];
const EXP_F64: [f64; 13] = [
    1.0,
    0.5,
    0.16666666666666913,
    0.04166666666668486,
    0.008333333333270118,
    0.0013888888884993587,
    0.00019841269895338754,
    2.480159030711753e-05,
    2.755729904767644e-06,
    2.755624710734046e-07,
    2.50553862999292e-08,
    2.1056625137008633e-09,
    1.5909060781971134e-10,
];
/// `(2^r − 1) / r` on |r| ≤ ½, for F32 (2⁻²⁶·³) and F64 (2⁻⁵⁶·⁵).
const EXP2_F32: [f64; 6] = [LN_2, 0.24022594, 0.055503663, 0.009625445, 0.0013387928, 0.00013332488];
const EXP2_F64: [f64; 11] = [
    LN_2,
    0.24022650695910172,
    0.055504108664824574,
    0.009618129107577065,
    0.0013333558145567222,
    0.00015403530478878727,
    1.525273473873047e-05,
    1.3215424461315772e-06,
    1.0177655660441401e-07,
    7.075624556778567e-09,
    4.5194280849921866e-10,
];
/// `(e^r − 1 − r) / r²` on |r| ≤ ln 2 / 2, for F32 (2⁻²⁶·⁰) and F64 (2⁻⁵⁷·³).
const EXPM1_F32: [f64; 5] = [0.5, 0.16666535, 0.04166661, 0.00836766, 0.0013919236];
const EXPM1_F64: [f64; 11] = [
    0.5,
    0.16666666666666677,
    0.04166666666666676,
    0.008333333333321064,
    0.001388888888881243,
    0.0001984126989017966,
    2.480158746809475e-05,
    2.7557235381669593e-06,
    2.755720600617766e-07,
    2.511386429782854e-08,
    2.0903686648610968e-09,
];

/// Adding and subtracting this rounds to an integer, which the low bits of the sum then hold.
fn magic(w: &Writer, x: Val) -> f64 {
    by_kind(w, x, 12582912.0, 6755399441055744.0)
}

/// ln 2 in two parts; the first has the precision of the kind.
fn ln2_parts(w: &Writer, x: Val) -> (f64, f64) {
    by_kind(w, x, (0.6931471824645996, -1.904654299957768e-9), (LN_2, 2.3190468138462996e-17))
}

/// Exponent bias and bits of the fraction.
pub(super) fn format(w: &Writer, x: Val) -> (i64, i64) {
    by_kind(w, x, (127, 23), (1023, 52))
}

/// `2^n` for a value `t = magic + bias + n`, −bias < n ≤ bias.
fn power_of_two(w: &mut Writer, t: Val) -> Val {
    let (_, fraction) = format(w, t);
    let kind = w.kind(t);
    let bits = w.to_bits(t);
    let bits = w.int_c(IntOp::Shl, bits, fraction);
    w.bits(bits, kind)
}

/// `(p, s)` with `e^(x + low) = p · s · s`, ½ ≤ p ≤ 2 and `s` a power of two, for an `x` that
/// [`clamped`] lets through. Taking half of the exponent in each `s` reaches subnormal results
/// with one rounding and overflows where it should, for three instructions in all.
pub(super) fn exp_parts(w: &mut Writer, x: Val, low: Option<Val>) -> (Val, Val) {
    let (bias, _) = format(w, x);
    let shift = magic(w, x) + bias as f64;
    let shift_v = w.f(shift, x);
    let t = w.fma_c(x, LOG2_E / 2.0, shift_v);
    let h = w.add_c(t, -shift);
    let (high, rest) = ln2_parts(w, x);
    let r = w.fma_c(h, -2.0 * high, x);
    let mut r = w.fma_c(h, -2.0 * rest, r);
    if let Some(low) = low {
        r = w.add(r, low);
    }
    let q = by_kind(w, x, &EXP_F32[..], &EXP_F64[..]);
    let q = w.horner(r, q);
    let one = w.f(1.0, x);
    (w.fma(r, q, one), power_of_two(w, t))
}

/// `x` within the range beyond which the exponential is 0 or infinite anyway. NaN stays.
pub(super) fn clamped(w: &mut Writer, x: Val) -> Val {
    let (low, high) = by_kind(w, x, (-104.0, 89.0), (-746.0, 710.0));
    let x = w.at_least(x, low);
    w.at_most(x, high)
}

/// The exponential.
pub fn exp(w: &mut Writer, x: Val) -> Val {
    let x = clamped(w, x);
    let (p, s) = exp_parts(w, x, None);
    let y = w.mul(p, s);
    w.mul(y, s)
}

/// `e^x / 2`, finite as long as the result is.
pub fn half_exp(w: &mut Writer, x: Val) -> Val {
    let (low, high) = by_kind(w, x, (-104.0, 90.0), (-746.0, 711.0));
    let x = w.at_least(x, low);
    let x = w.at_most(x, high);
    let (p, s) = exp_parts(w, x, None);
    let half = w.mul_c(p, 0.5);
    let y = w.mul(half, s);
    w.mul(y, s)
}

/// `p · 2^n` for `t = magic + n` with |n| at most twice the largest exponent.
pub(super) fn scale(w: &mut Writer, p: Val, t: Val) -> Val {
    let (bias, fraction) = format(w, t);
    let kind = w.kind(t);
    let origin = w.f(magic(w, t), t);
    let (bits, origin) = (w.to_bits(t), w.to_bits(origin));
    let n = w.int(IntOp::Sub, bits, origin);
    let first = w.int_c(IntOp::Shr, n, 1);
    let second = w.int(IntOp::Sub, n, first);
    [first, second].into_iter().fold(p, |y, part| {
        let biased = w.int_c(IntOp::Add, part, bias);
        let bits = w.int_c(IntOp::Shl, biased, fraction);
        let factor = w.bits(bits, kind);
        w.mul(y, factor)
    })
}

/// Two to the power of `x`; exact for integers.
pub fn exp2(w: &mut Writer, x: Val) -> Val {
    let (low, high) = by_kind(w, x, (-151.0, 129.0), (-1076.0, 1025.0));
    let x = w.at_least(x, low);
    let x = w.at_most(x, high);
    let shift = magic(w, x);
    let t = w.add_c(x, shift);
    let n = w.add_c(t, -shift);
    let r = w.sub(x, n);
    let q = by_kind(w, x, &EXP2_F32[..], &EXP2_F64[..]);
    let q = w.horner(r, q);
    let one = w.f(1.0, x);
    let p = w.fma(r, q, one);
    scale(w, p, t)
}

/// `e^(high + low)` for a sum of two F64 values, |high| ≤ 1000, with an error of 2⁻⁵⁹ before the one rounding, so
/// that what is a number exactly comes out as it.
pub(super) fn exp_pair(w: &mut Writer, high: Val, low: Val) -> Val {
    /// `1 / (i + 3)!`: what is left out is below 2⁻⁶⁸ for |r| ≤ ln 2 / 2.
    const TAIL: [f64; 13] = [
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5040.0,
        1.0 / 40320.0,
        1.0 / 362880.0,
        1.0 / 3628800.0,
        1.0 / 39916800.0,
        1.0 / 479001600.0,
        1.0 / 6227020800.0,
        1.0 / 87178291200.0,
        1.0 / 1307674368000.0,
    ];
    let shift = magic(w, high);
    let shift_v = w.f(shift, high);
    let t = w.fma_c(high, LOG2_E, shift_v);
    let n = w.add_c(t, -shift);
    // r + r_low = high + low − n ln 2: the first difference is exact, and n times the rest of ln 2 has two parts.
    let first = w.fma_c(n, -super::log::LN2_F64.0, high);
    let m = w.mul_c(n, -super::log::LN2_F64.1);
    let minus = w.neg(m);
    let m_low = w.fma_c(n, -super::log::LN2_F64.1, minus);
    let (r, r_low) = exact_sum(w, first, m);
    let r_low = w.add(r_low, m_low);
    let r_low = w.add(r_low, low);
    let (r, r_low) = exact_sum(w, r, r_low);
    // 1 + r + r²/2 in two parts, everything else in one.
    let half_r = w.mul_c(r, 0.5);
    let z = w.mul(half_r, r);
    let minus = w.neg(z);
    let z_low = w.fma(half_r, r, minus);
    let one = w.f(1.0, high);
    let (a, a_low) = exact_sum(w, one, r);
    let (b, b_low) = exact_sum(w, a, z);
    let q = w.horner(r, &TAIL);
    let rr = w.mul(r, r);
    let cube = w.mul(rr, r);
    let rest = w.fma(cube, q, z_low);
    let rest = w.fma(b, r_low, rest);
    let lows = w.add(a_low, b_low);
    let rest = w.add(rest, lows);
    let y = w.add(b, rest);
    scale(w, y, t)
}

/// `2^x` in F64 for results that are rounded to F32: relative error 2⁻³⁴. |x| ≤ 1000.
pub(super) fn exp2_for_f32(w: &mut Writer, x: Val) -> Val {
    /// `(2^r − 1) / r` on |r| ≤ ½ (2⁻³⁴).
    const Q: [f64; 7] = [
        0.6931471807045455,
        0.2402265106651466,
        0.055504103659531207,
        0.009618038137292192,
        0.0013333935095294837,
        0.0001546675491158692,
        1.5196145763245776e-05,
    ];
    let (bias, _) = format(w, x);
    let shift = magic(w, x) + bias as f64;
    let t = w.add_c(x, shift);
    let n = w.add_c(t, -shift);
    let r = w.sub(x, n);
    let q = w.horner(r, &Q);
    let one = w.f(1.0, x);
    let p = w.fma(r, q, one);
    let s = power_of_two(w, t);
    w.mul(p, s)
}

/// `(p, s)` with `e^x = 2 s (1 + p)`, |p| ≤ 0.42 and `s` a power of two.
fn expm1_parts(w: &mut Writer, x: Val) -> (Val, Val) {
    let (low, high) = by_kind(w, x, (-18.0, 89.0), (-38.0, 710.0));
    let x = w.at_least(x, low);
    let x = w.at_most(x, high);
    let (bias, _) = format(w, x);
    // `s` is half the power, so that it stays finite.
    let shift = magic(w, x) + (bias - 1) as f64;
    let shift_v = w.f(shift, x);
    let t = w.fma_c(x, LOG2_E, shift_v);
    let n = w.add_c(t, -shift);
    let (high, rest) = ln2_parts(w, x);
    let r = w.fma_c(n, -high, x);
    let r = w.fma_c(n, -rest, r);
    let q = by_kind(w, x, &EXPM1_F32[..], &EXPM1_F64[..]);
    let q = w.horner(r, q);
    let rr = w.mul(r, r);
    (w.fma(rr, q, r), power_of_two(w, t))
}

/// `2 s (1 + p) − 1`.
fn join(w: &mut Writer, p: Val, s: Val) -> Val {
    let base = w.add_c(s, -0.5);
    let half = w.fma(p, s, base);
    w.add(half, half)
}

/// `e^x − 1`, accurate near 0.
pub fn expm1(w: &mut Writer, x: Val) -> Val {
    let (p, s) = expm1_parts(w, x);
    let y = join(w, p, s);
    let tiny = by_kind(w, x, 2f64.powi(-25), 2f64.powi(-54));
    w.keep_tiny(x, tiny, y)
}

/// `(e^x − e^−x) / 2`, odd.
pub fn sinh(w: &mut Writer, x: Val) -> Val {
    /// `(sinh x / x − 1) / x²` in x² on |x| ≤ 1, for F32 (2⁻³¹·⁵ of sinh) and F64 (2⁻⁶¹·⁸).
    const F32: [f64; 4] = [0.16666667, 0.008333311, 0.00019842635, 2.7839258e-06];
    const F64: [f64; 7] = [
        0.16666666666666669,
        0.008333333333332915,
        0.00019841269841589253,
        2.7557319108480516e-06,
        2.5052130676488194e-08,
        1.6056687032511508e-10,
        7.77569303965435e-13,
    ];
    let a = w.abs(x);
    let half = half_exp(w, a);
    let quarter = w.f(0.25, x);
    let inverse = w.div(quarter, half);
    let large = w.sub(half, inverse);
    let large = w.with_sign(large, x);
    let z = w.mul(x, x);
    let q = by_kind(w, x, &F32[..], &F64[..]);
    let q = w.horner(z, q);
    let xz = w.mul(x, z);
    let small = w.fma(xz, q, x);
    let is_small = w.cmp_c(Cmp::Lt, a, 1.0);
    w.select(is_small, small, large)
}

/// `(e^x + e^−x) / 2`.
pub fn cosh(w: &mut Writer, x: Val) -> Val {
    let a = w.abs(x);
    let half = half_exp(w, a);
    let quarter = w.f(0.25, x);
    let inverse = w.div(quarter, half);
    w.add(half, inverse)
}

/// The hyperbolic tangent, by `−m / (2 + m)` with `m = e^(−2|x|) − 1`; `2 + m` is formed on its
/// own, so that the rounding of `m` does not count twice.
pub fn tanh(w: &mut Writer, x: Val) -> Val {
    let a = w.abs(x);
    let double = w.mul_c(a, -2.0);
    let (p, s) = expm1_parts(w, double);
    let m = join(w, p, s);
    let power = w.add(s, s);
    let base = w.add_c(power, 1.0);
    let two = w.fma(p, power, base);
    let minus = w.neg(m);
    let y = w.div(minus, two);
    // The quotient of a negative zero is one; the sign is the operand's in every case.
    let y = w.abs(y);
    w.with_sign(y, x)
}

/// A power `z = 2^−v` of 0 ≤ v, far below the range of floats too: `q = z · 2^k`, and `1 + z`.
pub(super) struct Tail {
    pub q: Val,
    /// 2^−k.
    pub unit: f64,
    /// `1 + z`.
    pub sum: Val,
}

/// What is added to an exponent so that tails stay normal numbers.
pub(super) fn tail_shift(w: &Writer, x: Val) -> i64 {
    by_kind(w, x, 64, 512)
}

/// Adding this to a number between −159 and 0 (−1400 for F64) rounds it to an integer, which
/// [`tail_of`] makes a power of two.
pub(super) fn tail_magic(w: &Writer, x: Val) -> f64 {
    magic(w, x) + (format(w, x).0 + tail_shift(w, x)) as f64
}

/// `x` to a power of at least 1, by squares; no libm.
fn power(x: f64, n: u32) -> f64 {
    let (mut product, mut square, mut left) = (1.0, x, n);
    loop {
        if left & 1 == 1 {
            product *= square;
        }
        left >>= 1;
        if left == 0 {
            return product;
        }
        square *= square;
    }
}

/// The tail `2^n · 2^((1 + delta) r)` for |r| ≤ ½ and `t = tail_magic + n`.
pub(super) fn tail_of(w: &mut Writer, t: Val, r: Val, delta: f64) -> Tail {
    let q = by_kind(w, r, &EXP2_F32[..], &EXP2_F64[..]);
    let q: Vec<f64> = q.iter().zip(1..).map(|(c, i)| c * power(1.0 + delta, i)).collect();
    let q = w.horner(r, &q);
    let one = w.f(1.0, r);
    let p = w.fma(r, q, one);
    let s = power_of_two(w, t);
    let q = w.mul(p, s);
    let unit = 2f64.powi(-(tail_shift(w, r) as i32));
    let sum = w.fma_c(q, unit, one);
    Tail { q, unit, sum }
}

/// `|x|` so far that a factor of its size does not bring `e^−|x|` back, and the tail.
fn tail(w: &mut Writer, x: Val) -> (Val, Tail) {
    let a = w.abs(x);
    let limit = by_kind(w, x, 125.0, 800.0);
    let a = w.at_most(a, limit);
    let shift = tail_magic(w, x);
    let shift_v = w.f(shift, x);
    let t = w.fma_c(a, -LOG2_E, shift_v);
    let n = w.add_c(t, -shift);
    // In base 2: −a log₂ e − n, the first part of log₂ e with the precision of the kind.
    let (high, rest) = by_kind(w, x, (1.4426950216293335, 1.9259629911266175e-08), (LOG2_E, 2.0355273740931033e-17));
    let minus = w.neg(n);
    let r = w.fma_c(a, -high, minus);
    let r = w.fma_c(a, -rest, r);
    (a, tail_of(w, t, r, 0.0))
}

/// `1 / (1 + e^−x)`, to full relative accuracy on both sides.
pub fn sigmoid(w: &mut Writer, x: Val) -> Val {
    let (_, tail) = tail(w, x);
    let z = w.mul_c(tail.q, tail.unit);
    let one = w.f(1.0, x);
    let right = w.cmp_c(Cmp::Ge, x, 0.0);
    let top = w.select(right, one, z);
    w.div(top, tail.sum)
}

/// `x / (1 + e^−v)` for a `v` with the sign of `x` and the tail of `|v|`; `a` is `|x|`, at most
/// where the result on the left vanishes.
fn gated(w: &mut Writer, x: Val, a: Val, tail: &Tail) -> Val {
    let left = w.mul(a, tail.q);
    let left = w.mul_c(left, -tail.unit);
    let right = w.cmp_c(Cmp::Ge, x, 0.0);
    let top = w.select(right, x, left);
    w.div(top, tail.sum)
}

/// `x · sigmoid(x)`.
pub fn silu(w: &mut Writer, x: Val) -> Val {
    let (a, tail) = tail(w, x);
    gated(w, x, a, &tail)
}

/// `½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))`, as `x · sigmoid(v)` with `v = |x| (c + k x²)` in
/// base 2. The exponential would multiply a rounding error of `v` by `v`, so `c + k x²` is carried
/// with its own.
pub fn gelu_tanh(w: &mut Writer, x: Val) -> Val {
    /// `c (1 + δ) = 2√(2/π) log₂ e` with a short fraction, `k / c = 0.044715` (2⁻³¹·⁹ and 2⁻⁶⁴), δ.
    const F32: (f64, f64, f64) = (2.302170753479004, 0.10294156521558762, 1.6264938325880952e-05);
    const F64: (f64, f64, f64) = (2.3022081981927727, 0.10294323958218983, -2.1044048517576974e-11);
    let (c, k, delta) = by_kind(w, x, F32, F64);
    let a = w.abs(x);
    let limit = by_kind(w, x, 11.0, 22.0);
    let a = w.at_most(a, limit);
    let s = w.mul(a, a);
    let minus_s = w.neg(s);
    let s_error = w.fma(a, a, minus_s);
    // `u = −(c + k x²)`: its distance from −c is exact.
    let minus_c = w.f(-c, x);
    let u = w.fma_c(s, -k, minus_c);
    let less = w.sub(minus_c, u);
    let u_error = w.fma_c(s, -k, less);
    let u_error = w.fma_c(s_error, -k, u_error);
    let shift = tail_magic(w, x);
    let shift_v = w.f(shift, x);
    let t = w.fma(a, u, shift_v);
    let n = w.add_c(t, -shift);
    let minus_n = w.neg(n);
    let r = w.fma(a, u, minus_n);
    let r = w.fma(a, u_error, r);
    let r = w.fma_c(n, delta, r);
    let tail = tail_of(w, t, r, delta);
    gated(w, x, a, &tail)
}

/// `ln(1 + e^x)`.
pub fn softplus(w: &mut Writer, x: Val) -> Val {
    let (_, tail) = tail(w, x);
    let z = w.mul_c(tail.q, tail.unit);
    let log = super::log::log1p_parts(w, z);
    let zero = w.f(0.0, x);
    let low = w.cmp(Cmp::Le, x, zero);
    let positive = w.select(low, zero, x);
    w.add(positive, log)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::Kind;

    #[test]
    fn a_program_has_few_instructions() {
        let mut w = Writer::default();
        let x = w.arg(0, Kind::F32);
        let y = exp(&mut w, x);
        let real = |p: &crate::scalar::Program| {
            use crate::scalar::Inst::*;
            p.insts.iter().filter(|(i, _)| !matches!(i, Arg(_) | ConstF(_) | ConstI(_) | Bits(_))).count()
        };
        // Two of them (compare and select) are one `max` or `min` on most machines.
        assert_eq!(real(&w.finish(y)), 19);
    }
}

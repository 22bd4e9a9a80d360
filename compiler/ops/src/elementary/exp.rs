//! Exponentials.

use super::by_kind;
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

/// `e^(high + low)` for a sum of two F64 values, −746 ≤ high ≤ 711.
pub(super) fn exp_pair(w: &mut Writer, high: Val, low: Val) -> Val {
    let (p, s) = exp_parts(w, high, Some(low));
    let y = w.mul(p, s);
    w.mul(y, s)
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

/// `z = e^−|x|` as `(z / s, s)`, and `1 + z`.
fn tail(w: &mut Writer, x: Val, low: Option<Val>) -> (Val, Val, Val) {
    let a = w.abs(x);
    let minus = w.neg(a);
    // Far enough that a factor as large as 1e4 does not bring the tail back.
    let bound = by_kind(w, x, -170.0, -1400.0);
    let minus = w.at_least(minus, bound);
    let (p, s) = exp_parts(w, minus, low);
    let part = w.mul(p, s);
    let one = w.f(1.0, x);
    let sum = w.fma(part, s, one);
    (part, s, sum)
}

/// `1 / (1 + e^−x)`, to full relative accuracy on both sides.
pub fn sigmoid(w: &mut Writer, x: Val) -> Val {
    let (part, s, sum) = tail(w, x, None);
    let z = w.mul(part, s);
    let one = w.f(1.0, x);
    let right = w.cmp_c(Cmp::Ge, x, 0.0);
    let top = w.select(right, one, z);
    w.div(top, sum)
}

/// `x / (1 + e^−v)`; `low`, where given, is added to `−|v|`.
fn gated(w: &mut Writer, x: Val, v: Val, low: Option<Val>) -> Val {
    let (part, s, sum) = tail(w, v, low);
    // Where the tail vanishes an infinite `x` would make NaN of it.
    let bound = by_kind(w, x, -1e3, -1e4);
    let bounded = w.at_least(x, bound);
    let left = w.mul(part, bounded);
    let left = w.mul(left, s);
    let right = w.cmp_c(Cmp::Ge, v, 0.0);
    let top = w.select(right, x, left);
    w.div(top, sum)
}

/// `x · sigmoid(x)`.
pub fn silu(w: &mut Writer, x: Val) -> Val {
    gated(w, x, x, None)
}

/// `½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))`, as `x · sigmoid(v)` where `v` is carried with
/// its rounding error, since the exponential would multiply it by `v`.
pub fn gelu_tanh(w: &mut Writer, x: Val) -> Val {
    /// 2√(2/π) in two parts, the first with a short fraction.
    const C: [(f64, f64); 2] = [(1.59576416015625, 4.96144948071176e-06), (1.5957691216057128, 1.7885919910836427e-14)];
    /// 2√(2/π) · 0.044715 in two parts.
    const CUBE: [(f64, f64); 2] =
        [(0.07135481387376785, 2.3988323959931355e-09), (0.07135481627260025, -6.175149918155315e-19)];
    let (c_high, c_low) = by_kind(w, x, C[0], C[1]);
    let cube = by_kind(w, x, CUBE[0], CUBE[1]);
    let limit = by_kind(w, x, 12.0, 30.0);
    let low_x = w.at_least(x, -limit);
    let t = w.at_most(low_x, limit);
    let s = w.mul(t, t);
    let minus_s = w.neg(s);
    let s_error = w.fma(t, t, minus_s);
    let c = w.f(c_high, x);
    let u = w.fma_c(s, cube.0, c);
    let u_less = w.sub(c, u);
    let u_error = w.fma_c(s, cube.0, u_less);
    let u_error = w.add_c(u_error, c_low);
    let u_error = w.fma_c(s, cube.1, u_error);
    let u_error = w.fma_c(s_error, cube.0, u_error);
    let v = w.mul(t, u);
    let minus_v = w.neg(v);
    let v_error = w.fma(t, u, minus_v);
    let v_error = w.fma(t, u_error, v_error);
    // The tail takes −|v|: the error changes sign with it.
    let sign = w.sign_bit(v);
    let v_error = w.neg(v_error);
    let low = w.xor_bits(v_error, sign);
    gated(w, x, v, Some(low))
}

/// `ln(1 + e^x)`.
pub fn softplus(w: &mut Writer, x: Val) -> Val {
    let (part, s, _) = tail(w, x, None);
    let z = w.mul(part, s);
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

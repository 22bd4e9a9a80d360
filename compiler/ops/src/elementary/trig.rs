//! Trigonometric functions and their inverses.
//!
//! F32 arguments are reduced in F64, correctly over the whole range (Payne and Hanek's idea:
//! `x · 2/π` modulo 4, with the part of 2/π that matters for the size of `x`). F64 arguments are
//! reduced by π/2 in three parts up to 2⁵⁰ and as F32 ones beyond (`trig/turns.rs`).

mod turns;

use super::by_kind;
use crate::scalar::{Cmp, FloatFn, IntOp, Kind, Val, Writer};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, PI};

/// `sin(π f / 2) / f` and `cos(π f / 2)` in f² on |f| ≤ 0.52, in F64 for results in F32
/// (2⁻³⁷, 2⁻⁴³).
const SIN_SHORT: [f64; 5] =
    [1.57079632678436, -0.645964095592791, 0.0796925702606726, -0.00468117835780137, 0.00015801563949624088];
const COS_SHORT: [f64; 6] = [
    1.0,
    -1.2337005501174843,
    0.2536695069572551,
    -0.020863465129977294,
    0.0009191464844502703,
    -2.482393922787961e-05,
];
/// `(sin(r)/r − 1) / r²` and `(cos r − 1 + r²/2) / r⁴` in r² on |r| ≤ π/4 (2⁻⁶³, 2⁻⁶⁹).
const SIN_F64: [f64; 7] = [
    -0.16666666666666666,
    0.008333333333333044,
    -0.0001984126984096676,
    2.755731907744523e-06,
    -2.505207213890439e-08,
    1.6054504548166947e-10,
    -7.400799618700881e-13,
];
const COS_F64: [f64; 7] = [
    0.041666666666666664,
    -0.0013888888888888397,
    2.480158730119466e-05,
    -2.7557319068836e-07,
    2.0876724263804805e-09,
    -1.1467158195083976e-11,
    4.607630704524035e-14,
];
/// `(asin(s)/s − 1) / s²` in s² ≤ ¼ (2⁻³¹·⁷, 2⁻⁵⁹·⁸).
const ASIN_F32: [f64; 6] = [0.1666666, 0.07500521, 0.044513635, 0.031836055, 0.01432919, 0.037673123];
const ASIN_F64: [f64; 13] = [
    0.16666666666666763,
    0.07499999999970133,
    0.04464285717524792,
    0.03038194267729909,
    0.02237221584454362,
    0.017351596671765994,
    0.013981003749207336,
    0.011397419522174636,
    0.010788583956123662,
    0.00367506935274384,
    0.021783400747487094,
    -0.021106156545488263,
    0.032695371777092086,
];
/// `(atan(t)/t − 1) / t²` in t² ≤ 1 (2⁻²⁸·⁷, 2⁻⁵⁷·⁷).
const ATAN_F32: [f64; 9] = [
    -0.33333302,
    0.19998626,
    -0.14265092,
    0.10956658,
    -0.08416461,
    0.058178104,
    -0.031394556,
    0.011029073,
    -0.001818756,
];
const ATAN_F64: [f64; 20] = [
    -0.33333333333333093,
    0.19999999999955462,
    -0.14285714282803455,
    0.11111111013680638,
    -0.09090907119688696,
    0.07692281190856598,
    -0.0666641502415482,
    0.05880592678417017,
    -0.05253805971076042,
    0.04723294376654747,
    -0.04221719503778737,
    0.03669354234554876,
    -0.029985564918236285,
    0.02208511063199212,
    -0.01399492171862856,
    0.007263295066802825,
    -0.0029193023447533217,
    0.0008434683132143841,
    -0.0001547930618079397,
    1.3488836020142298e-05,
];

/// 1.5 · 2⁵².
const SHIFT: f64 = 6755399441055744.0;
/// π/2 in three parts.
const PI_2: [f64; 3] = [FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];

/// |sin| up to sign and |cos| up to sign of the reduced argument in F64, the quadrant in the low
/// bits of an I64, and the sign bit of the argument.
struct Quarter {
    sin: Val,
    cos: Val,
    quadrant: Val,
    sign: Val,
}

/// For an F32 argument, with relative error 2⁻³⁶.
fn quarter_f32(w: &mut Writer, x: Val) -> Quarter {
    // 2^(26 j) · 2/π modulo 4, in two parts. An F32 number of at least 2^(23 + 26 j) is a
    // multiple of 2^(26 j), so that whole turns drop out exactly.
    const PARTS: [(f64, f64); 4] = [
        (FRAC_2_PI, -3.935735335036497e-17),
        (1.7235269743613935, -3.646819222375367e-17),
        (1.3227502381170073, 4.585413994155514e-17),
        (1.8357618630902273, 9.501113504670287e-17),
    ];
    let x = w.convert(x, Kind::F64);
    let sign = w.sign_bit(x);
    let a = w.abs(x);
    let (mut scale, mut high, mut low) = (w.f(1.0, a), w.f(PARTS[0].0, a), w.f(PARTS[0].1, a));
    for (j, part) in PARTS.iter().enumerate().skip(1) {
        let j = 26 * j as i32;
        let large = w.cmp_c(Cmp::Ge, a, 2f64.powi(23 + j));
        let (s, h, l) = (w.f(2f64.powi(-j), a), w.f(part.0, a), w.f(part.1, a));
        scale = w.select(large, s, scale);
        high = w.select(large, h, high);
        low = w.select(large, l, low);
    }
    let y = w.mul(a, scale);
    let p = w.mul(y, high);
    let minus = w.neg(p);
    let error = w.fma(y, high, minus);
    let error = w.fma(y, low, error);
    let t = w.add_c(p, SHIFT);
    let n = w.add_c(t, -SHIFT);
    let f = w.sub(p, n);
    let f = w.add(f, error);
    let z = w.mul(f, f);
    let s = w.horner(z, &SIN_SHORT);
    Quarter { sin: w.mul(f, s), cos: w.horner(z, &COS_SHORT), quadrant: w.to_bits(t), sign }
}

/// For an F64 argument.
fn quarter_f64(w: &mut Writer, x: Val) -> Quarter {
    let sign = w.sign_bit(x);
    let a = w.abs(x);
    let shift = w.f(SHIFT, x);
    let t = w.fma_c(a, FRAC_2_PI, shift);
    let n = w.add_c(t, -SHIFT);
    // Exact: the difference is a multiple of the last place of π/2 and below 2.
    let first = w.fma_c(n, -PI_2[0], a);
    let m = w.mul_c(n, -PI_2[1]);
    let minus = w.neg(m);
    let m_low = w.fma_c(n, -PI_2[1], minus);
    // first + m with its error (Knuth's sum, since either may be the larger).
    let r = w.add(first, m);
    let part = w.sub(r, first);
    let other = w.sub(r, part);
    let other = w.sub(first, other);
    let part = w.sub(m, part);
    let low = w.add(other, part);
    let low = w.add(low, m_low);
    let low = w.fma_c(n, -PI_2[2], low);
    let sum = w.add(r, low);
    let lost = w.sub(r, sum);
    let low = w.add(lost, low);
    let far = turns::reduce(w, a);
    let near = w.cmp_c(Cmp::Le, a, 2f64.powi(50));
    let quadrant = w.to_bits(t);
    let sum = w.select(near, sum, far.rest);
    let low = w.select(near, low, far.low);
    let quadrant = w.select(near, quadrant, far.quadrant);
    let (sin, cos) = sin_cos_f64(w, sum, low);
    Quarter { sin, cos, quadrant, sign }
}

/// Sine and cosine of `r + low`, |r| ≤ π/4 (fdlibm's arrangement).
fn sin_cos_f64(w: &mut Writer, r: Val, low: Val) -> (Val, Val) {
    let z = w.mul(r, r);
    let half = w.mul_c(z, 0.5);
    // sin: r + (r³ S + low (1 − z/2)).
    let s = w.horner(z, &SIN_F64);
    let rz = w.mul(r, z);
    let minus = w.neg(half);
    let slope = w.fma(minus, low, low);
    let tail = w.fma(rz, s, slope);
    let sin = w.add(r, tail);
    // cos: (1 − z/2) + its error + z² C − r low.
    let c = w.horner(z, &COS_F64);
    let one = w.f(1.0, r);
    let main = w.sub(one, half);
    let lost = w.sub(one, main);
    let lost = w.sub(lost, half);
    let zz = w.mul(z, z);
    let minus_r = w.neg(r);
    let lost = w.fma(minus_r, low, lost);
    let tail = w.fma(zz, c, lost);
    (sin, w.add(main, tail))
}

fn quarter(w: &mut Writer, x: Val) -> Quarter {
    if w.kind(x) == Kind::F32 { quarter_f32(w, x) } else { quarter_f64(w, x) }
}

/// Whether the quadrant is odd.
fn is_odd(w: &mut Writer, quadrant: Val) -> Val {
    let bit = w.int_c(IntOp::And, quadrant, 1);
    w.cmp_c(Cmp::Ne, bit, 0.0)
}

/// Bit 1 of the quadrant moved to the sign.
fn flip(w: &mut Writer, quadrant: Val) -> Val {
    let bit = w.int_c(IntOp::And, quadrant, 2);
    w.int_c(IntOp::Shl, bit, 62)
}

/// The sine.
pub fn sin(w: &mut Writer, x: Val) -> Val {
    let kind = w.kind(x);
    let q = quarter(w, x);
    let odd = is_odd(w, q.quadrant);
    let y = w.select(odd, q.cos, q.sin);
    let sign = flip(w, q.quadrant);
    let sign = w.int(IntOp::Xor, sign, q.sign);
    let y = w.xor_bits(y, sign);
    w.convert(y, kind)
}

/// The cosine.
pub fn cos(w: &mut Writer, x: Val) -> Val {
    let kind = w.kind(x);
    let q = quarter(w, x);
    let odd = is_odd(w, q.quadrant);
    let y = w.select(odd, q.sin, q.cos);
    let next = w.int_c(IntOp::Add, q.quadrant, 1);
    let sign = flip(w, next);
    let y = w.xor_bits(y, sign);
    w.convert(y, kind)
}

/// The tangent.
pub fn tan(w: &mut Writer, x: Val) -> Val {
    let kind = w.kind(x);
    let q = quarter(w, x);
    let odd = is_odd(w, q.quadrant);
    let top = w.select(odd, q.cos, q.sin);
    let below = w.select(odd, q.sin, q.cos);
    let y = w.div(top, below);
    let turn = w.int_c(IntOp::Shl, q.quadrant, 63);
    let sign = w.int(IntOp::Xor, turn, q.sign);
    let y = w.xor_bits(y, sign);
    w.convert(y, kind)
}

/// `sin πx` and `cos πx` in F64, from the distance to the nearest multiple of ½, which is exact. NaN of infinities.
pub(super) fn sin_cos_pi(w: &mut Writer, x: Val) -> (Val, Val) {
    /// π less the F64 number.
    const PI_LOW: f64 = 1.2246467991473532e-16;
    let a = w.abs(x);
    let twice = w.add(a, a);
    let n = w.float_fn(FloatFn::Round, twice);
    let r = w.fma_c(n, -0.5, a);
    let angle = w.mul_c(r, std::f64::consts::PI);
    let minus = w.neg(angle);
    let low = w.fma_c(r, std::f64::consts::PI, minus);
    let low = w.fma_c(r, PI_LOW, low);
    let (s, c) = sin_cos_f64(w, angle, low);
    // n modulo 4, as two bits.
    let modulo = |w: &mut Writer, n: Val, m: f64| {
        let part = w.mul_c(n, 1.0 / m);
        let whole = w.float_fn(FloatFn::Floor, part);
        w.fma_c(whole, -m, n)
    };
    let quadrant = modulo(w, n, 4.0);
    let bit = modulo(w, quadrant, 2.0);
    let odd = w.cmp_c(Cmp::Eq, bit, 1.0);
    let upper = w.cmp_c(Cmp::Ge, quadrant, 2.0);
    let (sin, cos) = (w.select(odd, c, s), w.select(odd, s, c));
    let minus = w.neg(sin);
    let sin = w.select(upper, minus, sin);
    let left = w.int(IntOp::Xor, odd, upper);
    let minus = w.neg(cos);
    let cos = w.select(left, minus, cos);
    let sign = w.sign_bit(x);
    (w.xor_bits(sin, sign), cos)
}

/// `sin(πx) / (πx)` in F64, 1 at 0.
pub fn sinc(w: &mut Writer, x: Val) -> Val {
    let (sin, _) = sin_cos_pi(w, x);
    let angle = w.mul_c(x, std::f64::consts::PI);
    let y = w.div(sin, angle);
    let one = w.f(1.0, x);
    let size = w.abs(x);
    let tiny = w.cmp_c(Cmp::Lt, size, 2f64.powi(-30));
    w.select(tiny, one, y)
}

/// asin on [0, 1] in two ranges: `(large, p, low)` with `asin a = p` for a ≤ ½ and
/// `π/2 − 2 (p + low)` above.
fn asin_parts(w: &mut Writer, a: Val) -> (Val, Val, Val) {
    let large = w.cmp_c(Cmp::Gt, a, 0.5);
    let one = w.f(1.0, a);
    let rest = w.sub(one, a);
    let rest = w.mul_c(rest, 0.5);
    let square = w.mul(a, a);
    let z = w.select(large, rest, square);
    let root = w.sqrt(rest);
    let s = w.select(large, root, a);
    let q = by_kind(w, a, &ASIN_F32[..], &ASIN_F64[..]);
    let q = w.horner(z, q);
    let sz = w.mul(s, z);
    // What the square root lost: (rest − root²) / (2 root).
    let minus = w.neg(root);
    let lost = w.fma(minus, root, rest);
    let twice = w.add(root, root);
    let lost = w.div(lost, twice);
    let zero = w.f(0.0, a);
    let open = w.cmp_c(Cmp::Gt, rest, 0.0);
    let lost = w.select(open, lost, zero);
    let tail = w.mul(sz, q);
    let with_lost = w.add(tail, lost);
    let tail = w.select(large, with_lost, tail);
    (large, s, tail)
}

/// The inverse sine; NaN outside [−1, 1].
pub fn asin(w: &mut Writer, x: Val) -> Val {
    let (high, low) = by_kind(w, x, HALF_PI_F32, HALF_PI_F64);
    let a = w.abs(x);
    let (large, s, tail) = asin_parts(w, a);
    let small = w.add(s, tail);
    let high = w.f(high, x);
    let minus_two = w.f(-2.0, x);
    // π/2 − 2 s − (2 tail − low): the first difference is exact enough for s ≤ ½.
    let low = w.f(low, x);
    let rest = w.fma(minus_two, tail, low);
    let main = w.fma(minus_two, s, high);
    let lost = w.sub(high, main);
    let lost = w.fma(minus_two, s, lost);
    let rest = w.add(rest, lost);
    let big = w.add(main, rest);
    let y = w.select(large, big, small);
    w.with_sign(y, x)
}

const HALF_PI_F32: (f64, f64) = (1.5707963705062866, -4.371139000186241e-08);
const HALF_PI_F64: (f64, f64) = (FRAC_PI_2, 6.123233995736766e-17);
const PI_F32: (f64, f64) = (3.1415927410125732, -8.742278000372485e-08);
const PI_F64: (f64, f64) = (PI, 1.2246467991473532e-16);

/// The inverse cosine; NaN outside [−1, 1].
pub fn acos(w: &mut Writer, x: Val) -> Val {
    let half_pi = by_kind(w, x, HALF_PI_F32, HALF_PI_F64);
    let pi = by_kind(w, x, PI_F32, PI_F64);
    let a = w.abs(x);
    let (large, s, tail) = asin_parts(w, a);
    let negative = w.cmp_c(Cmp::Lt, x, 0.0);
    // Small: π/2 ∓ (s + tail).
    let signed = |w: &mut Writer, v: Val| {
        let sign = w.sign_bit(x);
        w.xor_bits(v, sign)
    };
    let s_signed = signed(w, s);
    let t_signed = signed(w, tail);
    let near = from_constant(w, half_pi, s_signed, t_signed, 1.0);
    // Large: 2 (s + tail), or π minus that.
    let sum = w.add(s, tail);
    let right = w.add(sum, sum);
    let left = from_constant(w, pi, s, tail, 2.0);
    let far = w.select(negative, left, right);
    w.select(large, far, near)
}

/// `c − factor (s + tail)` with the rounding error of the first difference carried, for a
/// constant in two parts and |c| ≥ |factor s|.
fn from_constant(w: &mut Writer, c: (f64, f64), s: Val, tail: Val, factor: f64) -> Val {
    let (high, low) = (w.f(c.0, s), w.f(c.1, s));
    let minus = w.f(-factor, s);
    let main = w.fma(minus, s, high);
    let lost = w.sub(high, main);
    let lost = w.fma(minus, s, lost);
    let rest = w.fma(minus, tail, low);
    let rest = w.add(rest, lost);
    w.add(main, rest)
}

/// atan on [0, 1] as `t + tail`.
fn atan_tail(w: &mut Writer, t: Val) -> Val {
    let z = w.mul(t, t);
    let q = by_kind(w, t, &ATAN_F32[..], &ATAN_F64[..]);
    let q = w.horner(z, q);
    let tz = w.mul(t, z);
    w.mul(tz, q)
}

/// The inverse tangent.
pub fn atan(w: &mut Writer, x: Val) -> Val {
    let half_pi = by_kind(w, x, HALF_PI_F32, HALF_PI_F64);
    let a = w.abs(x);
    let large = w.cmp_c(Cmp::Gt, a, 1.0);
    let one = w.f(1.0, x);
    let inverse = w.div(one, a);
    let t = w.select(large, inverse, a);
    let tail = atan_tail(w, t);
    let small = w.add(t, tail);
    let big = from_constant(w, half_pi, t, tail, 1.0);
    let y = w.select(large, big, small);
    w.with_sign(y, x)
}

/// The angle of the point (x, y), between −π and π: `atan(y / x)` in the right quadrant, with
/// C's values at zeros and infinities.
pub fn atan2(w: &mut Writer, y: Val, x: Val) -> Val {
    let half_pi = by_kind(w, x, HALF_PI_F32, HALF_PI_F64);
    let pi = by_kind(w, x, PI_F32, PI_F64);
    let (ax, ay) = (w.abs(x), w.abs(y));
    let steep = w.cmp(Cmp::Gt, ay, ax);
    let top = w.select(steep, ax, ay);
    let below = w.select(steep, ay, ax);
    let t = w.div(top, below);
    // 0/0 counts as 0 and ∞/∞ as 1.
    let zero = w.f(0.0, x);
    let one = w.f(1.0, x);
    let at_origin = w.cmp(Cmp::Eq, below, zero);
    let t = w.select(at_origin, zero, t);
    let endless = w.cmp_c(Cmp::Eq, top, f64::INFINITY);
    let t = w.select(endless, one, t);
    let tail = atan_tail(w, t);
    let small = w.add(t, tail);
    let upright = from_constant(w, half_pi, t, tail, 1.0);
    let first = w.select(steep, upright, small);
    // On the left: π − that; the sign bit counts, so that −0 is on the left.
    let sign = w.sign_bit(x);
    let left = w.cmp_c(Cmp::Ne, sign, 0.0);
    let mirrored = from_constant(w, pi, t, tail, 1.0);
    let minus = w.neg(t);
    let minus_tail = w.neg(tail);
    let obtuse = from_constant(w, half_pi, minus, minus_tail, 1.0);
    let second = w.select(steep, obtuse, mirrored);
    let angle = w.select(left, second, first);
    let angle = w.with_sign(angle, y);
    let sum = w.add(x, y);
    let bad_x = w.is_nan(x);
    let bad_y = w.is_nan(y);
    let unordered = w.either(bad_x, bad_y);
    w.select(unordered, sum, angle)
}

//! The normal distribution: its function, the logarithm of that, and its inverse, in F64; F32 is rounded once from there.

use super::erf::mills;
use super::exp::exp_parts;
use super::log::{log, log1p};
use crate::scalar::{Cmp, Val, Writer};
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

/// Where `Φ(−a)` is 0 in F64.
const FARTHEST: f64 = 38.6;

/// Quotients of polynomials of Wichura's algorithm AS 241 (Applied Statistics 37, 1988): `z/q` in 0.180625 − q² for
/// |q| ≤ 0.425; `z` in r − 1.6 for r ≤ 5 and in r − 5 above, where r² = −ln of the smaller tail.
const CENTRE_TOP: [f64; 8] = [
    3.3871328727963665,
    133.14166789178438,
    1971.5909503065513,
    13731.69376550946,
    45921.95393154987,
    67265.7709270087,
    33430.57558358813,
    2509.0809287301227,
];
const CENTRE_BOTTOM: [f64; 8] = [
    1.0,
    42.31333070160091,
    687.1870074920579,
    5394.196021424751,
    21213.794301586597,
    39307.89580009271,
    28729.085735721943,
    5226.495278852854,
];
const NEAR_TOP: [f64; 8] = [
    1.4234371107496835,
    4.630337846156546,
    5.769497221460691,
    3.6478483247632045,
    1.2704582524523684,
    0.2417807251774506,
    0.022723844989269184,
    0.0007745450142783414,
];
const NEAR_BOTTOM: [f64; 8] = [
    1.0,
    2.053191626637759,
    1.6763848301838038,
    0.6897673349851,
    0.14810397642748008,
    0.015198666563616457,
    0.0005475938084995345,
    1.0507500716444169e-09,
];
const FAR_TOP: [f64; 8] = [
    6.657904643501103,
    5.463784911164114,
    1.7848265399172913,
    0.29656057182850487,
    0.026532189526576124,
    0.0012426609473880784,
    2.7115555687434876e-05,
    2.0103343992922881e-07,
];
const FAR_BOTTOM: [f64; 8] = [
    1.0,
    0.599832206555888,
    0.1369298809227358,
    0.014875361290850615,
    0.0007868691311456133,
    1.8463183175100548e-05,
    1.421511758316446e-07,
    2.0442631033899397e-15,
];

/// `Φ(−a)` for a ≥ 0 from `a` itself and `a²/2` in two parts, which is where the digits of a tail come from.
fn tail(w: &mut Writer, a: Val, half: Val, low: Val) -> Val {
    let ratio = mills(w, a);
    let minus = w.neg(half);
    let low = w.neg(low);
    let (p, s) = exp_parts(w, minus, Some(low));
    let y = w.mul(p, ratio);
    let y = w.mul(y, s);
    w.mul(y, s)
}

/// `x²/2` in two parts.
fn half_square(w: &mut Writer, x: Val) -> (Val, Val) {
    let square = w.mul(x, x);
    let minus = w.neg(square);
    let low = w.fma(x, x, minus);
    (w.mul_c(square, 0.5), w.mul_c(low, 0.5))
}

/// `1 − erf(x)`, with the digits of its tail.
pub fn erfc(w: &mut Writer, x: Val) -> Val {
    let a = w.abs(x);
    let a = w.at_most(a, 27.3);
    let scaled = w.mul_c(a, SQRT_2);
    let square = w.mul(a, a);
    let minus = w.neg(square);
    let low = w.fma(a, a, minus);
    let y = tail(w, scaled, square, low);
    let y = w.add(y, y);
    let two = w.f(2.0, x);
    let other = w.sub(two, y);
    let below = w.cmp_c(Cmp::Lt, x, 0.0);
    w.select(below, other, y)
}

/// The distribution function `Φ`.
pub fn ndtr(w: &mut Writer, x: Val) -> Val {
    let a = w.abs(x);
    let a = w.at_most(a, FARTHEST);
    let (half, low) = half_square(w, a);
    let y = tail(w, a, half, low);
    let one = w.f(1.0, x);
    let other = w.sub(one, y);
    let above = w.cmp_c(Cmp::Gt, x, 0.0);
    w.select(above, other, y)
}

/// `ln Φ`: `ln` of Mills' ratio less x²/2 on the left, `ln(1 − Φ(−x))` on the right.
pub fn log_ndtr(w: &mut Writer, x: Val) -> Val {
    let a = w.abs(x);
    let near = w.at_most(a, FARTHEST);
    let ratio = mills(w, near);
    // Beyond the range of the polynomial: (1 − 1/a² + 3/a⁴ − 15/a⁶)/(a √2π).
    let one = w.f(1.0, x);
    let inverse = w.div(one, a);
    let z = w.mul(inverse, inverse);
    let series = w.horner(z, &[1.0, -1.0, 3.0, -15.0, 105.0]);
    let series = w.mul(series, inverse);
    let far = w.mul_c(series, 0.398_942_280_401_432_7);
    let is_far = w.cmp_c(Cmp::Gt, a, FARTHEST);
    let ratio = w.select(is_far, far, ratio);
    let ln = log(w, ratio);
    let half = w.mul_c(a, 0.5);
    let minus = w.neg(half);
    let left = w.fma(minus, a, ln);
    let (half, low) = half_square(w, near);
    let y = tail(w, near, half, low);
    let y = w.neg(y);
    let right = log1p(w, y);
    let lowest = w.f(f64::NEG_INFINITY, x);
    let endless = w.cmp_c(Cmp::Eq, x, f64::NEG_INFINITY);
    let left = w.select(endless, lowest, left);
    let above = w.cmp_c(Cmp::Gt, x, 0.0);
    let y = w.select(above, right, left);
    let unordered = w.is_nan(x);
    w.select(unordered, x, y)
}

/// `z` with `Φ(z) = ½ + q`, where `rest` is the smaller of `Φ(z)` and `1 − Φ(z)`.
fn quantile(w: &mut Writer, q: Val, rest: Val) -> Val {
    let minus = w.neg(q);
    let start = w.f(0.180625, q);
    let r = w.fma(minus, q, start);
    let top = w.horner(r, &CENTRE_TOP);
    let bottom = w.horner(r, &CENTRE_BOTTOM);
    let top = w.mul(top, q);
    let centre = w.div(top, bottom);
    let ln = log(w, rest);
    let ln = w.neg(ln);
    let r = w.sqrt(ln);
    let t = w.add_c(r, -1.6);
    let (top, bottom) = (w.horner(t, &NEAR_TOP), w.horner(t, &NEAR_BOTTOM));
    let near = w.div(top, bottom);
    let t = w.add_c(r, -5.0);
    let (top, bottom) = (w.horner(t, &FAR_TOP), w.horner(t, &FAR_BOTTOM));
    let far = w.div(top, bottom);
    let is_near = w.cmp_c(Cmp::Le, r, 5.0);
    let y = w.select(is_near, near, far);
    let endless = w.f(f64::INFINITY, q);
    let end = w.cmp_c(Cmp::Eq, rest, 0.0);
    let y = w.select(end, endless, y);
    let y = w.with_sign(y, q);
    let size = w.abs(q);
    let inside = w.cmp_c(Cmp::Le, size, 0.425);
    w.select(inside, centre, y)
}

/// The inverse of `Φ`: −∞ at 0, ∞ at 1, NaN outside.
pub fn ndtri(w: &mut Writer, p: Val) -> Val {
    let q = w.add_c(p, -0.5);
    let one = w.f(1.0, p);
    let other = w.sub(one, p);
    let left = w.cmp_c(Cmp::Lt, q, 0.0);
    let rest = w.select(left, p, other);
    let y = quantile(w, q, rest);
    let (above, below) = (w.cmp_c(Cmp::Ge, p, 0.0), w.cmp_c(Cmp::Le, p, 1.0));
    let inside = w.both(above, below);
    let nan = w.f(f64::NAN, p);
    w.select(inside, y, nan)
}

/// The inverse of `erf`: ±∞ at ±1, NaN outside.
pub fn erfinv(w: &mut Writer, x: Val) -> Val {
    let q = w.mul_c(x, 0.5);
    let size = w.abs(q);
    let half = w.f(0.5, x);
    let rest = w.sub(half, size);
    let y = quantile(w, q, rest);
    let y = w.mul_c(y, FRAC_1_SQRT_2);
    let inside = w.cmp_c(Cmp::Le, size, 0.5);
    let nan = w.f(f64::NAN, x);
    w.select(inside, y, nan)
}

//! Inverses: of the hyperbolic functions, and the cube root. In F64; F32 is rounded once from there.

use super::exp::scale;
use super::log::{log, log1p, split_any};
use crate::scalar::{Cmp, FloatFn, Val, Writer};
use std::f64::consts::LN_2;

/// From here on `x² + 1` is `x²`.
const FAR: f64 = 268_435_456.0;

/// The inverse hyperbolic sine, odd: `ln(a + √(a² + 1))` as `ln(1 + a + a²/(1 + √(a² + 1)))`.
pub fn asinh(w: &mut Writer, x: Val) -> Val {
    let a = w.abs(x);
    let square = w.mul(a, a);
    let sum = w.add_c(square, 1.0);
    let root = w.sqrt(sum);
    let below = w.add_c(root, 1.0);
    let part = w.div(square, below);
    let near = w.add(a, part);
    let near = log1p(w, near);
    let y = far(w, a, near);
    let y = w.with_sign(y, x);
    w.keep_tiny(x, 2f64.powi(-28), y)
}

/// `ln 2a` for large `a`, else `near`.
fn far(w: &mut Writer, a: Val, near: Val) -> Val {
    let ln = log(w, a);
    let ln = w.add_c(ln, LN_2);
    let is_far = w.cmp_c(Cmp::Gt, a, FAR);
    w.select(is_far, ln, near)
}

/// The inverse hyperbolic cosine; NaN below 1.
pub fn acosh(w: &mut Writer, x: Val) -> Val {
    let t = w.add_c(x, -1.0);
    let above = w.add_c(t, 2.0);
    let product = w.mul(t, above);
    let root = w.sqrt(product);
    let sum = w.add(t, root);
    let near = log1p(w, sum);
    far(w, x, near)
}

/// The inverse hyperbolic tangent, odd: `½ ln(1 + 2a/(1 − a))`; NaN outside [−1, 1].
pub fn atanh(w: &mut Writer, x: Val) -> Val {
    let a = w.abs(x);
    let one = w.f(1.0, x);
    let below = w.sub(one, a);
    let twice = w.add(a, a);
    let quotient = w.div(twice, below);
    // Near 0 the first term is exact.
    let rest = w.mul(twice, a);
    let rest = w.div(rest, below);
    let near = w.add(twice, rest);
    let is_near = w.cmp_c(Cmp::Lt, a, 0.5);
    let argument = w.select(is_near, near, quotient);
    let y = log1p(w, argument);
    let y = w.mul_c(y, 0.5);
    let y = w.abs(y);
    let y = w.with_sign(y, x);
    let outside = w.cmp_c(Cmp::Gt, a, 1.0);
    let nan = w.f(f64::NAN, x);
    let y = w.select(outside, nan, y);
    w.keep_tiny(x, 2f64.powi(-28), y)
}

/// The cube root, odd: a polynomial on three binades, and two of Halley's steps.
pub fn cbrt(w: &mut Writer, x: Val) -> Val {
    /// The cube root in (m − mid)/half on 0.7 ≤ m ≤ 4√2 (2⁻¹²).
    const CBRT: [f64; 8] = [
        1.4703904182212595,
        0.3818193491232048,
        -0.10218803047347537,
        0.04720509453209135,
        -0.009814897918177617,
        -0.0002614474698651205,
        -0.023400419725302882,
        0.018127749970840105,
    ];
    const MID: f64 = (0.7 + 4.0 * std::f64::consts::SQRT_2) / 2.0;
    const HALF: f64 = (4.0 * std::f64::consts::SQRT_2 - 0.7) / 2.0;
    /// Adding this rounds to an integer, which the low bits then hold.
    const MAGIC: f64 = 6755399441055744.0;
    let a = w.abs(x);
    let (e, f) = split_any(w, a);
    // e = 3q + r with 0 ≤ r ≤ 2.
    let third = w.mul_c(e, 1.0 / 3.0);
    let q = w.float_fn(FloatFn::Floor, third);
    let r = w.fma_c(q, -3.0, e);
    let m = w.add_c(f, 1.0);
    let (two, four, one) = (w.f(2.0, x), w.f(4.0, x), w.f(1.0, x));
    let (is_one, is_two) = (w.cmp_c(Cmp::Eq, r, 1.0), w.cmp_c(Cmp::Eq, r, 2.0));
    let factor = w.select(is_two, four, one);
    let factor = w.select(is_one, two, factor);
    let m = w.mul(m, factor);
    let t = w.add_c(m, -MID);
    let t = w.mul_c(t, 1.0 / HALF);
    let mut y = w.horner(t, &CBRT);
    // y (1 + (m − y³)/(2y³ + m)); the difference by the error of the square, so that the last step rounds once.
    for _ in 0..2 {
        let square = w.mul(y, y);
        let minus = w.neg(square);
        let square_low = w.fma(y, y, minus);
        let rest = w.fma(minus, y, m);
        let low = w.neg(square_low);
        let rest = w.fma(low, y, rest);
        let cube = w.mul(square, y);
        let below = w.fma_c(cube, 2.0, m);
        let step = w.div(rest, below);
        y = w.fma(y, step, y);
    }
    let t = w.add_c(q, MAGIC);
    let y = scale(w, y, t);
    let y = w.with_sign(y, x);
    // 0, ∞ and NaN are their own roots.
    let special = w.cmp_c(Cmp::Eq, a, 0.0);
    let finite = w.cmp_c(Cmp::Lt, a, f64::INFINITY);
    let infinite = w.not(finite);
    let special = w.either(special, infinite);
    w.select(special, x, y)
}

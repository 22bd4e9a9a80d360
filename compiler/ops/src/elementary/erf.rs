//! The error function and what is built on it.

use super::by_kind;
use super::exp::{clamped, exp, exp_parts, tail_magic, tail_of};
use crate::scalar::{Cmp, Kind, Val, Writer};

/// `erf(x)/x − 1` in x² on |x| ≤ 0.93 (2⁻²⁹·⁹, 2⁻⁵⁶·³).
const ERF_F32: [f64; 7] =
    [0.12837917, -0.3761263, 0.11283624, -0.026855588, 0.005191948, -0.00080438395, 7.9696634e-05];
const ERF_F64: [f64; 13] = [
    0.1283791670955126,
    -0.37612638903183904,
    0.11283791670960525,
    -0.026866170646021727,
    0.005223977633645434,
    -0.0008548327489445718,
    0.00012055350223006359,
    -1.4926077275089965e-05,
    1.6469224808966808e-06,
    -1.644398174193007e-07,
    1.534185029982495e-08,
    -1.424453028962866e-09,
    1.1274511613801582e-10,
];
/// `ln erfc(x)` on 0.9 ≤ x ≤ 4 (error 2⁻²⁹·¹ of erf).
const LOG_ERFC_F32: [f64; 7] =
    [-0.00016648255, -1.1277971, -0.6369762, -0.104113735, 0.02231535, -0.0030655656, 0.00019823342];
/// `e^(a²/2) Φ(−a)`, where Φ is the normal distribution, as a quotient for 0 ≤ a ≤ 14.7 (2⁻²⁵·⁷).
const NORMAL_TOP: [f64; 5] = [0.5, 0.4380053, 0.18299484, 0.0405447, 0.004100852];
const NORMAL_BOTTOM: [f64; 6] = [1.0, 1.6738955, 1.2015611, 0.46882927, 0.10163694, 0.010279193];
/// `(a + 4) e^(a²/2) Φ(−a)` in u = (a − 4)/(a + 4) for 0 ≤ a ≤ 39 (2⁻⁵³·⁷).
const NORMAL_F64: [f64; 23] = [
    0.7552851304157515,
    -0.6078966419718921,
    0.3871374007422195,
    -0.18652185795966544,
    0.060396574890666195,
    -0.007540188966433836,
    -0.003479692361606256,
    0.0016308184532622366,
    0.0001333442485234444,
    -0.0002310949035921722,
    -1.9078439851633524e-06,
    3.514456914773877e-05,
    7.149755635808162e-07,
    -5.920009864390713e-06,
    -6.252284314235841e-07,
    1.0218547970080675e-06,
    2.641542758968408e-07,
    -1.5658951585006584e-07,
    -7.7209796483865e-08,
    1.606766352723375e-08,
    1.4618442887168385e-08,
    -3.3861911410601783e-10,
    -1.1963360305607967e-09,
];

/// `e^(a²/2) Φ(−a)` in F64 for 0 ≤ a ≤ 39: Mills' ratio up to a factor. Chebyshev-like in
/// the variable of Shepherd and Laframboise (Math. Comp. 36, 1981).
pub(super) fn mills(w: &mut Writer, a: Val) -> Val {
    let one = w.f(1.0, a);
    let sum = w.add_c(a, 4.0);
    let d = w.div(one, sum);
    let u = w.fma_c(d, -8.0, one);
    let q = w.horner(u, &NORMAL_F64);
    w.mul(q, d)
}

/// The error function, odd.
pub fn erf(w: &mut Writer, x: Val) -> Val {
    let a = w.abs(x);
    let z = w.mul(x, x);
    let q = by_kind(w, x, &ERF_F32[..], &ERF_F64[..]);
    let q = w.horner(z, q);
    let small = w.fma(x, q, x);
    let rest = if w.kind(x) == Kind::F32 { erfc_f32(w, a) } else { erfc_f64(w, a) };
    let one = w.f(1.0, x);
    let large = w.sub(one, rest);
    let large = w.with_sign(large, x);
    let is_small = w.cmp_c(Cmp::Lt, a, 0.92);
    w.select(is_small, small, large)
}

/// `1 − erf` above 0.9, as e to a polynomial.
fn erfc_f32(w: &mut Writer, a: Val) -> Val {
    let a = w.at_most(a, 4.0);
    let log = w.horner(a, &LOG_ERFC_F32);
    exp(w, log)
}

/// `1 − erf` above 0.9, as `2 Φ(−a√2)`.
fn erfc_f64(w: &mut Writer, a: Val) -> Val {
    let a = w.at_most(a, 27.0);
    let scaled = w.mul_c(a, std::f64::consts::SQRT_2);
    let ratio = mills(w, scaled);
    let square = w.mul(a, a);
    let minus = w.neg(square);
    let low = w.fma(a, a, minus);
    let low = w.neg(low);
    let (p, s) = exp_parts(w, minus, Some(low));
    let y = w.mul(p, ratio);
    let y = w.add(y, y);
    let y = w.mul(y, s);
    w.mul(y, s)
}

/// `x Φ(x)`: the exact form of GELU, with full relative accuracy on the left too.
pub fn gelu(w: &mut Writer, x: Val) -> Val {
    if w.kind(x) == Kind::F32 { gelu_f32(w, x) } else { gelu_f64(w, x) }
}

/// `max(x, 0) − |x| Φ(−|x|)`, the tail in base 2 with the rounding error of the square.
fn gelu_f32(w: &mut Writer, x: Val) -> Val {
    /// ½ log₂ e in two parts.
    const HALF: (f64, f64) = (0.7213475108146667, 9.629814955633087e-09);
    let a = w.abs(x);
    let a = w.at_most(a, 14.5);
    let square = w.mul(a, a);
    let minus = w.neg(square);
    let low = w.fma(a, a, minus);
    let shift = tail_magic(w, x);
    let shift_v = w.f(shift, x);
    let t = w.fma_c(square, -HALF.0, shift_v);
    let n = w.add_c(t, -shift);
    let n = w.neg(n);
    let r = w.fma_c(square, -HALF.0, n);
    let r = w.fma_c(square, -HALF.1, r);
    let r = w.fma_c(low, -HALF.0, r);
    let tail = tail_of(w, t, r, 0.0);
    let top = w.horner(a, &NORMAL_TOP);
    let top = w.mul(top, a);
    let top = w.mul(top, tail.q);
    let bottom = w.horner(a, &NORMAL_BOTTOM);
    let y = w.div(top, bottom);
    let positive = w.at_least(x, 0.0);
    w.fma_c(y, -tail.unit, positive)
}

/// The same in F64.
fn gelu_f64(w: &mut Writer, x: Val) -> Val {
    let a = w.abs(x);
    let a = w.at_most(a, 39.0);
    let ratio = mills(w, a);
    // e^(−a²/2) with the rounding error of the square.
    let square = w.mul(a, a);
    let minus = w.neg(square);
    let low = w.fma(a, a, minus);
    let half = w.mul_c(minus, 0.5);
    let half = clamped(w, half);
    let low = w.mul_c(low, -0.5);
    let (p, s) = exp_parts(w, half, Some(low));
    let y = w.mul(p, ratio);
    let y = w.mul(y, a);
    let y = w.mul(y, s);
    let y = w.neg(y);
    let zero = w.f(0.0, x);
    let below = w.cmp(Cmp::Le, x, zero);
    let positive = w.select(below, zero, x);
    w.fma(y, s, positive)
}

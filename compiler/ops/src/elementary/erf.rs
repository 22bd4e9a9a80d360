//! The error function and what is built on it.

use super::by_kind;
use super::exp::{clamped, exp, exp_parts};
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
/// `(a + 4) e^(a²/2) Φ(−a)` in u = (a − 4)/(a + 4), where Φ is the normal distribution, for
/// 0 ≤ a ≤ 15 (2⁻²⁵·⁶) and 0 ≤ a ≤ 39 (2⁻⁵³·⁷).
const NORMAL_F32: [f64; 10] = [
    0.75528514,
    -0.60789657,
    0.38713625,
    -0.18652377,
    0.060411185,
    -0.0075223306,
    -0.0035390554,
    0.001555296,
    0.00020969706,
    -0.00010938679,
];
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

/// `e^(a²/2) Φ(−a)` for 0 ≤ a ≤ 39 (15 for F32): Mills' ratio up to a factor. Chebyshev-like in
/// the variable of Shepherd and Laframboise (Math. Comp. 36, 1981).
fn mills(w: &mut Writer, a: Val) -> Val {
    let one = w.f(1.0, a);
    let sum = w.add_c(a, 4.0);
    let d = w.div(one, sum);
    let u = w.fma_c(d, -8.0, one);
    let q = by_kind(w, a, &NORMAL_F32[..], &NORMAL_F64[..]);
    let q = w.horner(u, q);
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
    let a = w.abs(x);
    let limit = by_kind(w, x, 15.0, 39.0);
    let a = w.at_most(a, limit);
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

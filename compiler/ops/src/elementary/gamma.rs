//! The gamma function, its logarithm and the derivatives of that, in F64; F32 is rounded once from there.
//!
//! Polynomials interpolate at Chebyshev's points (the figure is the largest relative error as a power of two); from 8 on
//! it is Stirling's series, below ½ reflection.

use super::exp::{exp, exp_pair};
use super::log::{log, log_pair, log1p};
use super::{exact_sum, trig};
use crate::scalar::{Cmp, FloatFn, Val, Writer};
use std::f64::consts::PI;

/// `lnΓ(x) / ((x − 1)(x − 2))` in x − 2 on 1 ≤ x ≤ 3 (2⁻⁵⁶).
const LGAMMA_1_3: [f64; 28] = [
    0.42278433509846713,
    -0.1003173016743539,
    0.032965000621156974,
    -0.012384192193374355,
    0.004998641164623283,
    -0.0021081308338291313,
    0.0009153769241238952,
    -0.0004057073999387517,
    0.00018255261441838105,
    -8.30950999467849e-05,
    3.81690832831345e-05,
    -1.76618554743359e-05,
    8.221205092155423e-06,
    -3.846514242663473e-06,
    1.8114769634727658e-06,
    -8.554816957122729e-07,
    3.95720794275161e-07,
    -1.861315818147291e-07,
    1.0444285443279689e-07,
    -5.2038665332275675e-08,
    5.68873795385758e-09,
    -7.860744687083056e-10,
    1.6327287432845006e-08,
    -8.952022836709702e-09,
    -4.358862409072515e-09,
    2.4694237633377504e-09,
    1.5818126337371086e-09,
    -8.190037783551156e-10,
];
/// `lnΓ(x)` in (x − 5.5)/2.5 on 3 ≤ x ≤ 8 (2⁻⁵⁶).
const LGAMMA_3_8: [f64; 26] = [
    3.9578139676187165,
    4.027732871454377,
    0.6229449593425844,
    -0.10314830083671965,
    0.02553807401684633,
    -0.007563969760424914,
    0.0024817507366583893,
    -0.0008698740141974956,
    0.0003192344783515537,
    -0.0001211613671272377,
    4.717366845630735e-05,
    -1.8736393318226595e-05,
    7.561781360323195e-06,
    -3.0913821208663793e-06,
    1.2748130685032373e-06,
    -5.309228233999001e-07,
    2.278350958399823e-07,
    -9.700728763548304e-08,
    3.456482950625192e-08,
    -1.4069171474956058e-08,
    1.2207136123174234e-08,
    -5.686880476132719e-09,
    -1.2336230091965687e-09,
    6.913054975483274e-10,
    9.83199178284599e-10,
    -4.528773990510162e-10,
];
/// `x (lnΓ(x) − (x − ½)(ln x − 1) − ½ ln 2π + ½)` in 128/x² − 1 from 8 on (2⁻⁵¹, of a correction).
const STIRLING: [f64; 6] = [
    0.0833116801042944,
    -2.1605346910997007e-05,
    4.7607381974325075e-08,
    -2.71819176819136e-10,
    2.8786389974410697e-12,
    -4.8106269892916366e-14,
];
/// `(Γ(2 + f) − 1) / f` in 2 f − 1 on 0 ≤ f ≤ 1 (2⁻⁵⁵).
const GAMMA_2_3: [f64; 17] = [
    0.658680776358274,
    0.2760537452678114,
    0.05122554372285697,
    0.012242267987432722,
    0.0014668862628391072,
    0.0003056625242819482,
    1.910008274466981e-05,
    6.015550193013158e-06,
    -1.2122083084102342e-07,
    1.3661719544158771e-07,
    -1.6832901352720064e-08,
    4.333707121948794e-09,
    -7.901859992882075e-10,
    1.6236857962700874e-10,
    -3.1993012990252056e-11,
    7.776187697481868e-12,
    -1.5700092766031736e-12,
];
/// Where the digamma function is 0, in two parts.
const DIGAMMA_ROOT: (f64, f64) = (1.4616321449683622, 9.549995429965697e-17);
/// `ψ(x) / (x − root)` in x − 2 on 1 ≤ x ≤ 3 (2⁻⁵⁶).
const DIGAMMA_1_3: [f64; 30] = [
    0.7853075386041053,
    -0.26073895468300146,
    0.10899991701762612,
    -0.04955103291766727,
    0.023447309597734074,
    -0.011338432553570059,
    0.005552254171105199,
    -0.0027395728785465467,
    0.0013581421936730543,
    -0.0006753134209495447,
    0.0003364323495666613,
    -0.00016781483194783505,
    8.377980375728113e-05,
    -4.184787693054116e-05,
    2.0891220143025212e-05,
    -1.0435770943228892e-05,
    5.269921956816271e-06,
    -2.645871409092003e-06,
    1.2098986471677347e-06,
    -5.864278463317367e-07,
    4.642683009813479e-07,
    -2.532281805799342e-07,
    -5.853294516772412e-08,
    4.594744120460249e-08,
    1.1655551107493253e-07,
    -6.695140151139414e-08,
    -3.607440221465453e-08,
    2.070604694120438e-08,
    1.0254404239698909e-08,
    -5.495315942645068e-09,
];
/// `ψ(x)` in (x − 5.5)/2.5 on 3 ≤ x ≤ 8 (2⁻⁵⁶).
const DIGAMMA_3_8: [f64; 27] = [
    1.6110931485817512,
    0.49835596747406935,
    -0.12377796100406958,
    0.04086091842675394,
    -0.015127939520489391,
    0.005956201774586262,
    -0.0024356472482112528,
    0.001021550230060169,
    -0.00043618081895054945,
    0.00018869552947605296,
    -8.244087009424197e-05,
    3.629207003069349e-05,
    -1.607178087411632e-05,
    7.154232833569258e-06,
    -3.196017415442019e-06,
    1.4232196992018782e-06,
    -6.376405583317857e-07,
    3.027949487431154e-07,
    -1.385726278481613e-07,
    4.2152065427113866e-08,
    -1.7122247928551016e-08,
    2.5618847285939913e-08,
    -1.2744954453805566e-08,
    -4.401501554948059e-09,
    2.393314788928308e-09,
    2.3067022777467014e-09,
    -1.1075342047101553e-09,
];
/// `x² (ln x − 1/(2x) − ψ(x))` in 128/x² − 1 from 8 on (2⁻⁵³, of a correction).
const DIGAMMA_TAIL: [f64; 7] = [
    0.08326846941047238,
    -6.462561120254874e-05,
    2.3640599786122874e-07,
    -1.8797186990549898e-09,
    2.5411766912582853e-11,
    -5.155956682557353e-13,
    1.4472010493854844e-14,
];
/// `½ ln 2π − ½`.
const HALF_LOG_TAU: f64 = 0.4189385332046727;

/// `δ` with `lnΓ(x) = (x − ½) ln x − x + ½ ln 2π + δ` for x ≥ 8.
pub(super) fn stirling(w: &mut Writer, x: Val) -> Val {
    let one = w.f(1.0, x);
    let u = w.div(one, x);
    let t = tail_variable(w, u);
    let p = w.horner(t, &STIRLING);
    w.mul(p, u)
}

/// `128 u² − 1`.
fn tail_variable(w: &mut Writer, u: Val) -> Val {
    let z = w.mul(u, u);
    let minus_one = w.f(-1.0, u);
    w.fma_c(z, 128.0, minus_one)
}

/// `(x − 5.5) / 2.5`.
fn middle_variable(w: &mut Writer, x: Val) -> Val {
    let d = w.add_c(x, -5.5);
    w.mul_c(d, 0.4)
}

/// `lnΓ(1 + a)` for a ≥ 0, accurate near 0 and 1.
pub(super) fn log_gamma_1p(w: &mut Writer, a: Val) -> Val {
    let below = w.add_c(a, -1.0);
    let r = w.horner(below, &LGAMMA_1_3);
    let factor = w.mul(a, below);
    let small = w.mul(factor, r);
    // 0 at 1, and not −0.
    let small = w.add_c(small, 0.0);
    let x = w.add_c(a, 1.0);
    let t = middle_variable(w, x);
    let middle = w.horner(t, &LGAMMA_3_8);
    let ln = log(w, x);
    let ln = w.add_c(ln, -1.0);
    let half = w.add_c(x, -0.5);
    let rest = stirling(w, x);
    let rest = w.add_c(rest, HALF_LOG_TAU);
    let large = w.fma(half, ln, rest);
    let is_small = w.cmp_c(Cmp::Lt, a, 2.0);
    let is_large = w.cmp_c(Cmp::Ge, a, 7.0);
    let y = w.select(is_large, large, middle);
    w.select(is_small, small, y)
}

/// `lnΓ(x)` for x > 0, by `Γ(x) = Γ(1 + x) / x` below 1.
fn lgamma_positive(w: &mut Writer, x: Val) -> Val {
    let less = w.add_c(x, -1.0);
    let small = w.cmp_c(Cmp::Lt, x, 1.0);
    let argument = w.select(small, x, less);
    let y = log_gamma_1p(w, argument);
    let ln = log(w, x);
    let near_zero = w.sub(y, ln);
    w.select(small, near_zero, y)
}

/// The logarithm of |Γ(x)|.
pub fn lgamma(w: &mut Writer, x: Val) -> Val {
    let a = w.abs(x);
    // Γ(a) = Γ(1 + a) / a below 1; of a negative number, Γ(x) Γ(1 − x) = π / sin πx.
    let less = w.add_c(a, -1.0);
    let small = w.cmp_c(Cmp::Lt, a, 1.0);
    let below = w.cmp_c(Cmp::Lt, x, 0.0);
    let shifted = w.either(small, below);
    let argument = w.select(shifted, a, less);
    let y = log_gamma_1p(w, argument);
    let ln = log(w, a);
    let near_zero = w.sub(y, ln);
    let (sine, _) = trig::sin_cos_pi(w, a);
    let sine = w.abs(sine);
    let sine = w.mul_c(sine, 1.0 / PI);
    let log_sine = log(w, sine);
    let negative = w.add(log_sine, y);
    let negative = w.neg(negative);
    let y = w.select(small, near_zero, y);
    let y = w.select(below, negative, y);
    let endless = w.f(f64::INFINITY, x);
    let is_endless = w.cmp_c(Cmp::Eq, a, f64::INFINITY);
    let pole = w.cmp_c(Cmp::Eq, a, 0.0);
    let is_endless = w.either(is_endless, pole);
    let whole = w.cmp_c(Cmp::Eq, sine, 0.0);
    let pole = w.both(whole, below);
    let is_endless = w.either(is_endless, pole);
    w.select(is_endless, endless, y)
}

/// `ψ(x)` for x ≥ 1.
fn digamma_from_1(w: &mut Writer, x: Val) -> Val {
    let t = w.add_c(x, -2.0);
    let d = w.add_c(x, -DIGAMMA_ROOT.0);
    let d = w.add_c(d, -DIGAMMA_ROOT.1);
    let p = w.horner(t, &DIGAMMA_1_3);
    let small = w.mul(d, p);
    let t = middle_variable(w, x);
    let middle = w.horner(t, &DIGAMMA_3_8);
    let one = w.f(1.0, x);
    let u = w.div(one, x);
    let t = tail_variable(w, u);
    let p = w.horner(t, &DIGAMMA_TAIL);
    let half = w.f(0.5, x);
    let p = w.fma(p, u, half);
    let ln = log(w, x);
    let minus = w.neg(u);
    let large = w.fma(minus, p, ln);
    let is_small = w.cmp_c(Cmp::Lt, x, 3.0);
    let is_large = w.cmp_c(Cmp::Ge, x, 8.0);
    let y = w.select(is_large, large, middle);
    w.select(is_small, small, y)
}

/// `ψ(x)` for x > 0, by `ψ(x) = ψ(1 + x) − 1/x` below 1.
pub(super) fn digamma_positive(w: &mut Writer, x: Val) -> Val {
    let next = w.add_c(x, 1.0);
    let small = w.cmp_c(Cmp::Lt, x, 1.0);
    let argument = w.select(small, next, x);
    let y = digamma_from_1(w, argument);
    let one = w.f(1.0, x);
    let inverse = w.div(one, x);
    let shifted = w.sub(y, inverse);
    w.select(small, shifted, y)
}

/// `ψ(1 + a)` for a ≥ 0.
pub(super) fn digamma_1p(w: &mut Writer, a: Val) -> Val {
    let x = w.add_c(a, 1.0);
    digamma_from_1(w, x)
}

/// The derivative of `lgamma`: ∓∞ at ±0, NaN at negative integers.
pub fn digamma(w: &mut Writer, x: Val) -> Val {
    let zero = w.f(0.0, x);
    let below = w.cmp(Cmp::Lt, x, zero);
    // ψ(x) = ψ(1 − x) − π / tan πx, ψ(x) = ψ(1 + x) − 1/x.
    let one = w.f(1.0, x);
    let reflected = w.sub(one, x);
    let next = w.add_c(x, 1.0);
    let small = w.cmp_c(Cmp::Lt, x, 1.0);
    let argument = w.select(small, next, x);
    let argument = w.select(below, reflected, argument);
    let y = digamma_from_1(w, argument);
    let inverse = w.div(one, x);
    let shifted = w.sub(y, inverse);
    let (sine, cosine) = trig::sin_cos_pi(w, x);
    let cosine = w.mul_c(cosine, PI);
    let cot = w.div(cosine, sine);
    let negative = w.sub(y, cot);
    let nan = w.f(f64::NAN, x);
    let whole = w.cmp_c(Cmp::Eq, sine, 0.0);
    let negative = w.select(whole, nan, negative);
    let y = w.select(small, shifted, y);
    let y = w.select(below, negative, y);
    let unordered = w.is_nan(x);
    w.select(unordered, x, y)
}

/// Steps by which an argument is brought to 2 to 3.
const STEPS: i32 = 10;

/// The gamma function; exact for integers whose factorial is a number. NaN at negative integers, ±∞ at ±0.
pub fn gamma(w: &mut Writer, x: Val) -> Val {
    let a = w.abs(x);
    // From 0 to 12: Γ(a) = (a − 1) (a − 2) … Γ(2 + f), or Γ(2 + a) / (a (a + 1)).
    let one = w.f(1.0, x);
    let mut y = a;
    let mut product = one;
    for _ in 0..STEPS {
        let more = w.cmp_c(Cmp::Ge, y, 3.0);
        let less = w.add_c(y, -1.0);
        let times = w.mul(product, less);
        y = w.select(more, less, y);
        product = w.select(more, times, product);
    }
    let mut quotient = one;
    for _ in 0..2 {
        let more = w.cmp_c(Cmp::Lt, y, 2.0);
        let next = w.add_c(y, 1.0);
        let times = w.mul(quotient, y);
        quotient = w.select(more, times, quotient);
        y = w.select(more, next, y);
    }
    let f = w.add_c(y, -2.0);
    let minus_one = w.f(-1.0, x);
    let t = w.fma_c(f, 2.0, minus_one);
    let p = w.horner(t, &GAMMA_2_3);
    let base = w.fma(f, p, one);
    let small = w.mul(base, product);
    let small = w.div(small, quotient);
    // Above: e to Stirling's series, whose first terms are carried in two parts. Squares of a root reach all of the range.
    let clamped = w.at_least(a, 8.0);
    let clamped = w.at_most(clamped, 200.0);
    let (ln, ln_low) = log_pair(w, clamped);
    let half = w.add_c(clamped, -0.5);
    let high = w.mul(half, ln);
    let minus = w.neg(high);
    let low = w.fma(half, ln, minus);
    let low = w.fma(half, ln_low, low);
    let minus = w.neg(clamped);
    let (high, lost) = exact_sum(w, high, minus);
    let low = w.add(low, lost);
    let rest = stirling(w, clamped);
    let rest = w.add_c(rest, HALF_LOG_TAU + 0.5);
    let low = w.add(low, rest);
    let (high, low) = exact_sum(w, high, low);
    // Of a negative argument what is wanted is π / (a sin πa Γ(a)), with the exponent below 0.
    let below = w.cmp_c(Cmp::Lt, x, 0.0);
    let (minus, minus_low) = (w.neg(high), w.neg(low));
    let high = w.select(below, minus, high);
    let low = w.select(below, minus_low, low);
    let large = exp_pair(w, high, low);
    let is_large = w.cmp_c(Cmp::Gt, a, 12.0);
    let direct = w.select(is_large, large, small);
    let inverse = w.div(one, small);
    let inverse = w.select(is_large, large, inverse);
    let (sine, _) = trig::sin_cos_pi(w, x);
    let below_all = w.mul(x, sine);
    let below_all = w.mul_c(below_all, -1.0 / PI);
    let reflected = w.div(inverse, below_all);
    let y = w.select(below, reflected, direct);
    // 1/x near 0 gives the sign of the zero too.
    let pole = w.div(one, x);
    let tiny = w.cmp_c(Cmp::Lt, a, 2f64.powi(-60));
    let y = w.select(tiny, pole, y);
    let endless = w.f(f64::INFINITY, x);
    let over = w.cmp_c(Cmp::Gt, x, 171.7);
    let y = w.select(over, endless, y);
    let zero = w.f(0.0, x);
    let under = w.cmp_c(Cmp::Lt, x, -190.0);
    let y = w.select(under, zero, y);
    let nan = w.f(f64::NAN, x);
    let whole = w.cmp_c(Cmp::Eq, sine, 0.0);
    let negative_pole = w.both(whole, below);
    let lowest = w.cmp_c(Cmp::Eq, x, f64::NEG_INFINITY);
    let unordered = w.is_nan(x);
    let undefined = w.either(negative_pole, lowest);
    let undefined = w.either(undefined, unordered);
    w.select(undefined, nan, y)
}

/// `lnΓ(b) − lnΓ(a + b)` for b ≥ 8 and a ≤ b (Didonato and Morris, ACM TOMS 18, 1992).
fn log_quotient(w: &mut Writer, a: Val, b: Val) -> Val {
    let sum = w.add(a, b);
    let (first, second) = (stirling(w, b), stirling(w, sum));
    let rest = w.sub(first, second);
    let ratio = w.div(a, b);
    let ln = log1p(w, ratio);
    let half = w.f(0.5, b);
    let back = w.sub(half, b);
    let ln_sum = log(w, sum);
    let less = w.add_c(ln_sum, -1.0);
    let minus = w.neg(a);
    let y = w.fma(back, ln, rest);
    w.fma(minus, less, y)
}

/// The logarithm of the beta function, for a and b > 0: ∞ at 0, NaN below.
pub fn betaln(w: &mut Writer, a: Val, b: Val) -> Val {
    let less = w.cmp(Cmp::Lt, a, b);
    let (least, most) = (w.select(less, a, b), w.select(less, b, a));
    let own = lgamma_positive(w, least);
    // Both below 8.
    let other = lgamma_positive(w, most);
    let sum = w.add(a, b);
    let joint = lgamma_positive(w, sum);
    let small = w.sub(other, joint);
    let small = w.add(own, small);
    let quotient = log_quotient(w, least, most);
    let middle = w.add(own, quotient);
    // Both from 8 on: Stirling's series of all three.
    let correction = {
        let (first, second, third) = (stirling(w, least), stirling(w, most), stirling(w, sum));
        let both = w.add(first, second);
        w.sub(both, third)
    };
    let share = w.div(least, sum);
    let ln_share = log(w, share);
    let minus = w.neg(share);
    let ln_rest = log1p(w, minus);
    let half = w.add_c(least, -0.5);
    let ln_most = log(w, most);
    let start = w.f(HALF_LOG_TAU + 0.5, a);
    let large = w.fma_c(ln_most, -0.5, start);
    let large = w.add(large, correction);
    let large = w.fma(half, ln_share, large);
    let large = w.fma(most, ln_rest, large);
    let (most_large, least_large) = (w.cmp_c(Cmp::Ge, most, 8.0), w.cmp_c(Cmp::Ge, least, 8.0));
    let y = w.select(most_large, middle, small);
    let y = w.select(least_large, large, y);
    let zero = w.cmp_c(Cmp::Eq, least, 0.0);
    let endless = w.f(f64::INFINITY, a);
    let y = w.select(zero, endless, y);
    let lowest = w.f(f64::NEG_INFINITY, a);
    let far = w.cmp_c(Cmp::Eq, most, f64::INFINITY);
    let y = w.select(far, lowest, y);
    let (a_inside, b_inside) = (w.cmp_c(Cmp::Ge, a, 0.0), w.cmp_c(Cmp::Ge, b, 0.0));
    let inside = w.both(a_inside, b_inside);
    let both = w.both(zero, far);
    let nan = w.f(f64::NAN, a);
    let y = w.select(inside, y, nan);
    w.select(both, nan, y)
}

/// `B₂ₖ / (2k)!` for k from 1.
const BERNOULLI: [f64; 10] = [
    0.08333333333333333,
    -0.001388888888888889,
    3.306878306878307e-05,
    -8.267195767195768e-07,
    2.08767569878681e-08,
    -5.284190138687493e-10,
    1.3382536530684679e-11,
    -3.3896802963225827e-13,
    8.586062056277845e-15,
    -2.174868698558062e-16,
];
/// Terms that are summed before Euler and Maclaurin's formula takes over.
const TERMS: i32 = 10;

/// Hurwitz' zeta function `Σ (x + k)^−s` for s > 1 and x > 0: ten terms, then Euler and Maclaurin's formula.
fn zeta(w: &mut Writer, s: Val, x: Val) -> Val {
    let minus_s = w.neg(s);
    let power = |w: &mut Writer, base: Val| {
        let ln = log(w, base);
        let e = w.mul(minus_s, ln);
        exp(w, e)
    };
    let n = w.add_c(x, f64::from(TERMS));
    let at_n = power(w, n);
    let less = w.add_c(s, -1.0);
    let integral = w.mul(at_n, n);
    let mut sum = w.div(integral, less);
    let half = w.f(0.5, x);
    sum = w.fma(at_n, half, sum);
    let one = w.f(1.0, x);
    let inverse = w.div(one, n);
    // s (s + 1) … (s + 2k − 2) n^(−s − 2k + 1)
    let mut factor = w.mul(at_n, s);
    factor = w.mul(factor, inverse);
    for (k, b) in BERNOULLI.iter().enumerate() {
        sum = w.fma_c(factor, *b, sum);
        let (first, second) = (w.add_c(s, 2.0 * k as f64 + 1.0), w.add_c(s, 2.0 * k as f64 + 2.0));
        let square = w.mul(inverse, inverse);
        let step = w.mul(first, second);
        let step = w.mul(step, square);
        factor = w.mul(factor, step);
    }
    for k in (0..TERMS).rev() {
        let base = w.add_c(x, f64::from(k));
        let term = power(w, base);
        sum = w.add(sum, term);
    }
    sum
}

/// The derivative of order `n` ≥ 1 of the digamma function, `(−1)^(n + 1) n! ζ(n + 1, x)`, for x > 0; ∞ at 0, NaN below
/// and for orders that are no positive integer. Order 0 is the digamma function.
pub fn polygamma(w: &mut Writer, n: Val, x: Val) -> Val {
    let s = w.add_c(n, 1.0);
    let sum = zeta(w, s, x);
    let factorial = gamma(w, s);
    let size = w.mul(sum, factorial);
    let halves = w.mul_c(n, 0.5);
    let half_floor = w.float_fn(FloatFn::Floor, halves);
    let odd = w.cmp(Cmp::Ne, half_floor, halves);
    let minus = w.neg(size);
    let y = w.select(odd, size, minus);
    let first = digamma(w, x);
    let nan = w.f(f64::NAN, x);
    let below = w.cmp_c(Cmp::Lt, x, 0.0);
    let y = w.select(below, nan, y);
    let none = w.cmp_c(Cmp::Eq, n, 0.0);
    let y = w.select(none, first, y);
    let floor = w.float_fn(FloatFn::Floor, n);
    let broken = w.cmp(Cmp::Ne, floor, n);
    let negative = w.cmp_c(Cmp::Lt, n, 0.0);
    let outside = w.either(broken, negative);
    let unordered = w.is_nan(x);
    let outside = w.either(outside, unordered);
    w.select(outside, nan, y)
}

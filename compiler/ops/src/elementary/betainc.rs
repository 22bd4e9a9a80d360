//! The regularised incomplete beta function and its derivatives, in F64; F32 is rounded once from there.
//!
//! The continued fraction of Didonato and Morris (ACM TOMS 18, 1992), on the side of the mean on which it converges: as many
//! steps as parameters of 10⁴ need (80), and what each kind has room for.

use super::dual::Dual;
use super::exp::exp;
use super::gamma::{betaln, digamma_positive, stirling};
use super::gammainc::phi_of;
use super::log::{log, log1p};
use crate::scalar::{Cmp, Kind, Val, Writer};
use std::f64::consts::PI;

/// Steps of the fraction for results of a kind.
pub fn steps(kind: Kind) -> i32 {
    if kind == Kind::F32 { 50 } else { 100 }
}

/// `x^a (1 − x)^b / B(a, b)`.
fn front(w: &mut Writer, a: Val, b: Val, x: Val, rest: Val) -> Val {
    let ln = log(w, x);
    let minus = w.neg(x);
    let ln_rest = log1p(w, minus);
    let beta = betaln(w, a, b);
    let small = w.mul(a, ln);
    let small = w.fma(b, ln_rest, small);
    let small = w.sub(small, beta);
    // For large parameters by the distance to the mean, in which nothing cancels.
    let sum = w.add(a, b);
    let distance = w.mul(sum, x);
    let distance = w.sub(distance, a);
    let minus = w.neg(distance);
    let part = |w: &mut Writer, p: Val, d: Val, at: Val| {
        let mu = w.div(d, p);
        let mean = w.div(p, sum);
        let ratio = w.div(at, mean);
        let phi = phi_of(w, mu, ratio);
        w.mul(p, phi)
    };
    let (first, second) = (part(w, a, distance, x), part(w, b, minus, rest));
    let corrections = {
        let (p, q, both) = (stirling(w, a), stirling(w, b), stirling(w, sum));
        let own = w.add(p, q);
        w.sub(own, both)
    };
    let large = w.add(first, second);
    let large = w.add(large, corrections);
    let large = w.neg(large);
    let share = w.div(a, sum);
    let scale = w.mul(share, b);
    let scale = w.mul_c(scale, 0.5 / PI);
    let scale = w.sqrt(scale);
    let (a_large, b_large) = (w.cmp_c(Cmp::Ge, a, 8.0), w.cmp_c(Cmp::Ge, b, 8.0));
    let both = w.both(a_large, b_large);
    let exponent = w.select(both, large, small);
    let y = exp(w, exponent);
    let scaled = w.mul(y, scale);
    w.select(both, scaled, y)
}

/// The fraction whose inverse times [`front`] is the function, backwards from step `n`.
fn fraction(w: &mut Writer, a: Dual, b: Dual, x: Val, rest: Val, n: i32) -> Dual {
    let one = w.f(1.0, x);
    let x = Dual::constant(x);
    let sum = a.add(w, b);
    // 1 + a − (a + b) x
    let lambda = sum.mul(w, x);
    let lambda = a.sub(w, lambda).plus(w, 1.0);
    let step = w.add_c(rest, 1.0);
    let inverse = |w: &mut Writer, k: i32| {
        let below = a.plus(w, 2.0 * f64::from(k) + 1.0);
        Dual::constant(one).div(w, below)
    };
    // `above` is α(k) / f(k) of the step after.
    let mut unit = inverse(w, n);
    let mut above: Option<Dual> = None;
    for k in (1..=n).rev() {
        let at = f64::from(k);
        let before = inverse(w, k - 1);
        let left = b.plus(w, -at).mul(w, x).scale(w, at);
        // β(k) = k + k (b − k) x / (a + 2k − 1) + (a + k) (λ + 1 + k (2 − x)) / (a + 2k + 1)
        let moved = w.mul_c(step, at);
        let moved = lambda.add(w, Dual::constant(moved));
        let share = a.plus(w, at).mul(w, unit);
        let own = share.mul(w, moved).plus(w, at);
        let mut value = left.fma(w, before, own);
        if let Some(above) = above {
            value = value.add(w, above);
        }
        // α(k) = (a + k − 1)(a + b + k − 1) k (b − k) x² / (a + 2k − 1)²
        let first = a.plus(w, at - 1.0).mul(w, before);
        let second = sum.plus(w, at - 1.0).mul(w, before).mul(w, x);
        let numerator = first.mul(w, second).mul(w, left);
        above = Some(numerator.div(w, value));
        unit = before;
    }
    let value = a.mul(w, unit).mul(w, lambda);
    match above {
        Some(above) => value.add(w, above),
        None => value,
    }
}

/// The function, with its derivative by `a` if `derive`.
fn function(w: &mut Writer, a: Val, b: Val, x: Val, n: i32, derive: bool) -> Dual {
    let (zero, one) = (w.f(0.0, x), w.f(1.0, x));
    let other = w.sub(one, x);
    let sum = w.add(a, b);
    let (top, below) = (w.add_c(a, 1.0), w.add_c(sum, 2.0));
    let limit = w.div(top, below);
    let beyond = w.cmp(Cmp::Gt, x, limit);
    let (p, q) = (w.select(beyond, b, a), w.select(beyond, a, b));
    let (at, rest) = (w.select(beyond, other, x), w.select(beyond, x, other));
    let (of_p, of_q) = (w.select(beyond, zero, one), w.select(beyond, one, zero));
    let p = Dual { v: p, d: derive.then_some(of_p) };
    let q = Dual { v: q, d: derive.then_some(of_q) };
    let value = front(w, p.v, q.v, at, rest);
    // d ln front / da = ln x − ψ(a) + ψ(a + b)
    let d = derive.then(|| {
        let slope = log_slope(w, a, b, x);
        w.mul(value, slope)
    });
    let front = Dual { v: value, d };
    let below = fraction(w, p, q, at, rest, n);
    let y = front.div(w, below);
    let missing = Dual::constant(one).sub(w, y);
    Dual::select(w, beyond, missing, y)
}

/// `ln x − ψ(a) + ψ(a + b)`.
fn log_slope(w: &mut Writer, a: Val, b: Val, x: Val) -> Val {
    let sum = w.add(a, b);
    let (own, joint) = (digamma_positive(w, a), digamma_positive(w, sum));
    let ln = log(w, x);
    let slope = w.sub(joint, own);
    w.add(slope, ln)
}

/// NaN where a parameter is not positive and finite, or x outside of 0 to 1.
fn inside(w: &mut Writer, a: Val, b: Val, x: Val, y: Val) -> Val {
    let within = |w: &mut Writer, v: Val| {
        let (above, below) = (w.cmp_c(Cmp::Gt, v, 0.0), w.cmp_c(Cmp::Lt, v, f64::INFINITY));
        w.both(above, below)
    };
    let (a_inside, b_inside) = (within(w, a), within(w, b));
    let inside = w.both(a_inside, b_inside);
    let (above, below) = (w.cmp_c(Cmp::Ge, x, 0.0), w.cmp_c(Cmp::Le, x, 1.0));
    let x_inside = w.both(above, below);
    let inside = w.both(inside, x_inside);
    let nan = w.f(f64::NAN, x);
    w.select(inside, y, nan)
}

/// `y` between 0 and 1, and these values there.
fn at_ends(w: &mut Writer, x: Val, y: Val, zero: f64, one: f64) -> Val {
    let (low, high) = (w.cmp_c(Cmp::Eq, x, 0.0), w.cmp_c(Cmp::Eq, x, 1.0));
    let (zero, one) = (w.f(zero, x), w.f(one, x));
    let y = w.select(low, zero, y);
    w.select(high, one, y)
}

/// The regularised incomplete beta function.
pub fn betainc(w: &mut Writer, a: Val, b: Val, x: Val, n: i32) -> Val {
    let y = function(w, a, b, x, n, false).v;
    let y = at_ends(w, x, y, 0.0, 1.0);
    inside(w, a, b, x, y)
}

/// Its derivative by `a`, which is never positive.
pub fn betainc_da(w: &mut Writer, a: Val, b: Val, x: Val, n: i32) -> Val {
    let zero = w.f(0.0, x);
    let y = function(w, a, b, x, n, true).d.unwrap_or(zero);
    let y = w.abs(y);
    let y = w.neg(y);
    let y = at_ends(w, x, y, 0.0, 0.0);
    inside(w, a, b, x, y)
}

/// Its derivative by `x`: the density of the beta distribution.
pub fn betainc_dx(w: &mut Writer, a: Val, b: Val, x: Val) -> Val {
    let one = w.f(1.0, x);
    let rest = w.sub(one, x);
    let y = front(w, a, b, x, rest);
    let y = w.div(y, x);
    let y = w.div(y, rest);
    // At 0 it is ∞, b or 0, as a is below, at or above 1; at 1 likewise.
    let end = |w: &mut Writer, p: Val, other: Val| {
        let (zero, endless) = (w.f(0.0, x), w.f(f64::INFINITY, x));
        let (below, at) = (w.cmp_c(Cmp::Lt, p, 1.0), w.cmp_c(Cmp::Eq, p, 1.0));
        let y = w.select(at, other, zero);
        w.select(below, endless, y)
    };
    let (low, high) = (end(w, a, b), end(w, b, a));
    let (at_0, at_1) = (w.cmp_c(Cmp::Eq, x, 0.0), w.cmp_c(Cmp::Eq, x, 1.0));
    let y = w.select(at_0, low, y);
    let y = w.select(at_1, high, y);
    inside(w, a, b, x, y)
}

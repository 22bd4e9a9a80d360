//! Floor division of floats.

use crate::scalar::{Cmp, FloatFn, Kind, Val, Writer};

/// The largest integer not above `a / b`, as Python's `//` on floats; the plain quotient where
/// it is 2¹⁵⁰ or more, and by zero.
pub fn float_floor_div(w: &mut Writer, a: Val, b: Val) -> Val {
    divide(w, a, b).0
}

/// The remainder of floor division, with the sign of the divisor, as Python's `%` on floats.
/// Exact for |a / b| < 2¹⁵⁰; beyond that NaN.
pub fn float_mod(w: &mut Writer, a: Val, b: Val) -> Val {
    divide(w, a, b).1
}

/// Floor quotient and remainder. The residual of a rounded quotient is exact (a fused
/// multiply-add gives it), so three steps of long division reach 2¹⁵⁰.
fn divide(w: &mut Writer, a: Val, b: Val) -> (Val, Val) {
    let kind = w.kind(a);
    let (x, y) = (w.convert(a, Kind::F64), w.convert(b, Kind::F64));
    let zero = w.f(0.0, x);
    let mut rest = x;
    let mut quotient = zero;
    for _ in 0..3 {
        let part = w.div(rest, y);
        let part = w.float_fn(FloatFn::Trunc, part);
        let minus = w.neg(part);
        rest = w.fma(minus, y, rest);
        quotient = w.add(quotient, part);
    }
    // Numbers too far apart for that keep the plain quotient and have no remainder.
    let plain = w.div(x, y);
    let reach = w.abs(plain);
    let far = w.cmp_c(Cmp::Ge, reach, 2f64.powi(150));
    let nan = w.f(f64::NAN, x);
    // The rest has either sign and at most the divisor's size; bring it to the divisor's side.
    let below = w.cmp_c(Cmp::Lt, rest, 0.0);
    let above = w.cmp_c(Cmp::Gt, rest, 0.0);
    let divisor_below = w.cmp_c(Cmp::Lt, y, 0.0);
    let wrong = w.select(divisor_below, above, below);
    let moved = w.add(rest, y);
    let one_less = w.add_c(quotient, -1.0);
    let mut remainder = w.select(wrong, moved, rest);
    let mut quotient = w.select(wrong, one_less, quotient);
    remainder = w.select(far, nan, remainder);
    // A zero remainder has the divisor's sign.
    let none = w.cmp_c(Cmp::Eq, remainder, 0.0);
    let magnitude = w.abs(remainder);
    let signed = w.with_sign(magnitude, y);
    remainder = w.select(none, signed, remainder);
    // An infinite divisor of a finite number: nothing goes in, or −1.
    let size = w.abs(y);
    let endless = w.cmp_c(Cmp::Eq, size, f64::INFINITY);
    let own = w.abs(x);
    let finite = w.cmp_c(Cmp::Lt, own, f64::INFINITY);
    let endless = w.both(endless, finite);
    let x_below = w.cmp_c(Cmp::Lt, x, 0.0);
    let x_above = w.cmp_c(Cmp::Gt, x, 0.0);
    let opposite = w.select(divisor_below, x_above, x_below);
    let minus_one = w.f(-1.0, x);
    let endless_quotient = w.select(opposite, minus_one, plain);
    let endless_rest = w.select(opposite, y, x);
    quotient = w.select(endless, endless_quotient, quotient);
    remainder = w.select(endless, endless_rest, remainder);
    // By zero: the infinite quotient, and no remainder.
    let by_zero = w.cmp(Cmp::Eq, y, zero);
    let far = w.both(far, finite);
    let as_is = w.either(by_zero, far);
    quotient = w.select(as_is, plain, quotient);
    // A zero quotient has the sign of the true one.
    let nothing = w.cmp(Cmp::Eq, quotient, zero);
    let empty = w.with_sign(zero, plain);
    quotient = w.select(nothing, empty, quotient);
    (w.convert(quotient, kind), w.convert(remainder, kind))
}

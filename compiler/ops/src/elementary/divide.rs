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

/// Floor quotient and remainder, in F64.
fn divide(w: &mut Writer, a: Val, b: Val) -> (Val, Val) {
    let kind = w.kind(a);
    let (x, y) = (w.convert(a, Kind::F64), w.convert(b, Kind::F64));
    let zero = w.f(0.0, x);
    let plain = w.div(x, y);
    let (mut quotient, mut remainder) = long_division(w, x, y);
    let below = w.cmp(Cmp::Lt, y, zero);
    // Numbers too far apart keep the plain quotient and have no remainder; so does a division by 0.
    let reach = w.abs(plain);
    let far = w.cmp_c(Cmp::Ge, reach, 2f64.powi(150));
    let nan = w.f(f64::NAN, x);
    remainder = w.select(far, nan, remainder);
    let size = w.abs(x);
    let finite = w.cmp_c(Cmp::Lt, size, f64::INFINITY);
    let far = w.both(far, finite);
    let by_zero = w.cmp(Cmp::Eq, y, zero);
    let as_is = w.either(by_zero, far);
    quotient = w.select(as_is, plain, quotient);
    // A zero remainder has the divisor's sign.
    let none = w.cmp(Cmp::Eq, remainder, zero);
    let magnitude = w.abs(remainder);
    let signed = w.with_sign(magnitude, y);
    remainder = w.select(none, signed, remainder);
    // A finite number by an infinite one: nothing goes in, or −1.
    let size = w.abs(y);
    let endless = w.cmp_c(Cmp::Eq, size, f64::INFINITY);
    let endless = w.both(endless, finite);
    let (x_below, x_above) = (w.cmp(Cmp::Lt, x, zero), w.cmp(Cmp::Gt, x, zero));
    let opposite = w.select(below, x_above, x_below);
    let minus_one = w.f(-1.0, x);
    let endless_quotient = w.select(opposite, minus_one, plain);
    let endless_rest = w.select(opposite, y, x);
    quotient = w.select(endless, endless_quotient, quotient);
    remainder = w.select(endless, endless_rest, remainder);
    // A zero quotient has the sign of the true one.
    let nothing = w.cmp(Cmp::Eq, quotient, zero);
    let empty = w.with_sign(zero, plain);
    quotient = w.select(nothing, empty, quotient);
    (w.convert(quotient, kind), w.convert(remainder, kind))
}

/// Quotient and remainder of finite numbers. The residual of a rounded quotient is exact (a
/// fused multiply-add gives it), so that three steps of long division reach 2¹⁵⁰.
fn long_division(w: &mut Writer, x: Val, y: Val) -> (Val, Val) {
    let zero = w.f(0.0, x);
    let (mut rest, mut quotient) = (x, zero);
    for _ in 0..3 {
        let part = w.div(rest, y);
        let part = w.float_fn(FloatFn::Trunc, part);
        let minus = w.neg(part);
        rest = w.fma(minus, y, rest);
        quotient = w.add(quotient, part);
    }
    // The rest has either sign and at most the divisor's size; bring it to the divisor's side.
    let (below, above) = (w.cmp(Cmp::Lt, rest, zero), w.cmp(Cmp::Gt, rest, zero));
    let divisor_below = w.cmp(Cmp::Lt, y, zero);
    let wrong = w.select(divisor_below, above, below);
    let moved = w.add(rest, y);
    let one_less = w.add_c(quotient, -1.0);
    (w.select(wrong, one_less, quotient), w.select(wrong, moved, rest))
}

//! Floor division of floats.

use crate::scalar::{Cmp, FloatFn, IntOp, Kind, Val, Writer};

/// The largest integer not above `a / b`, as Python's `//` on floats; the plain quotient where
/// it is 2¹⁵⁰ or more, and by zero.
pub fn float_floor_div(w: &mut Writer, a: Val, b: Val) -> Val {
    divide(w, a, b).0
}

/// The remainder of floor division, with the sign of the divisor, as Python's `%` on floats; exact for
/// finite numbers, but for the one addition of a divisor with the other sign.
pub fn float_mod(w: &mut Writer, a: Val, b: Val) -> Val {
    divide(w, a, b).1
}

/// Floor quotient and remainder, in F64.
fn divide(w: &mut Writer, a: Val, b: Val) -> (Val, Val) {
    let kind = w.kind(a);
    let (x, y) = (w.convert(a, Kind::F64), w.convert(b, Kind::F64));
    let zero = w.f(0.0, x);
    let plain = w.div(x, y);
    let mut quotient = long_division(w, x, y);
    let mut remainder = floor_remainder(w, x, y, kind);
    let below = w.cmp(Cmp::Lt, y, zero);
    // Numbers too far apart keep the plain quotient; so does a division by 0.
    let reach = w.abs(plain);
    let far = w.cmp_c(Cmp::Ge, reach, 2f64.powi(150));
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

/// Quotient of finite numbers. The residual of a rounded quotient is exact (a
/// fused multiply-add gives it), so that three steps of long division reach 2¹⁵⁰.
fn long_division(w: &mut Writer, x: Val, y: Val) -> Val {
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
    let one_less = w.add_c(quotient, -1.0);
    w.select(wrong, one_less, quotient)
}

/// Bits of the quotient that a step of [`floor_remainder`] takes: its error stays below a quarter.
const STEP: i64 = 50;

/// The remainder of finite numbers that fit `kind`, NaN of others and by zero: long division of the fractions. With
/// `x = m·2^d·2^e` and `y = n·2^e`, 1 ≤ m, n < 2, every `r ← r·2^50 − q·n` with the nearest `q` is exact, since it is
/// a multiple of the last place of `n` and smaller than `n`.
fn floor_remainder(w: &mut Writer, x: Val, y: Val, kind: Kind) -> Val {
    let narrow = kind == Kind::F32;
    let (a, b) = (w.abs(x), w.abs(y));
    let (m, e) = fraction(w, a, narrow);
    let (n, f) = fraction(w, b, narrow);
    let distance = w.int(IntOp::Sub, e, f);
    let zero = w.i(0, Kind::I64);
    let d = w.int(IntOp::Max, distance, zero);
    let steps = w.int_c(IntOp::FloorDiv, d, STEP);
    let first = w.int_c(IntOp::FloorMod, d, STEP);
    let one = w.f(1.0, x);
    let inverse = w.div(one, n);
    let minus = w.neg(n);
    let step = |w: &mut Writer, r: Val, power: Val| {
        let r = w.mul(r, power);
        let q = w.mul(r, inverse);
        let q = w.float_fn(FloatFn::Round, q);
        w.fma(q, minus, r)
    };
    let mut r = step(w, m, one);
    let biased = w.int_c(IntOp::Add, first, 1023);
    let bits = w.int_c(IntOp::Shl, biased, 52);
    let power = w.bits(bits, Kind::F64);
    r = step(w, r, power);
    let power = w.f(2f64.powi(STEP as i32), x);
    for i in 0..if narrow { 277 / STEP } else { 2097 / STEP } {
        let next = step(w, r, power);
        let more = w.cmp_c(Cmp::Gt, steps, i as f64);
        r = w.select(more, next, r);
    }
    // From the nearest to the lower multiple.
    let up = w.add(r, n);
    let below = w.cmp_c(Cmp::Lt, r, 0.0);
    let r = w.select(below, up, r);
    // By 2^e in two factors, since the remainder may be subnormal.
    let half = w.int_c(IntOp::Shr, f, 1);
    let other = w.int(IntOp::Sub, f, half);
    let scaled = [half, other].into_iter().fold(r, |r, part| {
        let biased = w.int_c(IntOp::Add, part, 1023);
        let bits = w.int_c(IntOp::Shl, biased, 52);
        let factor = w.bits(bits, Kind::F64);
        w.mul(r, factor)
    });
    let less = w.cmp(Cmp::Lt, a, b);
    let size = w.select(less, a, scaled);
    // Of the other sign: what is missing to the divisor.
    let (sign_x, sign_y) = (w.sign_bit(x), w.sign_bit(y));
    let alike = w.cmp(Cmp::Eq, sign_x, sign_y);
    let whole = w.cmp_c(Cmp::Eq, size, 0.0);
    let keeps = w.either(alike, whole);
    let missing = w.sub(b, size);
    let size = w.select(keeps, size, missing);
    let result = w.with_sign(size, y);
    let finite = w.cmp_c(Cmp::Lt, a, f64::INFINITY);
    let divides = w.cmp_c(Cmp::Gt, b, 0.0);
    let defined = w.both(finite, divides);
    let nan = w.f(f64::NAN, x);
    w.select(defined, result, nan)
}

/// `(m, e)` with `a = m·2^e` and 1 ≤ m < 2, for positive finite `a`; what fits F32 is no subnormal number here.
fn fraction(w: &mut Writer, a: Val, narrow: bool) -> (Val, Val) {
    let (mut scaled, mut bias) = (a, w.i(1023, Kind::I64));
    if !narrow {
        let small = w.cmp_c(Cmp::Lt, a, f64::MIN_POSITIVE);
        let up = w.mul_c(a, 2f64.powi(54));
        scaled = w.select(small, up, a);
        let lower = w.i(1023 + 54, Kind::I64);
        bias = w.select(small, lower, bias);
    }
    let bits = w.to_bits(scaled);
    let exponent = w.int_c(IntOp::Shr, bits, 52);
    let exponent = w.int(IntOp::Sub, exponent, bias);
    let digits = w.int_c(IntOp::And, bits, (1 << 52) - 1);
    let digits = w.int_c(IntOp::Or, digits, 1023 << 52);
    (w.bits(digits, Kind::F64), exponent)
}

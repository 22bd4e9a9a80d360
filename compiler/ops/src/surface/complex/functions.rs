//! Functions of complex numbers as functions of their parts, in f64, which is rounded to f32 at the end: squares stay in
//! range, and what cancels keeps its digits. Branch cuts and signs of zeros are those of Kahan (Branch cuts for complex
//! elementary functions, 1987).

use super::{product, quotient, root};
use crate::map::MapOp;
use crate::surface::{Build, Id, expand};
use std::f64::consts::{LN_2, LN_10};

/// A complex number as its parts.
type Parts = [Id; 2];

/// The function of numbers with f64 parts; `None` for functions that have no meaning here.
pub fn of(b: &mut dyn Build, op: MapOp, x: Parts, y: Parts) -> Option<Parts> {
    Some(match op {
        MapOp::exp => exp(b, x),
        MapOp::exp2 => {
            let scaled = scale(b, x, LN_2);
            exp(b, scaled)
        }
        MapOp::expm1 => expm1(b, x),
        MapOp::log => log(b, x),
        MapOp::log2 => {
            let y = log(b, x);
            scale(b, y, 1.0 / LN_2)
        }
        MapOp::log10 => {
            let y = log(b, x);
            scale(b, y, 1.0 / LN_10)
        }
        MapOp::log1p => log1p(b, x),
        MapOp::rsqrt => {
            let (y, one) = (root(b, x), number(b, x, 1.0));
            quotient(b, one, y)
        }
        MapOp::sin => {
            let y = turned(b, x);
            let y = sinh(b, y);
            turned_back(b, y)
        }
        MapOp::cos => {
            let y = turned(b, x);
            cosh(b, y)
        }
        MapOp::tan => {
            let y = turned(b, x);
            let y = tanh(b, y);
            turned_back(b, y)
        }
        MapOp::sinh => sinh(b, x),
        MapOp::cosh => cosh(b, x),
        MapOp::tanh => tanh(b, x),
        MapOp::asin => asin(b, x),
        MapOp::acos => acos(b, x),
        MapOp::atan => {
            let y = turned(b, x);
            let y = atanh(b, y);
            turned_back(b, y)
        }
        MapOp::asinh => {
            let y = turned(b, x);
            let y = asin(b, y);
            turned_back(b, y)
        }
        MapOp::acosh => acosh(b, x),
        MapOp::atanh => atanh(b, x),
        MapOp::sigmoid => {
            // 1 / (1 + e^(−z)) on the right, e^z / (1 + e^z) on the left: no power is larger than 1.
            let zero = expand::like(b, x[0], 0.0);
            let left = expand::map(b, MapOp::lt, &[x[0], zero]);
            let inward = x.map(|v| {
                let minus = expand::unary(b, MapOp::neg, v);
                expand::select(b, left, v, minus)
            });
            let [re, im] = exp(b, inward);
            let below = [expand::binary_const(b, MapOp::add, re, 1.0), im];
            let [one, none] = number(b, x, 1.0);
            let above = [expand::select(b, left, re, one), expand::select(b, left, im, none)];
            quotient(b, above, below)
        }
        MapOp::sign => {
            let size = expand::map(b, MapOp::hypot, &x);
            let zero = expand::like(b, size, 0.0);
            let origin = expand::map(b, MapOp::eq, &[size, zero]);
            x.map(|v| {
                let part = expand::map(b, MapOp::div, &[v, size]);
                expand::select(b, origin, zero, part)
            })
        }
        MapOp::pow => pow(b, x, y),
        _ => return None,
    })
}

/// The real number `value` for each element.
fn number(b: &mut dyn Build, x: Parts, value: f64) -> Parts {
    [expand::like(b, x[0], value), expand::like(b, x[0], 0.0)]
}

fn scale(b: &mut dyn Build, x: Parts, by: f64) -> Parts {
    x.map(|v| expand::binary_const(b, MapOp::mul, v, by))
}

/// `i x`.
fn turned(b: &mut dyn Build, x: Parts) -> Parts {
    [expand::unary(b, MapOp::neg, x[1]), x[0]]
}

/// `−i x`.
fn turned_back(b: &mut dyn Build, x: Parts) -> Parts {
    [x[1], expand::unary(b, MapOp::neg, x[0])]
}

/// `x · y`, and `y` where it is 0, also for an infinite `x`.
fn times(b: &mut dyn Build, x: Id, y: Id) -> Id {
    let zero = expand::like(b, y, 0.0);
    let none = expand::map(b, MapOp::eq, &[y, zero]);
    let product = expand::map(b, MapOp::mul, &[x, y]);
    expand::select(b, none, y, product)
}

/// `x · y`, and 0 where either is 0, also for an infinite other one.
fn both(b: &mut dyn Build, x: Id, y: Id) -> Id {
    let product = times(b, x, y);
    let zero = expand::like(b, x, 0.0);
    let none = expand::map(b, MapOp::eq, &[x, zero]);
    expand::select(b, none, zero, product)
}

fn sin_cos(b: &mut dyn Build, x: Id) -> (Id, Id) {
    (expand::unary(b, MapOp::sin, x), expand::unary(b, MapOp::cos, x))
}

fn exp(b: &mut dyn Build, [x, y]: Parts) -> Parts {
    let size = expand::unary(b, MapOp::exp, x);
    let (sin, cos) = sin_cos(b, y);
    [times(b, size, cos), times(b, size, sin)]
}

/// `e^x cos y − 1` as `(e^x − 1) cos y − 2 sin²(y/2)`.
fn expm1(b: &mut dyn Build, [x, y]: Parts) -> Parts {
    let less = expand::unary(b, MapOp::expm1, x);
    let (sin, cos) = sin_cos(b, y);
    let half = expand::binary_const(b, MapOp::mul, y, 0.5);
    let half = expand::unary(b, MapOp::sin, half);
    let square = expand::map(b, MapOp::mul, &[half, half]);
    let square = expand::binary_const(b, MapOp::mul, square, -2.0);
    let first = times(b, less, cos);
    let size = expand::unary(b, MapOp::exp, x);
    [expand::map(b, MapOp::add, &[first, square]), times(b, size, sin)]
}

fn log(b: &mut dyn Build, [x, y]: Parts) -> Parts {
    let size = expand::map(b, MapOp::hypot, &[x, y]);
    // Near 1, ½ ln(1 + (x − 1)(x + 1) + y²) keeps the digits.
    let (below, above) = (expand::binary_const(b, MapOp::sub, x, 1.0), expand::binary_const(b, MapOp::add, x, 1.0));
    let square = expand::map(b, MapOp::mul, &[y, y]);
    let rest = expand::map(b, MapOp::fma, &[below, above, square]);
    let near = expand::unary(b, MapOp::log1p, rest);
    let near = expand::binary_const(b, MapOp::mul, near, 0.5);
    let distance = expand::unary(b, MapOp::abs, rest);
    let limit = expand::like(b, rest, 0.5);
    let is_near = expand::map(b, MapOp::lt, &[distance, limit]);
    let far = expand::unary(b, MapOp::log, size);
    [expand::select(b, is_near, near, far), expand::map(b, MapOp::atan2, &[y, x])]
}

/// `½ ln(1 + x (2 + x) + y²)`, which keeps the digits near 0, and the angle of 1 + x.
fn log1p(b: &mut dyn Build, [x, y]: Parts) -> Parts {
    let two = expand::binary_const(b, MapOp::add, x, 2.0);
    let square = expand::map(b, MapOp::mul, &[y, y]);
    let rest = expand::map(b, MapOp::fma, &[x, two, square]);
    let near = expand::unary(b, MapOp::log1p, rest);
    let near = expand::binary_const(b, MapOp::mul, near, 0.5);
    let above = expand::binary_const(b, MapOp::add, x, 1.0);
    let size = expand::map(b, MapOp::hypot, &[above, y]);
    let far = expand::unary(b, MapOp::log, size);
    let distance = expand::unary(b, MapOp::abs, rest);
    let limit = expand::like(b, rest, 0.5);
    let is_near = expand::map(b, MapOp::lt, &[distance, limit]);
    [expand::select(b, is_near, near, far), expand::map(b, MapOp::atan2, &[y, above])]
}

fn sinh(b: &mut dyn Build, [x, y]: Parts) -> Parts {
    let (odd, even) = (expand::unary(b, MapOp::sinh, x), expand::unary(b, MapOp::cosh, x));
    let (sin, cos) = sin_cos(b, y);
    [times(b, cos, odd), times(b, even, sin)]
}

fn cosh(b: &mut dyn Build, [x, y]: Parts) -> Parts {
    let (odd, even) = (expand::unary(b, MapOp::sinh, x), expand::unary(b, MapOp::cosh, x));
    let (sin, cos) = sin_cos(b, y);
    [times(b, even, cos), both(b, odd, sin)]
}

/// `(sinh x cosh x + i sin y cos y) / (sinh² x + cos² y)`.
fn tanh(b: &mut dyn Build, [x, y]: Parts) -> Parts {
    // Further out the result is ±1 to all digits, and the squares would be infinite.
    let x = expand::binary_const(b, MapOp::minimum, x, 300.0);
    let x = expand::binary_const(b, MapOp::maximum, x, -300.0);
    let (odd, even) = (expand::unary(b, MapOp::sinh, x), expand::unary(b, MapOp::cosh, x));
    let (sin, cos) = sin_cos(b, y);
    let square = expand::map(b, MapOp::mul, &[cos, cos]);
    let below = expand::map(b, MapOp::fma, &[odd, odd, square]);
    let (re, im) = (expand::map(b, MapOp::mul, &[odd, even]), expand::map(b, MapOp::mul, &[sin, cos]));
    [expand::map(b, MapOp::div, &[re, below]), expand::map(b, MapOp::div, &[im, below])]
}

/// `√(1 − x)` and `√(1 + x)`.
fn roots(b: &mut dyn Build, [x, y]: Parts) -> (Parts, Parts) {
    let one = expand::like(b, x, 1.0);
    let below = [expand::map(b, MapOp::sub, &[one, x]), expand::unary(b, MapOp::neg, y)];
    let above = [expand::map(b, MapOp::add, &[one, x]), y];
    (root(b, below), root(b, above))
}

/// `Im(conj(x) y)`.
fn crossed(b: &mut dyn Build, x: Parts, y: Parts) -> Id {
    let back = expand::map(b, MapOp::mul, &[x[1], y[0]]);
    let back = expand::unary(b, MapOp::neg, back);
    expand::map(b, MapOp::fma, &[x[0], y[1], back])
}

fn asin(b: &mut dyn Build, x: Parts) -> Parts {
    let (below, above) = roots(b, x);
    let [re, _] = product(b, below, above);
    let angle = expand::map(b, MapOp::atan2, &[x[0], re]);
    let im = crossed(b, below, above);
    [angle, expand::unary(b, MapOp::asinh, im)]
}

fn acos(b: &mut dyn Build, x: Parts) -> Parts {
    let (below, above) = roots(b, x);
    let half = expand::map(b, MapOp::atan2, &[below[0], above[0]]);
    let im = crossed(b, above, below);
    [expand::binary_const(b, MapOp::mul, half, 2.0), expand::unary(b, MapOp::asinh, im)]
}

fn acosh(b: &mut dyn Build, x: Parts) -> Parts {
    let less = [expand::binary_const(b, MapOp::sub, x[0], 1.0), x[1]];
    let more = [expand::binary_const(b, MapOp::add, x[0], 1.0), x[1]];
    let (below, above) = (root(b, less), root(b, more));
    // Re(conj(below) above)
    let part = expand::map(b, MapOp::mul, &[below[1], above[1]]);
    let re = expand::map(b, MapOp::fma, &[below[0], above[0], part]);
    let half = expand::map(b, MapOp::atan2, &[below[1], above[0]]);
    [expand::unary(b, MapOp::asinh, re), expand::binary_const(b, MapOp::mul, half, 2.0)]
}

/// `¼ ln(1 + 4x / ((1 − x)² + y²)) + ½ i atan2(2y, (1 − x)(1 + x) − y²)`.
fn atanh(b: &mut dyn Build, [x, y]: Parts) -> Parts {
    // Odd, and of a positive x the sum is larger than 1.
    let a = expand::unary(b, MapOp::abs, x);
    let one = expand::like(b, x, 1.0);
    let (below, above) = (expand::map(b, MapOp::sub, &[one, a]), expand::map(b, MapOp::add, &[one, a]));
    let square = expand::map(b, MapOp::mul, &[y, y]);
    let distance = expand::map(b, MapOp::fma, &[below, below, square]);
    let four = expand::binary_const(b, MapOp::mul, a, 4.0);
    let ratio = expand::map(b, MapOp::div, &[four, distance]);
    let size = expand::unary(b, MapOp::log1p, ratio);
    let size = expand::binary_const(b, MapOp::mul, size, 0.25);
    let twice = expand::binary_const(b, MapOp::mul, y, 2.0);
    let minus = expand::unary(b, MapOp::neg, square);
    let side = expand::map(b, MapOp::fma, &[below, above, minus]);
    let angle = expand::map(b, MapOp::atan2, &[twice, side]);
    [expand::map(b, MapOp::copysign, &[size, x]), expand::binary_const(b, MapOp::mul, angle, 0.5)]
}

/// Bits of the integers that [`pow`] takes as exponents of products.
const BITS: i32 = 6;

/// `x` to a power whose exponent is an integer below 2⁶ in size, by squares; of other exponents anything.
fn by_squares(b: &mut dyn Build, x: Parts, exponent: Id) -> Parts {
    let mut left = expand::unary(b, MapOp::abs, exponent);
    let (mut result, mut square) = (number(b, x, 1.0), x);
    for _ in 0..BITS {
        let half = expand::binary_const(b, MapOp::mul, left, 0.5);
        let whole = expand::unary(b, MapOp::floor, half);
        let odd = expand::map(b, MapOp::ne, &[half, whole]);
        let times = product(b, result, square);
        result = std::array::from_fn(|i| expand::select(b, odd, times[i], result[i]));
        square = product(b, square, square);
        left = whole;
    }
    let one = number(b, x, 1.0);
    let inverse = quotient(b, one, result);
    let zero = expand::like(b, exponent, 0.0);
    let below = expand::map(b, MapOp::lt, &[exponent, zero]);
    std::array::from_fn(|i| expand::select(b, below, inverse[i], result[i]))
}

/// `e^(y ln x)`, and a product for a small integer `y`; 1 to every base for the exponent 0, and of 0 to others 0 if the
/// real part is positive, else NaN.
fn pow(b: &mut dyn Build, x: Parts, y: Parts) -> Parts {
    let (zero, one) = (expand::like(b, x[0], 0.0), number(b, x, 1.0));
    let is = |b: &mut dyn Build, v: Parts| {
        let [re, im] = v.map(|part| expand::map(b, MapOp::eq, &[part, zero]));
        expand::map(b, MapOp::logical_and, &[re, im])
    };
    let (origin, none) = (is(b, x), is(b, y));
    let whole = expand::unary(b, MapOp::round, y[0]);
    let (integral, real) = (expand::map(b, MapOp::eq, &[whole, y[0]]), expand::map(b, MapOp::eq, &[y[1], zero]));
    let (size, limit) = (expand::unary(b, MapOp::abs, y[0]), expand::like(b, y[0], f64::from(1 << BITS)));
    let small = expand::map(b, MapOp::lt, &[size, limit]);
    let small = expand::map(b, MapOp::logical_and, &[small, integral]);
    let is_product = expand::map(b, MapOp::logical_and, &[small, real]);
    // Each way gets 1 where it does not count: else its derivative there might be infinite, and 0 times that NaN.
    let base: Parts = std::array::from_fn(|i| expand::select(b, is_product, x[i], one[i]));
    let by_squares = by_squares(b, base, y[0]);
    let elsewhere = expand::map(b, MapOp::logical_or, &[is_product, origin]);
    let base: Parts = std::array::from_fn(|i| expand::select(b, elsewhere, one[i], x[i]));
    let ln = log(b, base);
    let exponent = product(b, y, ln);
    let power = exp(b, exponent);
    let rises = expand::map(b, MapOp::gt, &[y[0], zero]);
    let nan = expand::like(b, x[0], f64::NAN);
    let at_origin = expand::select(b, rises, zero, nan);
    std::array::from_fn(|i| {
        let part = expand::select(b, origin, at_origin, power[i]);
        let part = expand::select(b, is_product, by_squares[i], part);
        expand::select(b, none, one[i], part)
    })
}

//! Elementwise functions, by the standard library or their definitions.

use super::value::{Value, format, wrap};
use std::f64::consts::{FRAC_1_SQRT_2, PI};
use tessera_base::DType;
use tessera_ops::map::{Gives, MapOp};
use tessera_ops::scalar::Kind;
use tessera_ops::scalar_eval::{Lane, eval};

/// Roundings of this file's own f64 arithmetic, which count where the result is f64 too.
const OWN_ULPS: f64 = 2.0;
/// The same where an exponential of up to 745 multiplies an error in its argument.
const OWN_ULPS_OF_EXPONENTIALS: f64 = 4096.0;
/// The same of the series of the error function here.
const OWN_ULPS_OF_ERF: f64 = 7.0;
/// Width of an argument's range from which a periodic function is not followed.
const WIDE: f64 = 0.1;
/// Quotients whose whole part f64 does not hold.
const QUOTIENT_MAX: f64 = (1u64 << 52) as f64;

/// What `op` may give for operands of `dtype` (of `where`: the dtype of its last ones).
pub fn value(op: MapOp, dtype: DType, args: &[Value]) -> Value {
    if op == MapOp::r#where {
        return match args[0] {
            Value::Int(c) => args[if c != 0 { 1 } else { 2 }],
            _ => args[1].hull(args[2]),
        };
    }
    if args.contains(&Value::Any) {
        return Value::Any;
    }
    if dtype.is_float() {
        return real(op, dtype, args);
    }
    let ints: Option<Vec<i64>> = args.iter().map(|a| if let Value::Int(n) = a { Some(*n) } else { None }).collect();
    let result = ints.and_then(|x| integer(op, dtype, &x));
    let to = if op.def().gives == Gives::Bool { DType::Bool } else { dtype };
    result.map_or(Value::Any, |n| Value::Int(wrap(to, n)))
}

/// The ends of a range, its middle, and zero where it is inside.
fn corners(v: &Value) -> Vec<f64> {
    match *v {
        Value::Real(lo, hi) if lo == hi => vec![lo],
        Value::Real(lo, hi) => {
            let zero = (lo < 0.0 && hi > 0.0).then_some(0.0);
            [lo, hi, lo / 2.0 + hi / 2.0].into_iter().chain(zero).collect()
        }
        _ => vec![f64::NAN],
    }
}

/// Every choice of a corner per operand.
fn points(args: &[Value]) -> Vec<Vec<f64>> {
    args.iter().fold(vec![vec![]], |all, arg| {
        let corners = corners(arg);
        all.iter().flat_map(|p| corners.iter().map(|&c| [&p[..], &[c]].concat())).collect()
    })
}

/// Operands that are one number each, which most are.
fn one_point(op: MapOp, dtype: DType, x: &[f64]) -> Value {
    if op.def().gives == Gives::Bool {
        return predicate(op, x).map_or(Value::Any, |t| Value::Int(t.into()));
    }
    match number(op, x) {
        _ if op == MapOp::floor_div && (x[0] / x[1]).abs() > QUOTIENT_MAX => Value::Any,
        Some(y) if y.is_nan() => Value::Nan,
        Some(y) => rounded(op, dtype, y, y),
        None => Value::Any,
    }
}

fn real(op: MapOp, dtype: DType, args: &[Value]) -> Value {
    let mut single = [0.0; 3];
    if args.iter().zip(&mut single).all(|(a, x)| a.exact().map(|v| *x = v).is_some()) {
        return one_point(op, dtype, &single[..args.len()]);
    }
    let points = points(args);
    if op.def().gives == Gives::Bool {
        let mut truths = points.iter().map(|p| predicate(op, p));
        let first = truths.next().flatten();
        return match first {
            Some(t) if truths.all(|u| u == Some(t)) => Value::Int(t.into()),
            _ => Value::Any,
        };
    }
    // Between the corners these may rise and fall, and have poles.
    if op.is_once_from_f64() && !is_monotonic(op) {
        return Value::Any;
    }
    let periodic = matches!(op, MapOp::sin | MapOp::cos | MapOp::tan);
    if periodic && matches!(args[0], Value::Real(lo, hi) if hi - lo > WIDE) || jumps(op, &points) {
        return Value::Any;
    }
    let results: Option<Vec<f64>> = points.iter().map(|p| number(op, p)).collect();
    let Some(results) = results else { return Value::Any };
    let nan = results.iter().filter(|r| r.is_nan()).count();
    if nan > 0 {
        return if nan == results.len() { Value::Nan } else { Value::Any };
    }
    let (lo, hi) = results.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), &r| (lo.min(r), hi.max(r)));
    // A pole lies between.
    if lo != hi && (lo.is_infinite() || hi.is_infinite()) {
        return Value::Any;
    }
    rounded(op, dtype, lo, hi)
}

/// Whether a special function rises everywhere, or falls everywhere, in each operand.
fn is_monotonic(op: MapOp) -> bool {
    use MapOp::*;
    matches!(op, asinh | acosh | atanh | cbrt | erfc | erfinv | ndtr | log_ndtr | ndtri | i1 | logit | logaddexp)
}

/// Whether the whole part of a quotient differs between the corners, or is too large to know.
fn jumps(op: MapOp, points: &[Vec<f64>]) -> bool {
    if !matches!(op, MapOp::floor_div | MapOp::r#mod) {
        return false;
    }
    let mut whole = points.iter().map(|p| (p[0] / p[1]).floor());
    let first = whole.next().unwrap_or(0.0);
    first.abs() > QUOTIENT_MAX || op == MapOp::r#mod && whole.any(|w| w.to_bits() != first.to_bits())
}

/// The error that the table allows, and the rounding to the type.
fn rounded(op: MapOp, dtype: DType, lo: f64, hi: f64) -> Value {
    let compute = format(dtype.compute());
    let ulps = op.ulps(if dtype == DType::F64 { Kind::F64 } else { Kind::F32 });
    if op.keeps() {
        // An infinity of e5m2 is not rounded where it is only moved.
        let kept = |x: f64| if x.is_infinite() { x } else { format(dtype).nearest(x) };
        return Value::Real(kept(lo), kept(hi));
    }
    let once = ulps <= 0.5 && op != MapOp::fma;
    let (lo, hi) = if once {
        (compute.nearest(lo), compute.nearest(hi))
    } else {
        let own = match op {
            _ if dtype != DType::F64 => 0.0,
            MapOp::sigmoid | MapOp::silu | MapOp::softplus | MapOp::log_sigmoid | MapOp::gelu | MapOp::gelu_tanh => {
                OWN_ULPS_OF_EXPONENTIALS
            }
            MapOp::erf => OWN_ULPS_OF_ERF,
            _ => OWN_ULPS,
        };
        let off = |x: f64| (ulps + own) * compute.ulp(x);
        let (lo, hi) = (lo - off(lo), hi + off(hi));
        let over = |x: f64| if x.abs() > compute.largest { f64::INFINITY.copysign(x) } else { x };
        // The lower end overflows only where every number of the range does.
        (if lo < 0.0 { over(lo) } else { compute.nearest(lo) }, if hi > 0.0 { over(hi) } else { compute.nearest(hi) })
    };
    if dtype == dtype.compute() { Value::Real(lo, hi) } else { format(dtype).store(lo, hi) }
}

fn predicate(op: MapOp, x: &[f64]) -> Option<bool> {
    let y = x.get(1).copied().unwrap_or(0.0);
    Some(match op {
        MapOp::eq => x[0] == y,
        MapOp::ne => x[0] != y,
        MapOp::lt => x[0] < y,
        MapOp::le => x[0] <= y,
        MapOp::gt => x[0] > y,
        MapOp::ge => x[0] >= y,
        MapOp::isnan => x[0].is_nan(),
        MapOp::isinf => x[0].is_infinite(),
        MapOp::isfinite => x[0].is_finite(),
        _ => return None,
    })
}

/// The exact function of real numbers, as f64 has it.
fn number(op: MapOp, x: &[f64]) -> Option<f64> {
    if op.is_once_from_f64() {
        return Some(program(op, x));
    }
    match *x {
        [x] => one(op, x),
        [x, y] => two(op, x, y),
        [x, y, z] if op == MapOp::fma => Some(x.mul_add(y, z)),
        _ => None,
    }
}

/// By its own program in F64, which correctly rounded values are held against where it is written (`map/special.rs`).
fn program(op: MapOp, x: &[f64]) -> f64 {
    let lanes: Vec<Lane> = x.iter().map(|&x| Lane::F64(vec![x])).collect();
    match eval(op.program(&vec![Kind::F64; x.len()]), &lanes, 1) {
        Lane::F64(y) => y[0],
        other => panic!("{} gives {:?}", op.name(), other.kind()),
    }
}

fn one(op: MapOp, x: f64) -> Option<f64> {
    Some(match op {
        MapOp::neg => -x,
        MapOp::abs => x.abs(),
        MapOp::sign => {
            if x == 0.0 || x.is_nan() {
                x
            } else {
                x.signum()
            }
        }
        MapOp::reciprocal => 1.0 / x,
        MapOp::square => x * x,
        MapOp::sqrt => x.sqrt(),
        MapOp::rsqrt => 1.0 / x.sqrt(),
        MapOp::exp => x.exp(),
        MapOp::exp2 => x.exp2(),
        MapOp::expm1 => x.exp_m1(),
        MapOp::log => x.ln(),
        MapOp::log2 => x.log2(),
        MapOp::log10 => x.log10(),
        MapOp::log1p => x.ln_1p(),
        MapOp::sin => x.sin(),
        MapOp::cos => x.cos(),
        MapOp::tan => x.tan(),
        MapOp::asin => x.asin(),
        MapOp::acos => x.acos(),
        MapOp::atan => x.atan(),
        MapOp::sinh => x.sinh(),
        MapOp::cosh => x.cosh(),
        MapOp::tanh => x.tanh(),
        MapOp::erf => erf(x),
        MapOp::sigmoid => 1.0 / (1.0 + (-x).exp()),
        MapOp::silu if x == f64::NEG_INFINITY => -0.0,
        MapOp::silu => x / (1.0 + (-x).exp()),
        MapOp::softplus if x.is_nan() => x,
        MapOp::softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        MapOp::relu if x.is_nan() => x,
        MapOp::relu => x.max(0.0),
        MapOp::gelu | MapOp::gelu_tanh if x == f64::NEG_INFINITY => -0.0,
        MapOp::gelu => x / 2.0 * erfc(-x * FRAC_1_SQRT_2),
        MapOp::softsign if x.is_infinite() => 1f64.copysign(x),
        MapOp::softsign => x / (1.0 + x.abs()),
        MapOp::log_sigmoid if x.is_nan() => x,
        MapOp::log_sigmoid => x.min(0.0) - (-x.abs()).exp().ln_1p(),
        MapOp::gelu_tanh => x / (1.0 + (-2.0 * (2.0 / PI).sqrt() * (x + 0.044715 * x * x * x)).exp()),
        MapOp::floor => x.floor(),
        MapOp::ceil => x.ceil(),
        MapOp::round => x.round_ties_even(),
        MapOp::trunc => x.trunc(),
        _ => return None,
    })
}

fn two(op: MapOp, x: f64, y: f64) -> Option<f64> {
    let nan = x.is_nan() || y.is_nan();
    Some(match op {
        MapOp::add => x + y,
        MapOp::sub => x - y,
        MapOp::mul => x * y,
        MapOp::div => x / y,
        MapOp::pow => x.powf(y),
        // A NaN has no sign.
        MapOp::copysign if y.is_nan() => x.abs(),
        MapOp::hypot => x.hypot(y),
        MapOp::atan2 => x.atan2(y),
        MapOp::xlogy | MapOp::xlog1py if x == 0.0 && !y.is_nan() => 0.0,
        MapOp::xlogy => x * y.ln(),
        MapOp::xlog1py => x * y.ln_1p(),
        MapOp::copysign => x.copysign(y),
        MapOp::maximum | MapOp::minimum if nan => f64::NAN,
        MapOp::maximum => x.max(y),
        MapOp::minimum => x.min(y),
        MapOp::floor_div => divided(x, y).0,
        MapOp::r#mod => divided(x, y).1,
        _ => return None,
    })
}

/// Python's floor division and remainder, whose sign is the divisor's.
fn divided(x: f64, y: f64) -> (f64, f64) {
    if y == 0.0 {
        return (x / y, f64::NAN);
    }
    let rest = x % y;
    let quotient = ((x - rest) / y).round();
    if rest != 0.0 && (rest < 0.0) != (y < 0.0) { (quotient - 1.0, rest + y) } else { (quotient, rest) }
}

/// Near zero `2/√π·exp(-x²)·Σ 2ⁿx²ⁿ⁺¹/(2n+1)!!`, whose terms have one sign.
fn erf(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 {
        return x;
    }
    if x.abs() >= 1.0 {
        return (1.0 - erfc(x.abs())).copysign(x);
    }
    let (mut term, mut sum, mut n) = (x, 0.0, 0.0);
    while f64::abs(term) > f64::abs(sum) * 1e-20 {
        sum += term;
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
    }
    2.0 / PI.sqrt() * (-x * x).exp() * sum
}

/// `1 - erf(x)`; from 1 on by its continued fraction, so that small results keep their digits.
fn erfc(x: f64) -> f64 {
    if x < 1.0 || x.is_nan() {
        return 1.0 - erf(x);
    }
    let fraction = (1..300).rev().fold(x, |f, n| x + f64::from(n) / 2.0 / f);
    (-x * x).exp() / PI.sqrt() / fraction
}

/// What a function of integers gives before it is cut to its width. Bools are 0 and 1.
fn integer(op: MapOp, dtype: DType, x: &[i64]) -> Option<i64> {
    let (a, b) = (x[0], x.get(1).copied().unwrap_or(0));
    let bool = dtype == DType::Bool;
    let outside = b < 0 || b >= dtype.bytes() as i64 * 8;
    Some(match op {
        MapOp::add if bool => a | b,
        MapOp::add => a.wrapping_add(b),
        MapOp::sub => a.wrapping_sub(b),
        MapOp::mul => a.wrapping_mul(b),
        MapOp::square => a.wrapping_mul(a),
        MapOp::fma => a.wrapping_mul(b).wrapping_add(x[2]),
        MapOp::neg => a.wrapping_neg(),
        MapOp::abs => a.wrapping_abs(),
        MapOp::sign => a.signum(),
        MapOp::relu => a.max(0),
        MapOp::floor | MapOp::ceil | MapOp::round | MapOp::trunc => a,
        MapOp::floor_div | MapOp::r#mod if b == 0 => 0,
        MapOp::floor_div => {
            (i128::from(a).div_euclid(b.into()) - i128::from(a.wrapping_rem_euclid(b) != 0 && b < 0)) as i64
        }
        MapOp::r#mod => {
            let rest = a.wrapping_rem_euclid(b);
            if rest != 0 && b < 0 { rest + b } else { rest }
        }
        MapOp::pow if b < 0 => 0,
        MapOp::pow => power(a, b as u64),
        MapOp::maximum => a.max(b),
        MapOp::minimum => a.min(b),
        MapOp::eq => i64::from(a == b),
        MapOp::ne => i64::from(a != b),
        MapOp::lt => i64::from(a < b),
        MapOp::le => i64::from(a <= b),
        MapOp::gt => i64::from(a > b),
        MapOp::ge => i64::from(a >= b),
        MapOp::logical_and | MapOp::bit_and => a & b,
        MapOp::logical_or | MapOp::bit_or => a | b,
        MapOp::logical_xor | MapOp::bit_xor => a ^ b,
        MapOp::logical_not => 1 - a,
        MapOp::bit_not if bool => 1 - a,
        MapOp::bit_not => !a,
        MapOp::shl if outside => 0,
        MapOp::shl => a << b,
        MapOp::shr if outside => {
            if a < 0 {
                -1
            } else {
                0
            }
        }
        MapOp::shr => a >> b,
        _ => return None,
    })
}

/// Modulo 2⁶⁴, by squares.
fn power(base: i64, exponent: u64) -> i64 {
    let (mut result, mut base, mut left) = (1i64, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        left >>= 1;
    }
    result
}

/// Whether every function of the table has a definition here for every type that it takes.
pub fn defines(op: MapOp, dtype: DType) -> bool {
    let arity = op.def().arity;
    if op == MapOp::r#where {
        return true;
    }
    match (dtype.is_float(), op.def().gives) {
        (true, Gives::Bool) => predicate(op, &vec![1.0; arity]).is_some(),
        (true, Gives::Same) => number(op, &vec![1.0; arity]).is_some(),
        (false, _) => integer(op, dtype, &vec![1; arity]).is_some(),
    }
}

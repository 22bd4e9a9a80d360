//! Laws of the table: every function in every kind it takes, against its definition.

use super::golden::{BINARY, UNARY};
use super::{Gives, MapOp};
use crate::scalar::{Kind, Val, Writer};
use crate::scalar_eval::{Lane, eval};

pub(super) fn unary64(op: MapOp, xs: &[f64]) -> Vec<f64> {
    float64(op, &[xs])
}

pub(super) fn float64(op: MapOp, args: &[&[f64]]) -> Vec<f64> {
    let lanes: Vec<Lane> = args.iter().map(|a| Lane::F64(a.to_vec())).collect();
    match eval(op.program(&vec![Kind::F64; args.len()]), &lanes, args[0].len()) {
        Lane::F64(v) => v,
        other => panic!("{} gives {:?}", op.name(), other.kind()),
    }
}

fn float32(op: MapOp, args: &[&[f32]]) -> Vec<f32> {
    let lanes: Vec<Lane> = args.iter().map(|a| Lane::F32(a.to_vec())).collect();
    match eval(op.program(&vec![Kind::F32; args.len()]), &lanes, args[0].len()) {
        Lane::F32(v) => v,
        other => panic!("{} gives {:?}", op.name(), other.kind()),
    }
}

/// Distance in units of the last place of a format with `digits` bits and smallest normal
/// exponent `least`.
pub(super) fn ulps(exact: f64, got: f64, digits: i32, least: i32) -> f64 {
    if exact.is_nan() || got.is_nan() {
        return if exact.is_nan() == got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if exact == got {
        return 0.0;
    }
    let exponent = (exact.abs().max(f64::MIN_POSITIVE).to_bits() >> 52) as i32 - 1023;
    let place = exponent.max(least) - digits + 1;
    // Two factors, since the place of a small number may lie below the range.
    (exact - got).abs() * 2f64.powi(-place / 2) * 2f64.powi(-place - (-place / 2))
}

fn ulps32(exact: f64, got: f32) -> f64 {
    // An infinity stands for the first number that does not fit.
    let largest = 2f64.powi(128);
    if got.is_infinite() && exact.abs() >= largest && exact.is_sign_negative() == got.is_sign_negative() {
        return 0.0;
    }
    if got.is_infinite() && exact.is_finite() {
        return ulps(exact, largest.copysign(got.into()), 24, -126);
    }
    if exact.abs() >= largest && exact.is_finite() && got.is_finite() {
        return (exact.abs() - f64::from(got.abs())) / 2f64.powi(104);
    }
    ulps(exact, got.into(), 24, -126)
}

/// Numbers of every exponent and both signs, small ones densely, and the special ones.
fn probes32() -> Vec<f32> {
    let mut xs: Vec<f32> = (0..=u32::MAX).step_by(262_147).map(f32::from_bits).collect();
    xs.extend((-4000..4000).map(|i| i as f32 * 0.00237));
    xs.extend((-2000..2000).map(|i| i as f32 * 0.0531));
    xs.extend([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN]);
    xs.extend([f32::MIN_POSITIVE, -f32::MIN_POSITIVE, f32::from_bits(1), -f32::from_bits(1), 88.72284, -103.97208]);
    xs
}

/// The function in f64 by the standard library, where it has it.
fn std64(op: MapOp, x: f64) -> Option<f64> {
    Some(match op {
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
        MapOp::sqrt => x.sqrt(),
        MapOp::rsqrt => 1.0 / x.sqrt(),
        MapOp::reciprocal => 1.0 / x,
        MapOp::sigmoid => 1.0 / (1.0 + (-x).exp()),
        MapOp::silu if x == f64::NEG_INFINITY => -0.0,
        MapOp::silu => x / (1.0 + (-x).exp()),
        MapOp::gelu_tanh if x == f64::NEG_INFINITY => -0.0,
        MapOp::gelu_tanh => {
            let u = 2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            x / (1.0 + (-u).exp())
        }
        MapOp::softplus if x.is_nan() => x,
        MapOp::softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        MapOp::floor => x.floor(),
        MapOp::ceil => x.ceil(),
        MapOp::trunc => x.trunc(),
        MapOp::round => x.round_ties_even(),
        MapOp::abs => x.abs(),
        MapOp::neg => -x,
        MapOp::square => x * x,
        MapOp::sign if x == 0.0 || x.is_nan() => x + 0.0,
        MapOp::sign => x.signum(),
        MapOp::relu if x.is_nan() => x,
        MapOp::relu => x.max(0.0),
        // Their F64 programs are held to correctly rounded numbers below and in `special`.
        MapOp::erf | MapOp::gelu => unary64(op, &[x])[0],
        op if op.is_once_from_f64() || op == MapOp::softsign || op == MapOp::log_sigmoid => unary64(op, &[x])[0],
        _ => return None,
    })
}

fn is_unary_float(op: MapOp) -> bool {
    let def = op.def();
    def.arity == 1 && def.takes.accepts(Kind::F32) && def.gives == Gives::Same
}

#[test]
fn programs_are_well_formed() {
    for &op in MapOp::ALL {
        for kind in Kind::ALL.into_iter().filter(|&k| op.def().takes.accepts(k)) {
            let program = op.program(&op.operand_kinds(kind));
            program.verify().unwrap_or_else(|e| panic!("{} of {kind:?}: {e}", op.name()));
            assert_eq!(program.result_kind(), op.result_kind(kind), "{} of {kind:?}", op.name());
        }
        assert_eq!(MapOp::parse(op.name()), Some(op));
        assert!(op.def().doc.contains('.'), "{} has no first sentence", op.name());
    }
}

#[test]
fn f32_within_the_declared_error() {
    let xs = probes32();
    for &op in MapOp::ALL.iter().filter(|&&op| is_unary_float(op)) {
        let ys = float32(op, &[&xs]);
        for (&x, y) in xs.iter().zip(ys) {
            let want = std64(op, x.into()).unwrap_or_else(|| panic!("{} has no definition here", op.name()));
            let error = ulps32(want, y);
            assert!(error <= op.ulps(Kind::F32).max(0.5), "{}({x:e}) = {y:e}, not {want:e}: {error} ulps", op.name());
            if want == 0.0 && want.is_sign_negative() && op != MapOp::gelu && op != MapOp::relu {
                assert!(y.is_sign_negative(), "{}({x:e}) loses its sign", op.name());
            }
        }
    }
}

#[test]
fn f64_within_the_declared_error_of_exact_numbers() {
    for &(op, x, want) in UNARY {
        let (x, want) = (f64::from_bits(x), f64::from_bits(want));
        let got = unary64(op, &[x])[0];
        let error = ulps(want, got, 53, -1022);
        // The expected number is itself rounded.
        assert!(error <= op.def().ulps + 0.5, "{}({x:e}) = {got:e}, not {want:e}: {error} ulps", op.name());
    }
    for &(op, x, y, want) in BINARY {
        let (x, y, want) = (f64::from_bits(x), f64::from_bits(y), f64::from_bits(want));
        let got = float64(op, &[&[x], &[y]])[0];
        let error = ulps(want, got, 53, -1022);
        assert!(error <= op.def().ulps + 0.5, "{}({x:e}, {y:e}) = {got:e}, not {want:e}: {error} ulps", op.name());
    }
}

#[test]
fn f64_close_to_the_standard_library() {
    let mut xs: Vec<f64> = probes32().into_iter().map(f64::from).collect();
    xs.extend((0..2000u64).map(|i| f64::from_bits(i.wrapping_mul(0x0020_4c3a_9d71_e5b3))));
    for &op in MapOp::ALL.iter().filter(|&&op| is_unary_float(op)) {
        // Written out with the library's functions these lose digits themselves.
        let loose = matches!(op, MapOp::gelu_tanh | MapOp::silu | MapOp::sigmoid | MapOp::softplus);
        for (&x, y) in xs.iter().zip(unary64(op, &xs)) {
            // The quotients overflow before they underflow.
            if loose && x < -600.0 || op == MapOp::gelu_tanh && x < -4.0 {
                continue;
            }
            let want = std64(op, x).unwrap_or_else(|| panic!("{} has no definition here", op.name()));
            let error = ulps(want, y, 53, -1022);
            let bound = op.def().ulps.max(0.5) + if op == MapOp::gelu_tanh { 30.0 } else { 1.5 };
            assert!(error <= bound, "{}({x:e}) = {y:e}, not {want:e}: {error} ulps", op.name());
        }
    }
}

/// Pairs of special and ordinary numbers.
fn pairs() -> (Vec<f32>, Vec<f32>) {
    let mut xs =
        vec![0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1.5, -2.5, 7.25, 1e-40, -1e-40, 1e30, -1e30];
    xs.extend([f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 16777215.0, -16777217.0]);
    let mut a = Vec::new();
    let mut b = Vec::new();
    for &x in &xs {
        for &y in &xs {
            a.push(x);
            b.push(y);
        }
    }
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32
    };
    for i in 0..6000 {
        let (u, v) = (next(), next());
        let small = |u: u32| (u as f32 / 2f32.powi(31) - 0.5) * 40.0;
        let (x, y) = match i % 3 {
            0 => (f32::from_bits(u << 1 ^ v), f32::from_bits(v << 1)),
            1 => (small(u), small(v)),
            _ => (small(u).abs(), small(v).round()),
        };
        a.push(x);
        b.push(y);
    }
    (a, b)
}

/// Python's floor division and remainder.
fn python_divmod(a: f64, b: f64) -> (f64, f64) {
    let mut rest = a % b;
    if b == 0.0 {
        return (a / b, f64::NAN);
    }
    let mut quotient = ((a - rest) / b).round();
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        rest += b;
        quotient -= 1.0;
    }
    (quotient, rest)
}

fn binary_definition(op: MapOp, a: f64, b: f64) -> Option<f64> {
    let unordered = a.is_nan() || b.is_nan();
    Some(match op {
        MapOp::add => a + b,
        MapOp::sub => a - b,
        MapOp::mul => a * b,
        MapOp::div => a / b,
        MapOp::pow => a.powf(b),
        MapOp::hypot => a.hypot(b),
        MapOp::atan2 => a.atan2(b),
        MapOp::copysign if b.is_nan() => a.abs(),
        MapOp::copysign => a.copysign(b),
        MapOp::maximum | MapOp::minimum if unordered => f64::NAN,
        MapOp::maximum => a.max(b),
        MapOp::minimum => a.min(b),
        MapOp::floor_div => python_divmod(a, b).0,
        MapOp::r#mod => python_divmod(a, b).1,
        MapOp::xlogy if a == 0.0 && !b.is_nan() => 0.0,
        MapOp::xlogy => a * b.ln(),
        MapOp::xlog1py if a == 0.0 && !b.is_nan() => 0.0,
        MapOp::xlog1py => a * b.ln_1p(),
        // Their F64 programs are held to correctly rounded numbers in `special`.
        op if op.is_once_from_f64() => float64(op, &[&[a], &[b]])[0],
        _ => return None,
    })
}

#[test]
fn two_operands_in_f32() {
    let (a, b) = pairs();
    for &op in MapOp::ALL {
        let def = op.def();
        if def.arity != 2 || !def.takes.accepts(Kind::F32) || def.gives == Gives::Bool {
            continue;
        }
        for ((&x, &y), got) in a.iter().zip(&b).zip(float32(op, &[&a, &b])) {
            let (p, q) = (f64::from(x), f64::from(y));
            let want = binary_definition(op, p, q).unwrap_or_else(|| panic!("{} has no definition here", op.name()));
            let division = matches!(op, MapOp::floor_div | MapOp::r#mod);
            if division && (p / q).abs() > 2f64.powi(52) {
                continue;
            }
            let error = ulps32(want, got);
            assert!(
                error <= op.ulps(Kind::F32).max(0.5),
                "{}({x:e}, {y:e}) = {got:e}, not {want:e}: {error} ulps",
                op.name()
            );
            if want == 0.0 && !division && !matches!(op, MapOp::maximum | MapOp::minimum) {
                assert_eq!(got.is_sign_negative(), want.is_sign_negative(), "{}({x:e}, {y:e})", op.name());
            }
        }
    }
}

#[test]
fn powers_of_special_numbers_in_f64() {
    let (a, b) = pairs();
    let a: Vec<f64> = a.into_iter().map(f64::from).collect();
    let b: Vec<f64> = b.into_iter().map(f64::from).collect();
    for ((&x, &y), got) in a.iter().zip(&b).zip(float64(MapOp::pow, &[&a, &b])) {
        let want = x.powf(y);
        let error = ulps(want, got, 53, -1022);
        // The library's own numbers are off by less than one.
        assert!(error <= 1.0, "pow({x:e}, {y:e}) = {got:e}, not {want:e}: {error} ulps");
        assert_eq!(
            want.is_sign_negative() && !want.is_nan(),
            got.is_sign_negative() && !got.is_nan(),
            "pow({x:e}, {y:e})"
        );
    }
}

#[test]
fn powers_that_are_numbers_in_f64_are_exact() {
    let pow = |x: f64, y: f64| float64(MapOp::pow, &[&[x], &[y]])[0];
    for k in -1074..=1023 {
        assert_eq!(pow(2.0, k.into()), 2f64.powi(k / 2) * 2f64.powi(k - k / 2), "2 ** {k}");
    }
    for base in 1..2000u64 {
        for y in 1..=16u32 {
            let Some(want) = base.checked_pow(y).filter(|p| p >> p.trailing_zeros() < 1 << 53) else { break };
            assert_eq!(pow(base as f64, y.into()), want as f64, "{base} ** {y}");
            assert_eq!(pow(-(base as f64), y.into()).abs(), want as f64);
            assert_eq!(pow(want as f64, 1.0), want as f64);
            let inverse = pow(want as f64, -1.0);
            assert!(ulps(1.0 / want as f64, inverse, 53, -1022) <= 1.0, "1 / {want}: {inverse:e}");
        }
        assert_eq!(pow(base as f64 * base as f64, 0.5), base as f64);
        assert_eq!(pow(base as f64 * base as f64, 1.5), (base * base * base) as f64);
    }
}

#[test]
fn division_in_f64_is_exact() {
    let mut far =
        vec![1e20f64, -1e20, 1e100, 7.5, -7.5, 0.1, 3.0, 1.0, f64::MAX, f64::MIN, 5e-324, -1e-310, f64::MIN_POSITIVE];
    far.extend(
        (0..200u64).map(|i| f64::from_bits(i.wrapping_mul(0x0020_4c3a_9d71_e5b3) ^ i << 55)).filter(|x| x.is_finite()),
    );
    for &x in &far {
        for &y in far.iter().filter(|y| **y != 0.0) {
            let got = float64(MapOp::r#mod, &[&[x], &[y]])[0];
            let want = python_divmod(x, y).1;
            assert!(
                got == want && (got != 0.0 || got.is_sign_negative() == (y < 0.0)),
                "{x:e} % {y:e}: {got:e}, {want:e}"
            );
        }
    }
    let (a, b) = pairs();
    for ((&x, &y), got) in a.iter().zip(&b).zip(float32(MapOp::r#mod, &[&a, &b])) {
        let want = python_divmod(x.into(), y.into()).1 as f32;
        let endless = x.is_infinite() || y.is_infinite() || y == 0.0;
        assert!(endless || got == want || got.is_nan() && want.is_nan(), "{x:e} % {y:e}: {got:e}, {want:e}");
    }
    let divide =
        |x: f64, y: f64| (float64(MapOp::floor_div, &[&[x], &[y]])[0], float64(MapOp::r#mod, &[&[x], &[y]])[0]);
    assert_eq!(divide(-1.0, f64::INFINITY), (-1.0, f64::INFINITY));
    assert_eq!(divide(1.0, f64::INFINITY), (0.0, 1.0));
    assert_eq!(divide(1.0, 0.1), (9.0, 1.0 % 0.1));
    assert!(divide(f64::INFINITY, 2.0).0.is_nan());
}

#[test]
fn comparisons_and_classes() {
    let (a, b) = pairs();
    let bools = |op: MapOp, args: &[&[f32]]| {
        let lanes: Vec<Lane> = args.iter().map(|a| Lane::F32(a.to_vec())).collect();
        match eval(op.program(&vec![Kind::F32; args.len()]), &lanes, args[0].len()) {
            Lane::Bool(v) => v,
            other => panic!("{:?}", other.kind()),
        }
    };
    let pairs: Vec<(f32, f32)> = a.iter().copied().zip(b.iter().copied()).collect();
    let compare = |op, f: fn(f32, f32) -> bool| {
        let want: Vec<bool> = pairs.iter().map(|&(x, y)| f(x, y)).collect();
        assert!(bools(op, &[&a, &b]) == want, "{}", op.name());
    };
    compare(MapOp::eq, |x, y| x == y);
    compare(MapOp::ne, |x, y| x != y);
    compare(MapOp::lt, |x, y| x < y);
    compare(MapOp::le, |x, y| x <= y);
    compare(MapOp::gt, |x, y| x > y);
    compare(MapOp::ge, |x, y| x >= y);
    for (op, f) in [
        (MapOp::isnan, f32::is_nan as fn(f32) -> bool),
        (MapOp::isinf, f32::is_infinite),
        (MapOp::isfinite, f32::is_finite),
    ] {
        assert!(bools(op, &[&a]) == a.iter().map(|&x| f(x)).collect::<Vec<_>>(), "{}", op.name());
    }
}

/// What an integer function gives before it is cut to the width.
fn integer_definition(op: MapOp, kind: Kind, x: &[i64]) -> Option<i128> {
    let (a, b) = (i128::from(x[0]), i128::from(*x.get(1)?));
    let bits = i128::from(kind.bits());
    let negative = kind != Kind::U8 && b < 0;
    Some(match op {
        MapOp::add => a + b,
        MapOp::sub => a - b,
        MapOp::mul => a * b,
        MapOp::floor_div | MapOp::r#mod if b == 0 => 0,
        MapOp::floor_div => a.div_euclid(b) - if a.rem_euclid(b) != 0 && b < 0 { 1 } else { 0 },
        MapOp::r#mod => a.rem_euclid(b) + if a.rem_euclid(b) != 0 && b < 0 { b } else { 0 },
        MapOp::pow if b < 0 => 0,
        MapOp::pow => (0..b.min(300)).fold(1i128, |p, _| i128::from(p.wrapping_mul(a) as i64)),
        MapOp::maximum => a.max(b),
        MapOp::minimum => a.min(b),
        MapOp::bit_and => a & b,
        MapOp::bit_or => a | b,
        MapOp::bit_xor => a ^ b,
        MapOp::shl if negative || b >= bits => 0,
        MapOp::shl => a << b,
        MapOp::shr if negative || b >= bits => a >> 127,
        MapOp::shr => a >> b,
        _ => return None,
    })
}

fn lane_of(kind: Kind, xs: &[i64]) -> Lane {
    let mut w = Writer::default();
    let x = w.arg(0, Kind::I64);
    let y: Val = w.convert(x, kind);
    eval(&w.finish(y), &[Lane::I64(xs.to_vec())], xs.len())
}

fn as_i64(lane: Lane) -> Vec<i64> {
    let mut w = Writer::default();
    let n = lane.len();
    let x = w.arg(0, lane.kind());
    let y = w.convert(x, Kind::I64);
    match eval(&w.finish(y), &[lane], n) {
        Lane::I64(v) => v,
        other => panic!("{:?}", other.kind()),
    }
}

#[test]
fn integers_wrap_and_floor() {
    let ends = [0, 1, 2, 3, -1, -2, 7, -7, 8, 9, 15, 16, 31, 33, 63, 64, 100, 127, -128, 128, 200, 255, 32767, -32768];
    let wide = [i64::MAX, i64::MIN, 1 << 40, i32::MAX as i64, i32::MIN as i64, 0x1234_5678_9abc_def0];
    let base: Vec<i64> = ends.into_iter().chain(wide).collect();
    for kind in [Kind::I64, Kind::I32, Kind::I16, Kind::I8, Kind::U8] {
        let xs = as_i64(lane_of(kind, &base));
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for &x in &xs {
            for &y in &xs {
                a.push(x);
                b.push(y);
            }
        }
        for &op in MapOp::ALL {
            let def = op.def();
            if def.arity != 2 || def.gives == Gives::Bool || !def.takes.accepts(kind) {
                continue;
            }
            let got = as_i64(eval(op.program(&[kind; 2]), &[lane_of(kind, &a), lane_of(kind, &b)], a.len()));
            for (i, got) in got.into_iter().enumerate() {
                if op == MapOp::pow && b[i] > 300 {
                    continue;
                }
                let want = integer_definition(op, kind, &[a[i], b[i]])
                    .unwrap_or_else(|| panic!("{} has no definition here", op.name()));
                let want = as_i64(lane_of(kind, &[want as i64]))[0];
                assert_eq!(got, want, "{}({}, {}) of {kind:?}", op.name(), a[i], b[i]);
            }
        }
        let one = |op: MapOp, x: i64| as_i64(eval(op.program(&[kind]), &[lane_of(kind, &[x])], 1))[0];
        assert_eq!(one(MapOp::square, 5), 25);
        assert_eq!(one(MapOp::sign, 5), 1);
        assert_eq!(one(MapOp::floor, 5), 5);
        if kind != Kind::U8 {
            assert_eq!((one(MapOp::abs, -5), one(MapOp::neg, 5), one(MapOp::sign, -5)), (5, -5, -1));
            assert_eq!((one(MapOp::relu, -5), one(MapOp::bit_not, 5)), (0, -6));
        }
    }
}

#[test]
fn truth_tables() {
    let (a, b) = (vec![false, false, true, true], vec![false, true, false, true]);
    let table = |op: MapOp| match eval(op.program(&[Kind::Bool; 2]), &[Lane::Bool(a.clone()), Lane::Bool(b.clone())], 4)
    {
        Lane::Bool(v) => v.into_iter().map(u8::from).collect::<Vec<_>>(),
        other => panic!("{:?}", other.kind()),
    };
    for op in [MapOp::logical_and, MapOp::bit_and, MapOp::mul, MapOp::minimum] {
        assert_eq!(table(op), [0, 0, 0, 1], "{}", op.name());
    }
    for op in [MapOp::logical_or, MapOp::bit_or, MapOp::add, MapOp::maximum] {
        assert_eq!(table(op), [0, 1, 1, 1], "{}", op.name());
    }
    for op in [MapOp::logical_xor, MapOp::bit_xor, MapOp::ne] {
        assert_eq!(table(op), [0, 1, 1, 0], "{}", op.name());
    }
    assert_eq!(table(MapOp::lt), [0, 1, 0, 0]);
    let choose = MapOp::r#where;
    let args = [Lane::Bool(b.clone()), Lane::I8(vec![1, 2, 3, 4]), Lane::I8(vec![5, 6, 7, 8])];
    assert_eq!(eval(choose.program(&choose.operand_kinds(Kind::I8)), &args, 4), Lane::I8(vec![5, 2, 7, 4]));
}

#[test]
fn fused_products() {
    let e = 2f32.powi(-12);
    let y = float32(MapOp::fma, &[&[1.0 + e], &[1.0 - e], &[-1.0]]);
    assert_eq!(y, [-e * e]);
    let ints = [3i64, 4, 5].map(|x| lane_of(Kind::I8, &[x]));
    assert_eq!(eval(MapOp::fma.program(&[Kind::I8; 3]), &ints, 1), Lane::I8(vec![17]));
}

#[test]
fn logarithms_in_f32_of_every_number_between_powers() {
    // The exponent is exact for log2; four binades around 1 hold all fractions and both signs of the result.
    let xs: Vec<f32> = (0.25f32.to_bits()..4f32.to_bits()).step_by(3).map(f32::from_bits).collect();
    for op in [MapOp::log, MapOp::log2, MapOp::log10] {
        let mut worst = (0.0, 0.0);
        for (&x, y) in xs.iter().zip(float32(op, &[&xs])) {
            let want = std64(op, x.into()).unwrap_or(f64::NAN);
            let error = ulps32(want, y);
            if error > worst.0 {
                worst = (error, x);
            }
        }
        assert!(worst.0 <= op.def().ulps, "{}({:e}) is off by {} ulps", op.name(), worst.1, worst.0);
    }
}

#[test]
fn angles_of_any_size_in_f64() {
    // Of all numbers this one is nearest to a multiple of π/2 (Ng, Argument reduction for huge arguments, 1992).
    assert_eq!(unary64(MapOp::cos, &[6381956970095103.0 * 2f64.powi(797)])[0], -4.687165924254628e-19);
    // The library reduces them too.
    let mut xs = vec![f64::MAX, 1e22, 1e300, 2f64.powi(50) + 1.0, 2f64.powi(51) + 0.5];
    xs.extend((0..20_000u64).map(|i| {
        let exponent = 1023 + 48 + i % 976;
        f64::from_bits(exponent << 52 | i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12)
    }));
    for (op, f) in [(MapOp::sin, f64::sin as fn(f64) -> f64), (MapOp::cos, f64::cos), (MapOp::tan, f64::tan)] {
        for (&x, y) in xs.iter().zip(unary64(op, &xs)) {
            let error = ulps(f(x), y, 53, -1022);
            assert!(error <= op.def().ulps + 0.5, "{}({x:e}) = {y:e}, not {:e}: {error} ulps", op.name(), f(x));
        }
        assert!(unary64(op, &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN]).iter().all(|y| y.is_nan()));
    }
}

use super::*;
use half::{bf16, f16};

fn bits_of(lane: Lane) -> Vec<u32> {
    match lane {
        Lane::F32(v) => v.into_iter().map(f32::to_bits).collect(),
        Lane::I16(v) => v.into_iter().map(|x| x as u16 as u32).collect(),
        Lane::U8(v) => v.into_iter().map(u32::from).collect(),
        other => panic!("unexpected {:?}", other.kind()),
    }
}

fn narrow_bits(dtype: DType, xs: &[f32]) -> Vec<u32> {
    let program = to_storage_program(dtype).unwrap();
    program.verify().unwrap();
    bits_of(eval(&program, &[Lane::F32(xs.to_vec())], xs.len()))
}

fn widen_all(dtype: DType) -> Vec<f32> {
    let program = from_storage_program(dtype).unwrap();
    program.verify().unwrap();
    let lane = match storage_kind(dtype) {
        Some(Kind::I16) => Lane::I16((0..=u16::MAX).map(|x| x as i16).collect()),
        _ => Lane::U8((0..=u8::MAX).collect()),
    };
    let n = lane.len();
    match eval(&program, &[lane], n) {
        Lane::F32(v) => v,
        other => panic!("unexpected {:?}", other.kind()),
    }
}

/// f32 numbers of every exponent, with fractions that lie on, just below and just above ties.
fn probes() -> Vec<f32> {
    let mut out = Vec::new();
    for high in (0..=0xffffu32).step_by(7) {
        for low in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x0fff, 0x1000, 0x1001, 0x4321] {
            out.push(f32::from_bits(high << 16 | low));
        }
    }
    for exponent in 0..=255u32 {
        for fraction in (0..1 << 23).step_by(0x8000) {
            for d in [0, 1, 0x7fff] {
                out.push(f32::from_bits(exponent << 23 | fraction | d));
            }
        }
    }
    out
}

#[test]
fn bf16_and_f16_widen_like_half() {
    for (i, x) in widen_all(DType::Bf16).into_iter().enumerate() {
        let want = bf16::from_bits(i as u16).to_f32();
        assert!(x.to_bits() == want.to_bits() || (x.is_nan() && want.is_nan()), "bf16 {i:04x}");
    }
    for (i, x) in widen_all(DType::F16).into_iter().enumerate() {
        let want = f16::from_bits(i as u16).to_f32();
        assert!(x.to_bits() == want.to_bits() || (x.is_nan() && want.is_nan()), "f16 {i:04x}: {x} {want}");
    }
}

#[test]
fn bf16_and_f16_narrow_like_half() {
    let xs = probes();
    for (x, y) in xs.iter().zip(narrow_bits(DType::Bf16, &xs)) {
        let want = if x.is_nan() { 0x7fc0 } else { bf16::from_f32(*x).to_bits() as u32 };
        assert_eq!(y, want, "bf16 of {x:e} ({:08x})", x.to_bits());
    }
    for (x, y) in xs.iter().zip(narrow_bits(DType::F16, &xs)) {
        let want = if x.is_nan() { 0x7e00 } else { f16::from_f32(*x).to_bits() as u32 };
        assert_eq!(y, want, "f16 of {x:e} ({:08x})", x.to_bits());
    }
}

/// The value of an fp8 pattern by the definition of the format.
fn fp8_value(dtype: DType, bits: u8) -> f64 {
    let (fraction_bits, bias) = if dtype == DType::F8E4M3 { (3, 7) } else { (2, 15) };
    let sign = if bits & 0x80 != 0 { -1.0 } else { 1.0 };
    let exponent = ((bits & 0x7f) >> fraction_bits) as i32;
    let fraction = (bits & ((1 << fraction_bits) - 1)) as f64;
    let scale = 2f64.powi(fraction_bits);
    match (dtype, bits & 0x7f) {
        (DType::F8E4M3, 0x7f) => return f64::NAN,
        (DType::F8E5M2, 0x7c) => return sign * f64::INFINITY,
        (DType::F8E5M2, 0x7d..) => return f64::NAN,
        _ => {}
    }
    let value = if exponent == 0 {
        fraction / scale * 2f64.powi(1 - bias)
    } else {
        (1.0 + fraction / scale) * 2f64.powi(exponent - bias)
    };
    sign * value
}

#[test]
fn fp8_widens_by_definition_and_narrows_to_the_nearest() {
    for dtype in [DType::F8E4M3, DType::F8E5M2] {
        let largest = if dtype == DType::F8E4M3 { 448.0 } else { 57344.0 };
        for (i, x) in widen_all(dtype).into_iter().enumerate() {
            let want = fp8_value(dtype, i as u8);
            assert!(x as f64 == want || (x.is_nan() && want.is_nan()), "{dtype} {i:02x}: {x} {want}");
            assert_eq!(x.is_sign_negative(), i >= 0x80, "{dtype} {i:02x}");
        }
        let finite: Vec<(f64, u32)> =
            (0..0x7fu8).map(|b| (fp8_value(dtype, b), b as u32)).filter(|(v, _)| v.is_finite()).collect();
        let xs = probes();
        for (x, y) in xs.iter().zip(narrow_bits(dtype, &xs)) {
            let want = if x.is_nan() {
                0x7f
            } else {
                let a = (x.abs() as f64).min(largest);
                let near = finite.iter().min_by(|p, q| {
                    let (dp, dq) = ((p.0 - a).abs(), (q.0 - a).abs());
                    dp.total_cmp(&dq).then((p.1 & 1).cmp(&(q.1 & 1)))
                });
                near.map_or(0, |n| n.1) | if x.is_sign_negative() { 0x80 } else { 0 }
            };
            assert_eq!(y, want, "{dtype} of {x:e}");
        }
    }
}

#[test]
fn wide_types_round_once() {
    // Just above a tie of bf16, by less than f32 can say.
    let x = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
    assert_eq!(store(DType::Bf16, Scalar::F(x)), bf16::from_bits(0x3f81).to_le_bytes());
    assert_eq!(
        store(DType::F16, Scalar::F(1.0 + 2f64.powi(-11) + 2f64.powi(-45))),
        f16::from_bits(0x3c01).to_le_bytes()
    );
    let i = (1i64 << 62) + (1 << 54) + 1;
    assert_eq!(store(DType::Bf16, Scalar::I(i)), bf16::from_bits(0x5e81).to_le_bytes());
    assert_eq!(store(DType::Bf16, Scalar::I(-i)), bf16::from_bits(0xde81).to_le_bytes());
    assert_eq!(store(DType::Bf16, Scalar::F(1e300)), bf16::INFINITY.to_le_bytes());
    assert_eq!(store(DType::Bf16, Scalar::F(-1e-300)), bf16::NEG_ZERO.to_le_bytes());
    assert_eq!(store(DType::F8E4M3, Scalar::F(f64::NEG_INFINITY)), [0xfe]);
    let mut state = 1u64;
    for _ in 0..20000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // From 2^-15 to 2^15: the last place of f16 is 2^(exponent − 10), at least 2^-24.
        let x = f64::from_bits(0x3f00_0000_0000_0000 + (state >> 12) % (30 << 52));
        let exponent = (x.to_bits() >> 52) as i32 - 1023;
        let place = 2f64.powi((exponent - 10).max(-24));
        let want = f16::from_f32(((x / place).round_ties_even() * place) as f32);
        assert_eq!(store(DType::F16, Scalar::F(x)), want.to_le_bytes(), "{x:e}");
    }
}

#[test]
fn integers_truncate_saturate_and_wrap() {
    let to = |dtype, x| load(dtype, &store(dtype, Scalar::F(x)), 0);
    assert_eq!(to(DType::I32, -2.9), Some(Scalar::I(-2)));
    assert_eq!(to(DType::I8, 1e9), Some(Scalar::I(127)));
    assert_eq!(to(DType::U8, -5.0), Some(Scalar::I(0)));
    assert_eq!(to(DType::I64, f64::NAN), Some(Scalar::I(0)));
    assert_eq!(to(DType::Bool, f64::NAN), Some(Scalar::I(1)));
    assert_eq!(load(DType::I8, &store(DType::I8, Scalar::I(300)), 0), Some(Scalar::I(44)));
    assert_eq!(
        cast(DType::C64, DType::F32, &cast(DType::F32, DType::C64, &1.5f32.to_le_bytes())),
        1.5f32.to_le_bytes()
    );
}

#[test]
fn every_pair_converts() {
    for from in DType::ALL {
        let one = store(from, Scalar::I(1));
        assert_eq!(one.len(), from.bytes(), "{from}");
        for to in DType::ALL {
            assert_eq!(cast(from, to, &one), store(to, Scalar::I(1)), "{from} to {to}");
            if let Some(program) = convert_program(from, to) {
                program.verify().unwrap_or_else(|e| panic!("{from} to {to}: {e}"));
            }
        }
    }
}

#[test]
fn tf32_keeps_ten_bits() {
    let program = tf32_program();
    program.verify().unwrap();
    let one = 1.0f32;
    let step = 2f32.powi(-10);
    let xs = vec![one, one + step, one + step * 0.5, one + step * 1.5, one + step * 0.51, f32::INFINITY, -0.0];
    let n = xs.len();
    let want = vec![one, one + step, one, one + step * 2.0, one + step, f32::INFINITY, -0.0];
    assert_eq!(eval(&program, &[Lane::F32(xs)], n), Lane::F32(want));
}

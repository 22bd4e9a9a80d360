//! Conversions against values found in another way: the small formats exhaustively.

mod common;

use common::*;
use half::{bf16, f16};

const THREADS: u32 = 256;

/// Converts all values by `instruction`, from `$a` in `%r1` (or `%h1`, `%d11`) to the register of the result.
fn convert(instruction: &str, from: u32, to: u32, values: &[u64]) -> Vec<u64> {
    let reg = |bits: u32, n: u32| match bits {
        8 | 16 => format!("%h{n}"),
        32 => format!("%r{n}"),
        _ => format!("%d{}", n + 10),
    };
    let mut text = addresses(&[8, 8]);
    text += "mov.u64 %d20, 0;\n";
    text += &format!("ld.global.b{from} {}, [%d1];\n", reg(from, 1));
    text += &instruction.replace("$d", &reg(to, 4)).replace("$a", &reg(from, 1));
    text += &format!("\nst.global.u64 [%d0], %d20;\nst.global.b{to} [%d0], {};\n", reg(to, 4));
    let mut input = values.to_vec();
    input.resize(values.len().next_multiple_of(THREADS as usize), 0);
    let mut result = Buffer::poisoned(8 * input.len());
    let mut source = Buffer::u64s(&input);
    let run = Run { grid: [input.len() as u32 / THREADS, 1, 1], ..Run::threads(THREADS) };
    run.go(&kernel(2, &text), &mut [&mut result, &mut source]).unwrap_or_else(|e| panic!("{instruction}: {e}"));
    result.to_u64s()[..values.len()].to_vec()
}

fn same(instruction: &str, from: u32, to: u32, values: &[u64], want: impl Fn(u64) -> u64) {
    for (value, got) in values.iter().zip(convert(instruction, from, to, values)) {
        let want = want(*value);
        assert_eq!(got, want, "{instruction} of {value:#x}: {got:#x} not {want:#x}");
    }
}

fn all16() -> Vec<u64> {
    (0..0x1_0000).collect()
}

fn floats() -> Vec<u64> {
    let mut random = Random(99);
    let mut values: Vec<u64> = (0..4000).map(|_| random.next() & 0xFFFF_FFFF).collect();
    values.extend((0..4000).map(|_| u64::from((random.unit() * 70_000.0).to_bits())));
    values.extend((0..4000).map(|_| u64::from((random.unit() * 3.0e-7).to_bits())));
    values.extend((0..2000).map(|_| u64::from((random.unit() * 3.0e9).to_bits())));
    // Ties, the ends of f16 and of integers.
    let ends = [
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        65504.0,
        65519.99,
        65520.0,
        65536.0,
        2147483648.0,
        -2147483648.0,
        f32::INFINITY,
    ];
    values.extend(ends.iter().map(|v: &f32| u64::from(v.to_bits())));
    values.extend((0..2048).map(|n| u64::from((n as f32 * 0.5 + 2048.0).to_bits())));
    values
}

fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

#[test]
fn small_formats_to_f32() {
    let canonical = |v: f32| if v.is_nan() { 0x7FFF_FFFF } else { u64::from(v.to_bits()) };
    same("cvt.f32.f16 $d, $a;", 16, 32, &all16(), |v| canonical(f16::from_bits(v as u16).to_f32()));
    for (value, got) in all16().iter().zip(convert("cvt.f32.bf16 $d, $a;", 16, 32, &all16())) {
        assert_eq!(got, value << 16);
    }
}

#[test]
fn f32_to_small_formats() {
    let canonical = |v: u16, nan: bool| if nan { 0x7FFF } else { u64::from(v) };
    same("cvt.rn.f16.f32 $d, $a;", 32, 16, &floats(), |v| canonical(f16::from_f32(f(v)).to_bits(), f(v).is_nan()));
    same("cvt.rn.bf16.f32 $d, $a;", 32, 16, &floats(), |v| canonical(bf16::from_f32(f(v)).to_bits(), f(v).is_nan()));
    // Toward zero cuts bits off, and never reaches infinity.
    same("cvt.rz.bf16.f32 $d, $a;", 32, 16, &floats(), |v| canonical((v >> 16) as u16, f(v).is_nan()));
    same("cvt.rn.relu.bf16.f32 $d, $a;", 32, 16, &floats(), |v| {
        canonical(if f(v) < 0.0 || v == 1 << 31 { 0 } else { bf16::from_f32(f(v)).to_bits() }, f(v).is_nan())
    });
    let directed = |v: u64, up: bool| {
        // The neighbour of the nearest that lies on the right side.
        let near = f16::from_f32(f(v));
        let wrong = if up { near.to_f32() < f(v) } else { near.to_f32() > f(v) };
        if !wrong {
            return near.to_bits();
        }
        let bits = near.to_bits();
        let away = up != near.is_sign_negative();
        match (bits & 0x7FFF, away) {
            (0, _) => {
                if up {
                    1
                } else {
                    0x8001
                }
            }
            (_, true) => bits + 1,
            (_, false) => bits - 1,
        }
    };
    let finite: Vec<u64> = floats().into_iter().filter(|v| f(*v).abs() < 65000.0).collect();
    same("cvt.rp.f16.f32 $d, $a;", 32, 16, &finite, |v| directed(v, true).into());
    same("cvt.rm.f16.f32 $d, $a;", 32, 16, &finite, |v| directed(v, false).into());
}

#[test]
fn pairs() {
    let values = floats();
    let text = "add.f32 %r2, $a, 0f3F800000; cvt.rn.f16x2.f32 $d, $a, %r2;";
    same(text, 32, 32, &values, |v| {
        let half = |x: f32| if x.is_nan() { 0x7FFF } else { u64::from(f16::from_f32(x).to_bits()) };
        half(f(v)) << 16 | half(f(v) + 1.0)
    });
    let text = "mov.u32 %r2, 0; cvt.rn.bf16x2.f32 $d, $a, %r2;";
    same(text, 32, 32, &values, |v| {
        if f(v).is_nan() { 0x7FFF_0000 } else { u64::from(bf16::from_f32(f(v)).to_bits()) << 16 }
    });
}

/// Every encoding of an 8-bit format by the definition: exponent and fraction.
fn eight(code: u64, exponent_bits: u32) -> f32 {
    let fraction_bits = 7 - exponent_bits;
    let bias = (1 << (exponent_bits - 1)) - 1;
    let (exponent, fraction) =
        ((code >> fraction_bits & ((1 << exponent_bits) - 1)) as i32, code & ((1 << fraction_bits) - 1));
    let magnitude = match exponent {
        0 => fraction as f32 * 2f32.powi(1 - bias - fraction_bits as i32),
        _ => (1.0 + fraction as f32 / (1 << fraction_bits) as f32) * 2f32.powi(exponent - bias),
    };
    if code & 0x80 != 0 { -magnitude } else { magnitude }
}

#[test]
fn eight_bits() {
    for (name, exponent, largest) in [("e4m3x2", 4, 0x7Eu64), ("e5m2x2", 5, 0x7B)] {
        let values: Vec<u64> = floats().into_iter().filter(|v| !f(*v).is_nan()).collect();
        let text = format!("mov.u32 %r2, 0; cvt.rn.satfinite.{name}.f32 $d, $a, %r2;");
        same(&text, 32, 16, &values, |v| {
            // The nearest of all, an even one of two, and the largest of what is beyond.
            let size = f(v).abs().min(1.0e6);
            let distance = |code: u64| (f64::from(eight(code, exponent)) - f64::from(size)).abs();
            let best = (0..=largest).min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1))));
            let best = best.unwrap_or(0);
            (best | u64::from(f(v).is_sign_negative()) << 7) << 8
        });
        let codes: Vec<u64> = (0..256).filter(|c| c & 0x7F <= largest).map(|c| c | c << 8).collect();
        let text = format!("cvt.rn.f16x2.{name} $d, $a;");
        same(&text, 16, 32, &codes, |v| {
            let half = u64::from(f16::from_f32(eight(v & 0xFF, exponent)).to_bits());
            half | half << 16
        });
    }
}

#[test]
fn floats_to_integers_and_back() {
    let values = floats();
    same("cvt.rzi.s32.f32 $d, $a;", 32, 32, &values, |v| u64::from(f(v) as i32 as u32));
    same("cvt.rzi.u32.f32 $d, $a;", 32, 32, &values, |v| u64::from(f(v) as u32));
    same("cvt.rzi.s64.f32 $d, $a;", 32, 64, &values, |v| f(v) as i64 as u64);
    same("cvt.rni.s32.f32 $d, $a;", 32, 32, &values, |v| u64::from(f(v).round_ties_even() as i32 as u32));
    same("cvt.rmi.s32.f32 $d, $a;", 32, 32, &values, |v| u64::from(f(v).floor() as i32 as u32));
    same("cvt.rpi.u32.f32 $d, $a;", 32, 32, &values, |v| u64::from(f(v).ceil() as u32));
    same("cvt.rzi.s16.f32 %h4, $a; cvt.s32.s16 $d, %h4;", 32, 32, &values, |v| u64::from(f(v) as i16 as i32 as u32));
    let whole = |v: f32| if v.is_nan() { 0x7FFF_FFFF } else { u64::from(v.to_bits()) };
    same("cvt.rpi.f32.f32 $d, $a;", 32, 32, &values, |v| whole(f(v).ceil()));
    same("cvt.rni.f32.f32 $d, $a;", 32, 32, &values, |v| whole(f(v).round_ties_even()));
    same("cvt.sat.f32.f32 $d, $a;", 32, 32, &values, |v| if f(v) > 0.0 { whole(f(v).min(1.0)) } else { 0 });
    same("cvt.f64.f32 $d, $a;", 32, 64, &values, |v| {
        if f(v).is_nan() { 0x7FFF_FFFF_FFFF_FFFF } else { f64::from(f(v)).to_bits() }
    });
    let mut random = Random(5);
    let integers: Vec<u64> = (0..4000).map(|_| random.integer()).collect();
    same("cvt.rn.f32.s64 $d, $a;", 64, 32, &integers, |v| u64::from((v as i64 as f32).to_bits()));
    same("cvt.rn.f32.u64 $d, $a;", 64, 32, &integers, |v| u64::from((v as f32).to_bits()));
    same("cvt.rn.f64.u64 $d, $a;", 64, 64, &integers, |v| (v as f64).to_bits());
    same("cvt.rn.f32.s32 $d, $a;", 32, 32, &integers, |v| u64::from((v as i32 as f32).to_bits()));
    same("cvt.rz.f32.u32 $d, $a;", 32, 32, &integers, |v| {
        let near = v as u32 as f32;
        u64::from(if f64::from(near) > f64::from(v as u32) { near.next_down() } else { near }.to_bits())
    });
    let doubles: Vec<u64> = values.iter().map(|v| (f64::from(f(*v)) * 1.000_000_1).to_bits()).collect();
    same("cvt.rn.f32.f64 $d, $a;", 64, 32, &doubles, |v| whole(f64::from_bits(v) as f32));
}

#[test]
fn integers() {
    let mut random = Random(6);
    let integers: Vec<u64> = (0..4000).map(|_| random.integer()).collect();
    same("cvt.s32.s8 $d, $a;", 32, 32, &integers, |v| u64::from(v as i8 as i32 as u32));
    same("cvt.s8.s32 $d, $a;", 32, 32, &integers, |v| u64::from(v as i8 as i32 as u32));
    same("cvt.u16.u32 $d, $a;", 32, 16, &integers, |v| v & 0xFFFF);
    same("cvt.s64.s16 $d, $a;", 16, 64, &integers, |v| v as i16 as i64 as u64);
    same("cvt.u64.u32 $d, $a;", 32, 64, &integers, |v| v & 0xFFFF_FFFF);
    same("cvt.u32.u64 $d, $a;", 64, 32, &integers, |v| v & 0xFFFF_FFFF);
    same("cvt.sat.s16.s32 %h4, $a; cvt.s32.s16 $d, %h4;", 32, 32, &integers, |v| {
        u64::from((v as i32).clamp(-32768, 32767) as u32)
    });
    same("cvt.sat.u8.s32 $d, $a;", 32, 32, &integers, |v| (v as i32).clamp(0, 255) as u64);
}

//! bf16, f16 and fp8 as integer arithmetic on the bits of F32.

use crate::scalar::{Cmp, IntOp, Kind, Program, Val, Writer};
use tessera_base::DType;

/// A binary format of at most 16 bits below F32.
struct Format {
    /// Bits of the fraction.
    fraction: i64,
    /// Exponent bias.
    bias: i64,
    /// The kind of the bits.
    kind: Kind,
    /// The largest finite number, where overflow saturates.
    saturate: Option<f64>,
    /// The bits of NaN that conversions make.
    nan: i64,
    /// Whether the largest exponent means infinities and NaN (e4m3 has one NaN pattern instead).
    ieee: bool,
}

const fn format(dtype: DType) -> Option<Format> {
    Some(match dtype {
        DType::Bf16 => Format { fraction: 7, bias: 127, kind: Kind::I16, saturate: None, nan: 0x7fc0, ieee: true },
        DType::F16 => Format { fraction: 10, bias: 15, kind: Kind::I16, saturate: None, nan: 0x7e00, ieee: true },
        DType::F8E4M3 => Format { fraction: 3, bias: 7, kind: Kind::U8, saturate: Some(448.0), nan: 0x7f, ieee: false },
        DType::F8E5M2 => {
            Format { fraction: 2, bias: 15, kind: Kind::U8, saturate: Some(57344.0), nan: 0x7f, ieee: true }
        }
        _ => return None,
    })
}

/// F32 to the bits of bf16, f16 (as I16) or fp8 (as U8), rounded to nearest even; `None` for
/// other types.
///
/// With `u` the bits of |x| (saturated first, for fp8), `d` the fraction bits to drop and `b`
/// the difference of the biases: a normal result is `(u − (b << 23) + (2^(d−1) − 1) + (u >> d &
/// 1)) >> d`, where a carry into the exponent, and from there to infinity, is what it should be.
/// A subnormal result is what is left of the bits of `|x| + M` after those of `M` are
/// subtracted, where the last place of the power of two `M` is the smallest subnormal: the
/// addition rounds.
pub fn to_storage_program(dtype: DType) -> Option<Program> {
    format(dtype)?;
    let mut w = Writer::default();
    let x = w.arg(0, Kind::F32);
    let y = narrow(&mut w, dtype, x);
    Some(w.finish(y))
}

/// The bits of bf16, f16 or fp8 to F32, exactly; `None` for other types.
///
/// The fraction and exponent are moved to their place in F32 and the number is multiplied by
/// the power of two between the biases, which also normalises subnormal numbers.
pub fn from_storage_program(dtype: DType) -> Option<Program> {
    let format = format(dtype)?;
    let mut w = Writer::default();
    let bits = w.arg(0, format.kind);
    let y = widen(&mut w, dtype, bits);
    Some(w.finish(y))
}

/// F32 rounded to the 10 fraction bits of tf32, nearest even; infinities and NaN stay.
pub fn tf32_program() -> Program {
    let mut w = Writer::default();
    let x = w.arg(0, Kind::F32);
    let bits = w.to_bits(x);
    let rounded = round_off(&mut w, bits, 13, 0);
    let short = w.int_c(IntOp::And, rounded, !0x1fff);
    let y = w.bits(short, Kind::F32);
    let size = w.abs(x);
    let finite = w.cmp_c(Cmp::Lt, size, f64::INFINITY);
    let y = w.select(finite, y, x);
    w.finish(y)
}

/// `u + offset + (2^(drop−1) − 1) + (u >> drop & 1)`: a shift by `drop` then truncates to the
/// nearest, ties to even.
fn round_off(w: &mut Writer, u: Val, drop: i64, offset: i64) -> Val {
    let last = w.int_c(IntOp::Shr, u, drop);
    let odd = w.int_c(IntOp::And, last, 1);
    let sum = w.int_c(IntOp::Add, u, offset + (1 << (drop - 1)) - 1);
    w.int(IntOp::Add, sum, odd)
}

pub(super) fn narrow(w: &mut Writer, dtype: DType, x: Val) -> Val {
    let Some(f) = format(dtype) else { return x };
    let drop = 23 - f.fraction;
    let size = w.abs(x);
    let a = match f.saturate {
        Some(largest) => w.at_most(size, largest),
        None => size,
    };
    let u = w.to_bits(a);
    let shifted = round_off(w, u, drop, (f.bias - 127) << 23);
    let mut y = w.int_c(IntOp::Shr, shifted, drop);
    if f.bias != 127 {
        // The smallest subnormal is 2^(1 − bias − fraction), the smallest normal 2^(1 − bias).
        let magic = w.f(2f64.powi((24 - f.bias - f.fraction) as i32), a);
        let sum = w.add(a, magic);
        let (sum, origin) = (w.to_bits(sum), w.to_bits(magic));
        let subnormal = w.int(IntOp::Sub, sum, origin);
        let small = w.cmp_c(Cmp::Lt, a, 2f64.powi((1 - f.bias) as i32));
        y = w.select(small, subnormal, y);
        if f.saturate.is_none() {
            // What is 2^(bias + 1) or more has left the range in which the carry stops.
            let infinity = w.i(f.infinity(), Kind::I32);
            let large = w.cmp_c(Cmp::Ge, a, 2f64.powi((f.bias + 1) as i32));
            y = w.select(large, infinity, y);
        }
    }
    let sign = w.sign_bit(x);
    let sign = w.int_c(IntOp::Shr, sign, 32 - f.kind.bits() as i64);
    let sign = w.int_c(IntOp::And, sign, 1 << (f.kind.bits() - 1));
    let y = w.int(IntOp::Or, y, sign);
    let nan = w.i(f.nan, Kind::I32);
    let unordered = w.is_nan(x);
    let y = w.select(unordered, nan, y);
    w.convert(y, f.kind)
}

/// F32 values that are rounded to e5m2 already, to its bits; infinities stay.
pub(super) fn keep_e5m2(w: &mut Writer, x: Val) -> Val {
    let finite = narrow(w, DType::F8E5M2, x);
    let (size, sign) = (w.abs(x), w.sign_bit(x));
    let sign = w.int_c(IntOp::Shr, sign, 24);
    let sign = w.int_c(IntOp::And, sign, 0x80);
    let infinity = w.int_c(IntOp::Or, sign, 0x7c);
    let infinity = w.convert(infinity, Kind::U8);
    let infinite = w.cmp_c(Cmp::Eq, size, f64::INFINITY);
    w.select(infinite, infinity, finite)
}

pub(super) fn widen(w: &mut Writer, dtype: DType, bits: Val) -> Val {
    let Some(f) = format(dtype) else { return bits };
    let width = f.kind.bits() as i64;
    let v = w.convert(bits, Kind::I32);
    if f.bias == 127 {
        let v = w.int_c(IntOp::Shl, v, 16);
        return w.bits(v, Kind::F32);
    }
    let size = w.int_c(IntOp::And, v, (1 << (width - 1)) - 1);
    let placed = w.int_c(IntOp::Shl, size, 23 - f.fraction);
    let small = w.bits(placed, Kind::F32);
    let y = w.mul_c(small, 2f64.powi((127 - f.bias) as i32));
    let y = w.to_bits(y);
    let special = w.int_c(IntOp::Or, placed, 0x7f80_0000);
    // e4m3 keeps its largest exponent for numbers, but for one pattern.
    let first = if f.ieee { f.infinity() } else { f.nan };
    let is_special = w.cmp_c(Cmp::Ge, size, first as f64);
    let y = w.select(is_special, special, y);
    let sign = w.int_c(IntOp::And, v, 1 << (width - 1));
    let sign = w.int_c(IntOp::Shl, sign, 32 - width);
    let y = w.int(IntOp::Or, y, sign);
    w.bits(y, Kind::F32)
}

impl Format {
    /// The bits of +∞ in a format that has it.
    fn infinity(&self) -> i64 {
        let bits = self.kind.bits() as i64 - 1;
        ((1 << (bits - self.fraction)) - 1) << self.fraction
    }
}

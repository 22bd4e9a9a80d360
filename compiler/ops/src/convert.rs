//! Conversions between element types: one meaning, as scalar programs.
//!
//! | from → to | meaning |
//! |---|---|
//! | float → float | nearest, ties to even; a single rounding, also from f64 and i64 to 16 and 8 bits |
//! | float → fp8 | the same, then saturated: what is too large, infinities too, becomes ±448 (e4m3) or ±57344 (e5m2) |
//! | float → bf16, f16 | the same; too large becomes an infinity |
//! | float → integer | truncated towards zero, saturated; NaN gives 0 |
//! | integer → float | nearest, ties to even |
//! | integer → integer | the low bits |
//! | anything → bool | `!= 0`, so NaN is true |
//! | bool → anything | 0 or 1 |
//! | NaN → narrow float | one pattern each: bf16 7fc0, f16 7e00, fp8 7f |
//! | real → c64 | imaginary part 0; back: the real part (for bool: either part is not 0) |
//!
//! tf32 is stored as f32 and converts like it; only products round to its 10 fraction bits
//! ([`tf32_program`]). Memory is little-endian; bool is one byte, 0 or 1.

mod narrow;

pub use narrow::{from_storage_program, tf32_program, to_storage_program};

use crate::map::kind_of;
use crate::prim::Scalar;
use crate::scalar::{Cmp, IntOp, Kind, Program, Val, Writer};
use crate::scalar_eval::{Lane, eval};
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use tessera_base::DType;

/// The kind that holds an element as it lies in memory: narrow floats are bits in `I16` or
/// `U8`. `None` for c64.
pub fn storage_kind(dtype: DType) -> Option<Kind> {
    match dtype {
        DType::Bf16 | DType::F16 => Some(Kind::I16),
        DType::F8E4M3 | DType::F8E5M2 => Some(Kind::U8),
        _ => kind_of(dtype),
    }
}

/// Narrow floats, whose storage is not a float kind.
fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::Bf16 | DType::F16 | DType::F8E4M3 | DType::F8E5M2)
}

/// The conversion of one element, from [`storage_kind`] to [`storage_kind`]; `None` where
/// either type is c64. Written once and kept.
pub fn convert_program(from: DType, to: DType) -> Option<&'static Program> {
    let result = storage_kind(to)?;
    compose(Step::Store(from), Step::Store(to), storage_kind(from)?, result)
}

/// From [`storage_kind`] to the kind in which the type computes.
pub fn widen_program(dtype: DType) -> Option<&'static Program> {
    compose(Step::Store(dtype), Step::Compute(dtype), storage_kind(dtype)?, kind_of(dtype)?)
}

/// From a kind to [`storage_kind`] of a type, with the rounding of the table above.
pub fn narrow_program(kind: Kind, to: DType) -> Option<&'static Program> {
    compose(Step::Kind(kind), Step::Store(to), kind, storage_kind(to)?)
}

/// From the kind in which a type computes to [`storage_kind`], for values that are rounded to
/// the type already. An infinity of e5m2 stays one, so that elements which are only moved keep
/// their value; rounding would saturate it.
pub fn store_program(dtype: DType) -> Option<&'static Program> {
    static KEEP: OnceLock<Program> = OnceLock::new();
    if dtype != DType::F8E5M2 {
        return narrow_program(kind_of(dtype)?, dtype);
    }
    Some(KEEP.get_or_init(|| {
        let mut w = Writer::default();
        let x = w.arg(0, Kind::F32);
        let y = narrow::keep_e5m2(&mut w, x);
        w.finish(y)
    }))
}

/// An end of a conversion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// An element as stored.
    Store(DType),
    /// An element in its compute kind.
    Compute(DType),
    Kind(Kind),
}

fn compose(from: Step, to: Step, first: Kind, last: Kind) -> Option<&'static Program> {
    static KNOWN: OnceLock<Mutex<BTreeMap<(Step, Step), &'static Program>>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    Some(known.entry((from, to)).or_insert_with(|| {
        let mut w = Writer::default();
        let mut v = w.arg(0, first);
        let same = from == to;
        if let (Step::Store(dtype), false) = (from, same)
            && is_narrow(dtype)
        {
            v = narrow::widen(&mut w, dtype, v);
        }
        v = match to {
            Step::Store(dtype) if is_narrow(dtype) && !same => {
                let v = to_f32_odd(&mut w, v);
                narrow::narrow(&mut w, dtype, v)
            }
            _ => w.convert(v, last),
        };
        Box::leak(Box::new(w.finish(v)))
    }))
}

/// A value of any kind as F32, rounded *to odd*: what is not exact gets an odd last bit, so
/// that a later rounding to at most 22 bits gives what rounding at once would have given
/// (Boldo and Melquiond, IEEE Trans. Computers 57, 2008).
fn to_f32_odd(w: &mut Writer, v: Val) -> Val {
    match w.kind(v) {
        Kind::F32 => v,
        Kind::F64 => f64_to_odd(w, v),
        Kind::I64 => {
            // Beyond 2⁵³ the low 11 bits count only in that they are not all 0.
            let low = w.int_c(IntOp::And, v, 0x7ff);
            let high = w.int(IntOp::Xor, v, low);
            let lost = w.cmp_c(Cmp::Ne, low, 0.0);
            let (odd, zero) = (w.i(0x800, Kind::I64), w.i(0, Kind::I64));
            let sticky = w.select(lost, odd, zero);
            let short = w.int(IntOp::Or, high, sticky);
            let below = w.i(1 << 53, Kind::I64);
            let above = w.i(-(1 << 53), Kind::I64);
            let small = w.cmp(Cmp::Lt, v, below);
            let not_low = w.cmp(Cmp::Gt, v, above);
            let exact = w.both(small, not_low);
            let v = w.select(exact, v, short);
            let v = w.convert(v, Kind::F64);
            f64_to_odd(w, v)
        }
        Kind::I32 => {
            let v = w.convert(v, Kind::F64);
            f64_to_odd(w, v)
        }
        _ => w.convert(v, Kind::F32),
    }
}

fn f64_to_odd(w: &mut Writer, v: Val) -> Val {
    let nearest = w.convert(v, Kind::F32);
    let back = w.convert(nearest, Kind::F64);
    let inexact = w.cmp(Cmp::Ne, back, v);
    let (size, back_size) = (w.abs(v), w.abs(back));
    let over = w.cmp(Cmp::Gt, back_size, size);
    let bits = w.to_bits(nearest);
    let less = w.int_c(IntOp::Sub, bits, 1);
    let truncated = w.select(over, less, bits);
    let odd = w.int_c(IntOp::Or, truncated, 1);
    let bits = w.select(inexact, odd, bits);
    w.bits(bits, Kind::F32)
}

/// Elements of a real type in memory as their compute kind. Empty for c64.
pub fn widen(dtype: DType, bytes: &[u8]) -> Lane {
    match (storage_kind(dtype), widen_program(dtype)) {
        (Some(stored), Some(program)) => {
            let lane = Lane::from_bytes(stored, bytes);
            if is_narrow(dtype) { run(program, lane) } else { lane }
        }
        _ => Lane::zeros(Kind::Bool, 0),
    }
}

/// Values of any kind as elements of a real type in memory. Empty for c64.
pub fn narrow(dtype: DType, lane: &Lane) -> Vec<u8> {
    if !is_narrow(dtype) && kind_of(dtype) == Some(lane.kind()) {
        return lane.to_bytes();
    }
    match narrow_program(lane.kind(), dtype) {
        Some(program) => eval(program, std::slice::from_ref(lane), lane.len()).to_bytes(),
        None => Vec::new(),
    }
}

/// The same for values that are elements of the type already, as [`store_program`].
pub fn keep(dtype: DType, lane: &Lane) -> Vec<u8> {
    match store_program(dtype) {
        Some(program) if is_narrow(dtype) => eval(program, std::slice::from_ref(lane), lane.len()).to_bytes(),
        _ => narrow(dtype, lane),
    }
}

/// An f32 rounded to f16, nearest even.
pub fn round_f16(x: f32) -> f32 {
    let size = x.abs();
    let rounded = if size < 6.103_515_6e-5 {
        // Below the normal numbers the addition rounds: 0.5 has its last place at 2^-24.
        (size + 0.5) - 0.5
    } else {
        let bits = size.to_bits();
        f32::from_bits((bits + 0xfff + (bits >> 13 & 1)) & !0x1fff)
    };
    match () {
        _ if x.is_nan() => f32::NAN,
        _ if rounded >= 65536.0 => f32::INFINITY.copysign(x),
        _ => rounded.copysign(x),
    }
}

fn run(program: &Program, lane: Lane) -> Lane {
    let n = lane.len();
    eval(program, &[lane], n)
}

/// Converts every element.
pub fn cast(from: DType, to: DType, bytes: &[u8]) -> Vec<u8> {
    match (from, to) {
        _ if from == to => bytes.to_vec(),
        (DType::C64, DType::Bool) => bytes.as_chunks::<8>().0.iter().map(|&b| complex_is_true(b) as u8).collect(),
        (DType::C64, _) => {
            let real: Vec<u8> = bytes.as_chunks::<8>().0.iter().flat_map(|b| &b[..4]).copied().collect();
            cast(DType::F32, to, &real)
        }
        (_, DType::C64) => {
            let real = cast(from, DType::F32, bytes);
            real.as_chunks::<4>().0.iter().flat_map(|r| r.iter().copied().chain([0; 4])).collect()
        }
        _ => match (storage_kind(from), convert_program(from, to)) {
            (Some(stored), Some(program)) => run(program, Lane::from_bytes(stored, bytes)).to_bytes(),
            _ => Vec::new(),
        },
    }
}

fn complex_is_true(b: [u8; 8]) -> bool {
    let part = |at: usize| f32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
    part(0) != 0.0 || part(4) != 0.0
}

/// Element `i`: floats as `F` (exact), integers and bool as `I`, of c64 the real part. `None`
/// past the end.
pub fn load(dtype: DType, bytes: &[u8], i: usize) -> Option<Scalar> {
    let size = dtype.bytes();
    let at = i.checked_mul(size)?;
    let element = bytes.get(at..at.checked_add(size)?)?;
    let wide = if dtype.is_float() || dtype.is_complex() { DType::F64 } else { DType::I64 };
    let word: [u8; 8] = cast(dtype, wide, element).try_into().ok()?;
    Some(if wide == DType::F64 { Scalar::F(f64::from_le_bytes(word)) } else { Scalar::I(i64::from_le_bytes(word)) })
}

/// The bytes of one element with the value converted as by [`cast`] from f64 or i64.
pub fn store(dtype: DType, value: Scalar) -> Vec<u8> {
    match value {
        Scalar::F(x) => cast(DType::F64, dtype, &x.to_le_bytes()),
        Scalar::I(x) => cast(DType::I64, dtype, &x.to_le_bytes()),
    }
}

#[cfg(test)]
mod tests;

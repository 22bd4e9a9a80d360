//! Floating point arithmetic. The small formats compute in f64 and round once; for a fused multiply-add of f16 that is
//! one rounding of the sum in f64 more, which a model may have.

use super::round::{Format, Round};

fn flush(value: f32) -> f32 {
    if value.is_subnormal() { 0f32.copysign(value) } else { value }
}

fn get_f32(value: u64) -> f32 {
    f32::from_bits(value as u32)
}
/// NaNs of arithmetic are the canonical one.
fn put_f32(value: f32) -> u64 {
    if value.is_nan() { 0x7FFF_FFFF } else { u64::from(value.to_bits()) }
}
fn get_f32_ftz(value: u64) -> f32 {
    flush(get_f32(value))
}
fn put_f32_ftz(value: f32) -> u64 {
    put_f32(flush(value))
}
fn get_f64(value: u64) -> f64 {
    f64::from_bits(value)
}
fn put_f64(value: f64) -> u64 {
    if value.is_nan() { 0x7FFF_FFFF_FFFF_FFFF } else { value.to_bits() }
}
fn get_f16(value: u64) -> f64 {
    half::f16::from_bits(value as u16).to_f64()
}
fn put_f16(value: f64) -> u64 {
    Format::F16.encode_f64(value, Round::Nearest, false)
}
fn get_bf16(value: u64) -> f64 {
    f64::from(f32::from_bits((value as u32) << 16))
}
fn put_bf16(value: f64) -> u64 {
    Format::BF16.encode_f64(value, Round::Nearest, false)
}

/// Sums of f32 of which the first terms or factors are of 16 bits.
pub mod mixed {
    macro_rules! mixed {
        ($($name:ident, $get:path;)*) => { $(
            pub mod $name {
                use super::super::put_f32;
                fn get(value: u64) -> f32 { $get(value) as f32 }
                fn f32_of(value: u64) -> f32 { f32::from_bits(value as u32) }
                pub fn add(a: u64, c: u64) -> u64 { put_f32(get(a) + f32_of(c)) }
                pub fn sub(a: u64, c: u64) -> u64 { put_f32(get(a) - f32_of(c)) }
                pub fn fma(a: u64, b: u64, c: u64) -> u64 { put_f32(get(a).mul_add(get(b), f32_of(c))) }
            }
        )* };
    }

    mixed! {
        f16, super::super::get_f16;
        bf16, super::super::get_bf16;
    }
}

macro_rules! floats {
    ($($name:ident, $t:ident, $get:path, $put:path, $sign:expr;)*) => { $(
        pub mod $name {
            const SIGN: u64 = $sign;
            fn get(value: u64) -> std::primitive::$t { $get(value) }
            fn put(value: std::primitive::$t) -> u64 { $put(value) }
            pub fn add(a: u64, b: u64) -> u64 { put(get(a) + get(b)) }
            pub fn sub(a: u64, b: u64) -> u64 { put(get(a) - get(b)) }
            pub fn mul(a: u64, b: u64) -> u64 { put(get(a) * get(b)) }
            pub fn div(a: u64, b: u64) -> u64 { put(get(a) / get(b)) }
            pub fn fma(a: u64, b: u64, c: u64) -> u64 { put(get(a).mul_add(get(b), get(c))) }
            pub fn fma_relu(a: u64, b: u64, c: u64) -> u64 { relu(fma(a, b, c)) }
            pub fn relu(a: u64) -> u64 { if get(a) < 0.0 || a == SIGN { 0 } else { a } }
            pub fn sqrt(a: u64) -> u64 { put(get(a).sqrt()) }
            pub fn rcp(a: u64) -> u64 { put(1.0 / get(a)) }
            pub fn rsqrt(a: u64) -> u64 { put(1.0 / get(a).sqrt()) }
            pub fn ex2(a: u64) -> u64 { put(get(a).exp2()) }
            pub fn lg2(a: u64) -> u64 { put(get(a).log2()) }
            pub fn sin(a: u64) -> u64 { put(get(a).sin()) }
            pub fn cos(a: u64) -> u64 { put(get(a).cos()) }
            pub fn tanh(a: u64) -> u64 { put(get(a).tanh()) }
            /// Bits, not numbers: a NaN keeps what it has.
            pub fn neg(a: u64) -> u64 { if get(a).is_nan() { a ^ SIGN } else { put(get(a)) ^ SIGN } }
            pub fn abs(a: u64) -> u64 { neg(a) & !SIGN & (SIGN | (SIGN - 1)) }
            /// The sign of a, the rest of b.
            pub fn copysign(a: u64, b: u64) -> u64 { a & SIGN | b & (SIGN - 1) }
            fn less(a: u64, b: u64) -> bool {
                get(a) < get(b) || get(a) == get(b) && a & SIGN > b & SIGN
            }
            /// The number wins over a NaN; -0 is below +0.
            pub fn min(a: u64, b: u64) -> u64 {
                match (get(a).is_nan(), get(b).is_nan()) {
                    (true, _) => put(get(b)),
                    (_, true) => put(get(a)),
                    _ => put(get(if less(b, a) { b } else { a })),
                }
            }
            pub fn max(a: u64, b: u64) -> u64 {
                match (get(a).is_nan(), get(b).is_nan()) {
                    (true, _) => put(get(b)),
                    (_, true) => put(get(a)),
                    _ => put(get(if less(a, b) { b } else { a })),
                }
            }
            fn any_nan(a: u64, b: u64) -> bool { get(a).is_nan() || get(b).is_nan() }
            pub fn min_nan(a: u64, b: u64) -> u64 { if any_nan(a, b) { put(get(a) + get(b)) } else { min(a, b) } }
            pub fn max_nan(a: u64, b: u64) -> u64 { if any_nan(a, b) { put(get(a) + get(b)) } else { max(a, b) } }
            /// To [0, 1]; NaN gives 0.
            pub fn sat(a: u64) -> u64 { put(if get(a) > 0.0 { get(a).min(1.0) } else { 0.0 }) }
            pub fn eq(a: u64, b: u64) -> u64 { (get(a) == get(b)) as u64 }
            pub fn ne(a: u64, b: u64) -> u64 { (get(a) != get(b) && !any_nan(a, b)) as u64 }
            pub fn lt(a: u64, b: u64) -> u64 { (get(a) < get(b)) as u64 }
            pub fn le(a: u64, b: u64) -> u64 { (get(a) <= get(b)) as u64 }
            pub fn gt(a: u64, b: u64) -> u64 { (get(a) > get(b)) as u64 }
            pub fn ge(a: u64, b: u64) -> u64 { (get(a) >= get(b)) as u64 }
            pub fn equ(a: u64, b: u64) -> u64 { (get(a) == get(b) || any_nan(a, b)) as u64 }
            pub fn neu(a: u64, b: u64) -> u64 { (get(a) != get(b)) as u64 }
            pub fn ltu(a: u64, b: u64) -> u64 { (get(a) < get(b) || any_nan(a, b)) as u64 }
            pub fn leu(a: u64, b: u64) -> u64 { (get(a) <= get(b) || any_nan(a, b)) as u64 }
            pub fn gtu(a: u64, b: u64) -> u64 { (get(a) > get(b) || any_nan(a, b)) as u64 }
            pub fn geu(a: u64, b: u64) -> u64 { (get(a) >= get(b) || any_nan(a, b)) as u64 }
            pub fn num(a: u64, b: u64) -> u64 { !any_nan(a, b) as u64 }
            pub fn nan(a: u64, b: u64) -> u64 { any_nan(a, b) as u64 }
            pub fn is_finite(a: u64) -> u64 { get(a).is_finite() as u64 }
            pub fn is_infinite(a: u64) -> u64 { get(a).is_infinite() as u64 }
            pub fn is_number(a: u64) -> u64 { !get(a).is_nan() as u64 }
            pub fn is_nan(a: u64) -> u64 { get(a).is_nan() as u64 }
            pub fn is_normal(a: u64) -> u64 { get(a).is_normal() as u64 }
            pub fn is_subnormal(a: u64) -> u64 { get(a).is_subnormal() as u64 }
        }
    )* };
}

#[rustfmt::skip]
floats! {
    f32, f32, super::get_f32, super::put_f32, 1 << 31;
    f32_ftz, f32, super::get_f32_ftz, super::put_f32_ftz, 1 << 31;
    f64, f64, super::get_f64, super::put_f64, 1 << 63;
    f16, f64, super::get_f16, super::put_f16, 1 << 15;
    bf16, f64, super::get_bf16, super::put_bf16, 1 << 15;
}

/// The functions of two values in one register: module, that of one value, bits of a value.
macro_rules! pairs {
    ($name:ident, $of:ident, $bits:literal; $($unary:ident)*; $($binary:ident)*; $($ternary:ident)*) => {
        pub mod $name {
            use super::$of;
            const LOW: u64 = (1 << $bits) - 1;
            fn join(low: u64, high: u64) -> u64 { low & LOW | high << $bits }
            $(pub fn $unary(a: u64) -> u64 { join($of::$unary(a & LOW), $of::$unary(a >> $bits & LOW)) })*
            $(pub fn $binary(a: u64, b: u64) -> u64 {
                join($of::$binary(a & LOW, b & LOW), $of::$binary(a >> $bits & LOW, b >> $bits & LOW))
            })*
            $(pub fn $ternary(a: u64, b: u64, c: u64) -> u64 {
                let high = $of::$ternary(a >> $bits & LOW, b >> $bits & LOW, c >> $bits & LOW);
                join($of::$ternary(a & LOW, b & LOW, c & LOW), high)
            })*
        }
    };
}

pairs!(f16x2, f16, 16; ex2 tanh neg abs sat; add sub mul min max min_nan max_nan; fma fma_relu);
pairs!(bf16x2, bf16, 16; ex2 tanh neg abs sat; add sub mul min max min_nan max_nan; fma fma_relu);
pairs!(f32x2, f32, 32; ex2 tanh neg abs sat; add sub mul min max min_nan max_nan; fma fma_relu);
pairs!(f32x2_ftz, f32_ftz, 32; ex2 tanh neg abs sat; add sub mul min max min_nan max_nan; fma fma_relu);

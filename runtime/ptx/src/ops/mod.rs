//! What instructions compute, as functions of register values. A decoder picks the function of a type once, so that
//! nothing is decided at run time.

pub mod int;
pub mod float;
pub mod round;
pub mod cvt;

/// The integer function of a type: bits count as unsigned.
macro_rules! pick_int {
    ($ty:expr, $f:ident) => {{
        use $crate::types::Class::*;
        match ($ty.class, $ty.bits, $ty.lanes) {
            (Signed, 16, 1) => Some($crate::ops::int::s16::$f as _),
            (Signed, 32, 1) => Some($crate::ops::int::s32::$f as _),
            (Signed, 64, 1) => Some($crate::ops::int::s64::$f as _),
            (Unsigned | Bits, 16, 1) => Some($crate::ops::int::u16::$f as _),
            (Unsigned | Bits, 32, 1) => Some($crate::ops::int::u32::$f as _),
            (Unsigned | Bits, 64, 1) => Some($crate::ops::int::u64::$f as _),
            _ => None,
        }
    }};
}

/// The floating point function of a type of one lane.
macro_rules! pick_scalar {
    ($ty:expr, $ftz:expr, $f:ident) => {{
        use $crate::types::Class::*;
        match ($ty.class, $ty.bits, $ty.lanes, $ftz) {
            (Float, 32, 1, false) => Some($crate::ops::float::f32::$f as _),
            (Float, 32, 1, true) => Some($crate::ops::float::f32_ftz::$f as _),
            (Float, 64, 1, _) => Some($crate::ops::float::f64::$f as _),
            (Float, 16, 1, _) => Some($crate::ops::float::f16::$f as _),
            (Brain, 16, 1, _) => Some($crate::ops::float::bf16::$f as _),
            _ => None,
        }
    }};
}

/// The floating point function of a type.
macro_rules! pick_float {
    ($ty:expr, $ftz:expr, $f:ident) => {{
        use $crate::types::Class::*;
        match ($ty.class, $ty.bits, $ty.lanes) {
            (Float, 16, 2) => Some($crate::ops::float::f16x2::$f as _),
            (Brain, 16, 2) => Some($crate::ops::float::bf16x2::$f as _),
            (Float, 32, 2) if $ftz => Some($crate::ops::float::f32x2_ftz::$f as _),
            (Float, 32, 2) => Some($crate::ops::float::f32x2::$f as _),
            _ => $crate::ops::pick_scalar!($ty, $ftz, $f),
        }
    }};
}

pub(crate) use {pick_float, pick_int, pick_scalar};

//! Element types of tensors.

use std::fmt;

/// An element type. `Tf32` is stored as f32; a product on it uses 10 mantissa bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DType {
    F64,
    F32,
    Tf32,
    Bf16,
    F16,
    F8E4M3,
    F8E5M2,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
    C64,
}

use DType::*;

impl DType {
    pub const ALL: [DType; 14] = [F64, F32, Tf32, Bf16, F16, F8E4M3, F8E5M2, I64, I32, I16, I8, U8, Bool, C64];

    /// The spelling that Tessera prints.
    pub fn name(self) -> &'static str {
        match self {
            F64 => "f64",
            F32 => "f32",
            Tf32 => "tf32",
            Bf16 => "bf16",
            F16 => "f16",
            F8E4M3 => "fp8_e4m3",
            F8E5M2 => "fp8_e5m2",
            I64 => "i64",
            I32 => "i32",
            I16 => "i16",
            I8 => "i8",
            U8 => "u8",
            Bool => "bool",
            C64 => "c64",
        }
    }

    /// Reads every accepted spelling (`f32`, `fp32`, `float32`, …).
    pub fn parse(text: &str) -> Option<DType> {
        if let Some(d) = DType::ALL.into_iter().find(|d| d.name() == text) {
            return Some(d);
        }
        Some(match text {
            "fp64" | "float64" | "double" => F64,
            "fp32" | "float32" => F32,
            "fp16" | "float16" | "half" => F16,
            "bfloat16" => Bf16,
            "f8_e4m3" | "float8_e4m3" | "float8_e4m3fn" => F8E4M3,
            "f8_e5m2" | "float8_e5m2" => F8E5M2,
            "int64" => I64,
            "int32" => I32,
            "int16" => I16,
            "int8" => I8,
            "uint8" => U8,
            "complex64" => C64,
            _ => return None,
        })
    }

    /// Bytes that one element takes in memory.
    pub fn bytes(self) -> usize {
        match self {
            F64 | I64 | C64 => 8,
            F32 | Tf32 | I32 => 4,
            Bf16 | F16 | I16 => 2,
            F8E4M3 | F8E5M2 | I8 | U8 | Bool => 1,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, F64 | F32 | Tf32 | Bf16 | F16 | F8E4M3 | F8E5M2)
    }

    /// The largest value of an int type that is narrower than i64.
    pub fn narrow_most(self) -> Option<i64> {
        match self {
            DType::I32 => Some(i32::MAX.into()),
            DType::I16 => Some(i16::MAX.into()),
            DType::I8 => Some(i8::MAX.into()),
            DType::U8 => Some(u8::MAX.into()),
            _ => None,
        }
    }

    /// Signed or unsigned integers; `bool` is not one.
    pub fn is_int(self) -> bool {
        matches!(self, I64 | I32 | I16 | I8 | U8)
    }

    pub fn is_complex(self) -> bool {
        self == C64
    }

    /// The type in which arithmetic on this type is carried out before rounding back.
    pub fn compute(self) -> DType {
        match self {
            Tf32 | Bf16 | F16 | F8E4M3 | F8E5M2 => F32,
            other => other,
        }
    }

    /// The type in which sums and products of this type accumulate by default.
    pub fn accumulator(self) -> DType {
        match self {
            I32 | I16 | I8 | U8 | Bool => I64,
            other => other.compute(),
        }
    }

    /// Whether every value of `self` is exactly a value of `to`.
    pub fn widens_to(self, to: DType) -> bool {
        if self == to || self == Bool {
            return true;
        }
        match self {
            U8 => matches!(to, I16 | I32 | I64 | F64 | F32 | Tf32 | Bf16 | F16 | C64),
            I8 => matches!(to, I16 | I32 | I64 | F64 | F32 | Tf32 | Bf16 | F16 | C64),
            I16 => matches!(to, I32 | I64 | F64 | F32 | C64),
            I32 => matches!(to, I64 | F64),
            F8E4M3 | F8E5M2 => matches!(to, F16 | Bf16 | Tf32 | F32 | F64 | C64),
            F16 | Bf16 => matches!(to, F32 | F64 | C64) || (self == F16 && to == Tf32) || (self == Bf16 && to == Tf32),
            Tf32 => matches!(to, F32 | F64 | C64),
            F32 => matches!(to, F64 | C64),
            _ => false,
        }
    }

    /// The type of `a ∘ b` for two tensors: the wider one, or `None` where neither holds the other exactly.
    pub fn join(a: DType, b: DType) -> Option<DType> {
        if a.widens_to(b) {
            Some(b)
        } else if b.widens_to(a) {
            Some(a)
        } else {
            None
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_round_trip() {
        for d in DType::ALL {
            assert_eq!(DType::parse(d.name()), Some(d));
        }
    }

    #[test]
    fn f16_and_bf16_do_not_join() {
        assert_eq!(DType::join(F16, Bf16), None);
        assert_eq!(DType::join(Bf16, F32), Some(F32));
        assert_eq!(DType::join(F8E4M3, Bf16), Some(Bf16));
        assert_eq!(DType::join(I8, I32), Some(I32));
        assert_eq!(DType::join(I64, F32), None);
    }
}

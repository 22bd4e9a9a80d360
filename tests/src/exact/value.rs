//! Ranges of numbers, formats of floats, and conversions.

use tessera_base::DType;
use tessera_ops::prim::Scalar;

/// What an element may be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// An integer, or a bool as 0 or 1.
    Int(i64),
    /// A number from the first to the second, infinities among them.
    Real(f64, f64),
    Nan,
    /// Anything: the error that is allowed before it reaches over a jump, a pole or the largest
    /// number.
    Any,
}

impl Value {
    /// Whether an element is what it may be.
    pub fn holds(&self, got: &Scalar) -> bool {
        match (*self, *got) {
            (Value::Any, _) => true,
            (Value::Int(n), Scalar::I(m)) => n == m,
            (Value::Nan, Scalar::F(x)) => x.is_nan(),
            (Value::Real(lo, hi), Scalar::F(x)) => lo <= x && x <= hi,
            _ => false,
        }
    }

    pub fn point(x: f64) -> Value {
        if x.is_nan() { Value::Nan } else { Value::Real(x, x) }
    }

    /// The number where there is only one.
    pub fn exact(self) -> Option<f64> {
        match self {
            Value::Real(lo, hi) if lo == hi => Some(lo),
            Value::Nan => Some(f64::NAN),
            _ => None,
        }
    }

    /// The largest magnitude of a finite range.
    pub fn magnitude(self) -> Option<f64> {
        match self {
            Value::Real(lo, hi) if lo.is_finite() && hi.is_finite() => Some(lo.abs().max(hi.abs())),
            _ => None,
        }
    }

    /// The range that covers both.
    pub fn hull(self, other: Value) -> Value {
        match (self, other) {
            (a, b) if a == b => a,
            (Value::Real(a, b), Value::Real(c, d)) => Value::Real(a.min(c), b.max(d)),
            _ => Value::Any,
        }
    }
}

/// A binary float format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Digits of the significand, the hidden one too.
    digits: i32,
    /// Exponent of the smallest normal number.
    lowest: i32,
    pub largest: f64,
    /// Whether what is too large becomes an infinity; otherwise it becomes the largest number.
    infinite: bool,
}

/// The format of a float type; of others, f64. tf32 is stored as f32.
pub fn format(dtype: DType) -> Format {
    let of = |digits, lowest, largest, infinite| Format { digits, lowest, largest, infinite };
    match dtype {
        DType::F32 | DType::Tf32 | DType::C64 => of(24, -126, f64::from(f32::MAX), true),
        DType::Bf16 => of(8, -126, (2.0 - 1.0 / 128.0) * power(127), true),
        DType::F16 => of(11, -14, 65504.0, true),
        DType::F8E4M3 => of(4, -6, 448.0, false),
        DType::F8E5M2 => of(3, -14, 57344.0, false),
        _ => of(53, -1022, f64::MAX, true),
    }
}

/// What products take of tf32 numbers, which are stored as f32.
pub const TF32: Format = Format { digits: 11, lowest: -126, largest: f32::MAX as f64, infinite: true };

/// The power of two, down to subnormal ones.
fn power(k: i32) -> f64 {
    if k >= -1022 { f64::from_bits(((k + 1023) as u64) << 52) } else { f64::from_bits(1 << (k + 1074)) }
}

impl Format {
    /// Half a unit in the last place of 1.
    pub fn unit(&self) -> f64 {
        power(-self.digits)
    }

    /// What a rounding may be off for a number below the normal ones.
    pub fn least(&self) -> f64 {
        power((self.lowest - self.digits).max(-1074))
    }

    /// The smallest normal number.
    pub fn smallest_normal(&self) -> f64 {
        power(self.lowest)
    }

    /// A unit in the last place of `x`; of zero and subnormal numbers, of the smallest normal one.
    pub fn ulp(&self, x: f64) -> f64 {
        if !x.is_finite() {
            return 0.0;
        }
        power((self.exponent(x) - self.digits + 1).max(-1074))
    }

    fn exponent(&self, x: f64) -> i32 {
        (((x.to_bits() >> 52 & 0x7ff) as i32) - 1023).max(self.lowest)
    }

    /// Rounded to nearest, ties to even.
    pub fn nearest(&self, x: f64) -> f64 {
        let rounded = if self.digits == 53 || !x.is_finite() {
            x
        } else {
            let q = power(self.exponent(x) - self.digits + 1);
            (x / q).round_ties_even() * q
        };
        match rounded.abs() > self.largest {
            true if self.infinite => f64::INFINITY.copysign(x),
            true => self.largest.copysign(x),
            false => rounded,
        }
    }

    /// A range of reals of which some number in the format is taken.
    pub fn store(&self, lo: f64, hi: f64) -> Value {
        if lo.is_nan() || hi.is_nan() { Value::Any } else { Value::Real(self.nearest(lo), self.nearest(hi)) }
    }
}

/// The low bits of an integer as its type sees them.
pub fn wrap(dtype: DType, n: i64) -> i64 {
    match dtype {
        DType::I32 => i64::from(n as i32),
        DType::I16 => i64::from(n as i16),
        DType::I8 => i64::from(n as i8),
        DType::U8 => i64::from(n as u8),
        DType::Bool => i64::from(n != 0),
        _ => n,
    }
}

/// Smallest and largest of an integer type.
pub fn limits(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U8 => (0, u8::MAX.into()),
        DType::Bool => (0, 1),
        _ => (i64::MIN, i64::MAX),
    }
}

/// The conversion between element types, but complex ones.
pub fn convert(from: DType, to: DType, v: Value) -> Value {
    match v {
        _ if from == to => v,
        Value::Any => Value::Any,
        Value::Int(n) if to.is_float() => {
            // The f64 may be off by half a unit itself; the number rounds once.
            let x = n as f64;
            let off = if x as i128 == i128::from(n) { 0.0 } else { format(DType::F64).ulp(x) / 2.0 };
            if to == DType::F64 { Value::point(x) } else { format(to).store(x - off, x + off) }
        }
        Value::Int(n) => Value::Int(wrap(to, n)),
        Value::Nan if to.is_float() => Value::Nan,
        Value::Nan => Value::Int(i64::from(to == DType::Bool)),
        Value::Real(lo, hi) if to.is_float() => format(to).store(lo, hi),
        Value::Real(lo, hi) if to == DType::Bool => match (lo == 0.0 && hi == 0.0, lo <= 0.0 && hi >= 0.0) {
            (true, _) => Value::Int(0),
            (_, false) => Value::Int(1),
            _ => Value::Any,
        },
        Value::Real(lo, hi) => {
            let (least, most) = limits(to);
            // `as` truncates and saturates to i64.
            let [a, b] = [lo, hi].map(|x| (x as i64).clamp(least, most));
            if a == b { Value::Int(a) } else { Value::Any }
        }
    }
}

//! Conversions between types.

use super::round::{Format, Round};
use crate::types::{Class, Ty, mask, sign_extend};

/// A conversion. Sources and results of two lanes take two registers: the first is the upper half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    pub to: Ty,
    pub from: Ty,
    pub round: Round,
    /// Rounds a floating point number to an integral one.
    pub integral: bool,
    /// To [0, 1] for floating point results; to the type's range for integers.
    pub saturate: bool,
    /// To the largest finite number.
    pub finite: bool,
    pub ftz: bool,
    pub relu: bool,
    /// Bits of the register that takes the result.
    pub register: u8,
}

fn format(ty: Ty) -> Option<Format> {
    Some(match (ty.class, ty.bits) {
        (Class::Float, 16) => Format::F16,
        (Class::Float, 32) => Format::F32,
        (Class::Float, 64) => Format::F64,
        (Class::Brain, 16) => Format::BF16,
        (Class::Tf32, 32) => Format::TF32,
        (Class::E4m3, 8) => Format::E4M3,
        (Class::E5m2, 8) => Format::E5M2,
        _ => return None,
    })
}

/// Whether there is such a conversion.
pub fn known(spec: &Spec) -> bool {
    let side = |ty: Ty| format(ty).is_some() || matches!(ty.class, Class::Signed | Class::Unsigned);
    side(spec.to) && side(spec.from) && (spec.from.lanes == 1 || spec.to.lanes == 2)
}

impl Spec {
    /// The converted value; `low` is the second source of a pair.
    pub fn apply(&self, value: u64, low: u64) -> u64 {
        if self.to.lanes == 1 {
            return self.fill(self.one(value));
        }
        let bits = u32::from(self.to.bits);
        let (high, low) = match self.from.lanes {
            2 => (value >> self.from.bits, value),
            _ => (value, low),
        };
        self.one(high) << bits | self.one(low)
    }

    /// Small integers fill their register with their sign.
    fn fill(&self, value: u64) -> u64 {
        if self.to.class == Class::Signed && self.register > self.to.bits {
            return sign_extend(value, self.to.bits.into()) & mask(self.register.into());
        }
        value
    }

    fn one(&self, value: u64) -> u64 {
        let value = value & mask(self.from.bits.into());
        match (format(self.from), format(self.to)) {
            (Some(from), Some(to)) => self.float_to_float(from, to, value),
            (Some(from), None) => self.float_to_int(from.decode(value)),
            (None, Some(to)) => self.int_to_float(to, value),
            (None, None) => self.int_to_int(value),
        }
    }

    fn signed(&self, value: u64) -> i128 {
        match self.from.class {
            Class::Signed => i128::from(sign_extend(value, self.from.bits.into()) as i64),
            _ => i128::from(value),
        }
    }

    fn clamp(&self, value: i128) -> u64 {
        let bits = u32::from(self.to.bits);
        let (low, high) = match self.to.class {
            Class::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            _ => (0, (1i128 << bits) - 1),
        };
        value.clamp(low, high) as u64 & mask(bits)
    }

    fn int_to_int(&self, value: u64) -> u64 {
        let value = self.signed(value);
        if self.saturate { self.clamp(value) } else { value as u64 & mask(self.to.bits.into()) }
    }

    fn int_to_float(&self, to: Format, value: u64) -> u64 {
        let value = self.signed(value);
        let code = to.encode(value < 0, value.unsigned_abs(), 0, self.round, false);
        self.finish(to, code)
    }

    /// Out of range gives the nearest integer, NaN gives 0.
    fn float_to_int(&self, value: f64) -> u64 {
        let value = if self.ftz && value.abs() < f64::from(f32::MIN_POSITIVE) { 0.0 } else { value };
        self.clamp(integral(value, self.round) as i128)
    }

    fn float_to_float(&self, from: Format, to: Format, code: u64) -> u64 {
        let mut value = from.decode(code);
        let flushed = |format| self.ftz && format == Format::F32;
        if flushed(from) && value.abs() < f64::from(f32::MIN_POSITIVE) {
            value = 0f64.copysign(value);
        }
        if self.integral {
            value = integral(value, self.round);
        }
        if self.relu && (value < 0.0 || value.is_sign_negative() && value == 0.0) {
            value = 0.0;
        }
        let mut code = to.encode_f64(value, self.round, self.finite);
        if flushed(to) && f32::from_bits(code as u32).is_subnormal() {
            code &= 1 << 31;
        }
        // The 10 bits of tf32 lie where those of f32 lie.
        let code = if to == Format::TF32 { code << 13 } else { code };
        self.finish(to, code)
    }

    fn finish(&self, to: Format, code: u64) -> u64 {
        if !self.saturate || to == Format::TF32 {
            return code;
        }
        let value = to.decode(code);
        if value > 0.0 { to.encode_f64(value.min(1.0), Round::Nearest, false) } else { 0 }
    }
}

/// The integral number that a direction leads to.
fn integral(value: f64, round: Round) -> f64 {
    if value.is_nan() || value.is_infinite() || value.abs() >= 9.1e18 {
        return value;
    }
    match round {
        Round::Nearest => value.round_ties_even(),
        Round::NearestAway => value.round(),
        Round::Zero => value.trunc(),
        Round::Down => value.floor(),
        Round::Up => value.ceil(),
    }
}

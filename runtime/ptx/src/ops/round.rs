//! Rounding of exact values to a binary format, in one step and any direction.

/// Directions of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    Nearest,
    NearestAway,
    Zero,
    Down,
    Up,
}

/// A binary floating point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits after the point.
    pub fraction: u32,
    pub exponent: u32,
    pub infinity: bool,
    /// The encoding of the largest finite number.
    pub largest: u64,
    pub nan: u64,
}

#[rustfmt::skip]
impl Format {
    pub const F16: Format = Format { fraction: 10, exponent: 5, infinity: true, largest: 0x7BFF, nan: 0x7FFF };
    pub const BF16: Format = Format { fraction: 7, exponent: 8, infinity: true, largest: 0x7F7F, nan: 0x7FFF };
    pub const F32: Format = Format { fraction: 23, exponent: 8, infinity: true, largest: 0x7F7F_FFFF, nan: 0x7FFF_FFFF };
    pub const TF32: Format = Format { fraction: 10, exponent: 8, infinity: true, largest: 0x3FBFF, nan: 0x3FFFF };
    pub const F64: Format = Format { fraction: 52, exponent: 11, infinity: true, largest: 0x7FEF_FFFF_FFFF_FFFF, nan: 0x7FFF_FFFF_FFFF_FFFF };
    pub const E4M3: Format = Format { fraction: 3, exponent: 4, infinity: false, largest: 0x7E, nan: 0x7F };
    pub const E5M2: Format = Format { fraction: 2, exponent: 5, infinity: true, largest: 0x7B, nan: 0x7F };
}

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    fn sign(self, negative: bool) -> u64 {
        u64::from(negative) << (self.fraction + self.exponent)
    }

    fn overflow(self, negative: bool, round: Round, saturate: bool) -> u64 {
        let toward_zero = match round {
            Round::Nearest | Round::NearestAway => false,
            Round::Zero => true,
            Round::Down => !negative,
            Round::Up => negative,
        };
        let magnitude = match () {
            _ if saturate || toward_zero => self.largest,
            _ if self.infinity => mask(self.exponent) << self.fraction,
            _ => self.nan,
        };
        self.sign(negative) | magnitude
    }

    /// The encoding of ±`significand` · 2^`exponent`.
    pub fn encode(self, negative: bool, significand: u128, exponent: i32, round: Round, saturate: bool) -> u64 {
        if significand == 0 {
            return self.sign(negative);
        }
        let length = 128 - significand.leading_zeros() as i32;
        // The exponent of the leading bit, and that of the last bit kept.
        let leading = exponent + length - 1;
        let least = leading.max(1 - self.bias()) - self.fraction as i32;
        let drop = least - exponent;
        let kept =
            if drop <= 0 { significand << (-drop) as u32 } else { rounded(significand, drop as u32, negative, round) };
        // The hidden bit carries into the exponent, and a rounding up to the next power of two as well.
        let steps = (least + self.fraction as i32 + self.bias() - 1) as i128;
        let code = (steps << self.fraction) + kept as i128;
        if code > i128::from(self.largest) {
            return self.overflow(negative, round, saturate);
        }
        self.sign(negative) | code as u64
    }

    /// The encoding of a number; NaN becomes the format's own.
    pub fn encode_f64(self, value: f64, round: Round, saturate: bool) -> u64 {
        if value.is_nan() {
            return self.nan;
        }
        let negative = value.is_sign_negative();
        if value.is_infinite() {
            let code = if self.infinity { mask(self.exponent) << self.fraction } else { self.nan };
            return self.sign(negative) | if saturate { self.largest } else { code };
        }
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7FF) as i32, bits & mask(52));
        let (significand, exponent) =
            if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
        self.encode(negative, u128::from(significand), exponent, round, saturate)
    }

    /// The number of an encoding.
    pub fn decode(self, code: u64) -> f64 {
        // The one format of which the power of two below is not always a number.
        if self == Format::F64 {
            return f64::from_bits(code);
        }
        let negative = code >> (self.fraction + self.exponent) & 1 == 1;
        let magnitude = code & mask(self.fraction + self.exponent);
        let infinite = mask(self.exponent) << self.fraction;
        let value = if self.infinity && magnitude == infinite {
            f64::INFINITY
        } else if magnitude > self.largest {
            f64::NAN
        } else {
            let exponent = (magnitude >> self.fraction) as i32;
            let fraction = (magnitude & mask(self.fraction)) as f64;
            let (significand, exponent) = match exponent {
                0 => (fraction, 1),
                _ => (fraction + (1u64 << self.fraction) as f64, exponent),
            };
            significand * 2f64.powi(exponent - self.bias() - self.fraction as i32)
        };
        if negative { -value } else { value }
    }
}

fn mask(bits: u32) -> u64 {
    crate::types::mask(bits)
}

/// `value` without its `drop` lowest bits, rounded.
pub fn rounded(value: u128, drop: u32, negative: bool, round: Round) -> u128 {
    if drop == 0 {
        return value;
    }
    let (kept, rest, half) = if drop > 127 {
        (0, u128::from(value != 0), 2)
    } else {
        (value >> drop, value & ((1 << drop) - 1), 1 << (drop - 1))
    };
    let up = match round {
        Round::Nearest => rest > half || rest == half && kept & 1 == 1,
        Round::NearestAway => rest >= half,
        Round::Zero => false,
        Round::Down => negative && rest != 0,
        Round::Up => !negative && rest != 0,
    };
    kept + u128::from(up)
}

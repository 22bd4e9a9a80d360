//! Random numbers and random elements, the same on every machine for a seed.

use tessera_base::DType;
use tessera_ops::convert;

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators. OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

/// What an array is filled with. Arrays of ordinary numbers are the rule: one NaN hides what
/// happens to every sum that it reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// Small integers and quarters: sums are exact, equal elements are common.
    Small,
    /// Numbers around 1 with all fraction bits.
    Ordinary,
    /// Magnitudes over the whole range of the type.
    Wide,
    /// Ordinary numbers among zeros of both signs, infinities, NaN, denormals, limits and ties.
    Special,
    /// Any bits that are an element.
    Bits,
}

/// Values at which something happens: zeros, denormals, limits of the narrow types, ties of
/// their rounding, limits of integers.
pub const SPECIAL: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -3.5,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    5e-324,
    -2.2250738585072014e-308,
    f64::MAX,
    1.401298464324817e-45,
    -1.1754942106924411e-38,
    1.1754943508222875e-38,
    3.4028234663852886e38,
    -3.402823669209385e38,
    5.960464477539063e-8,
    -2.9802322387695312e-8,
    6.097555160522461e-5,
    65504.0,
    65519.99999,
    65520.0,
    0.001953125,
    -0.0009765625,
    0.015625,
    447.0,
    448.0,
    464.0,
    -57344.0,
    61440.0,
    1.00390625,
    1.01171875,
    1.0009765625,
    0.9999999999999999,
    1.0000001192092896,
    127.0,
    -128.0,
    255.0,
    256.5,
    32767.5,
    2147483647.0,
    -2147483648.0,
    4294967296.0,
    9007199254740993.0,
    9223372036854775807.0,
    -9223372036854775808.0,
    1e19,
    std::f64::consts::PI,
    -88.72283935546875,
    709.782712893384,
    -745.2,
];

/// Integers at which something happens.
pub const SPECIAL_INTS: &[i64] = &[
    0,
    1,
    -1,
    2,
    3,
    7,
    8,
    31,
    32,
    63,
    64,
    127,
    128,
    -128,
    255,
    -129,
    32767,
    -32768,
    65535,
    i32::MAX as i64,
    i32::MIN as i64,
    1 << 24,
    (1 << 24) + 1,
    (1 << 53) + 1,
    -(1 << 53) - 1,
    i64::MAX,
    i64::MIN,
    0x0123_4567_89ab_cdef,
];

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0xa076_1d64_78bd_642f) ^ 0x5555_aaaa_1234_9876)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`; 0 for an `n` of 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.word() >> 11) as usize % n.max(1)
    }

    /// True once in `n`.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// An element of a list that is not empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// An entry of a list of weights and values that is not empty.
    pub fn weighted<T: Copy>(&mut self, from: &[(usize, T)]) -> T {
        let mut at = self.below(from.iter().map(|w| w.0).sum());
        for &(weight, value) in from {
            if at < weight {
                return value;
            }
            at -= weight;
        }
        from[from.len() - 1].1
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }

    pub fn fill(&mut self) -> Fill {
        self.weighted(&[(4, Fill::Small), (5, Fill::Ordinary), (2, Fill::Wide), (3, Fill::Special), (1, Fill::Bits)])
    }

    /// The bytes of `n` elements.
    pub fn elements(&mut self, dtype: DType, n: usize, fill: Fill) -> Vec<u8> {
        if dtype == DType::C64 {
            return self.elements(DType::F32, 2 * n, fill);
        }
        if fill == Fill::Bits {
            let byte = |r: &mut Random| if dtype == DType::Bool { r.word() as u8 & 1 } else { r.word() as u8 };
            return (0..n * dtype.bytes()).map(|_| byte(self)).collect();
        }
        if dtype.is_float() {
            let wide: Vec<u8> = (0..n).flat_map(|_| self.float(dtype, fill).to_le_bytes()).collect();
            convert::cast(DType::F64, dtype, &wide)
        } else {
            let wide: Vec<u8> = (0..n).flat_map(|_| self.int(dtype, fill).to_le_bytes()).collect();
            convert::cast(DType::I64, dtype, &wide)
        }
    }

    /// Uniform in [-1, 1).
    fn signed(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn float(&mut self, dtype: DType, fill: Fill) -> f64 {
        match fill {
            Fill::Small => (self.below(33) as f64 - 16.0) / 4.0,
            Fill::Special if self.once_in(2) => self.pick(SPECIAL),
            Fill::Wide => {
                let binades = match dtype {
                    DType::F64 => 1080.0,
                    DType::F32 | DType::Tf32 | DType::Bf16 => 150.0,
                    DType::F16 | DType::F8E5M2 => 25.0,
                    _ => 10.0,
                };
                let scale = (self.signed() * binades).exp2();
                self.signed() * scale
            }
            _ => self.signed() * 3.0,
        }
    }

    fn int(&mut self, dtype: DType, fill: Fill) -> i64 {
        match fill {
            _ if dtype == DType::Bool => self.below(2) as i64,
            Fill::Small => self.below(9) as i64 - 4,
            Fill::Special if self.once_in(2) => self.pick(SPECIAL_INTS),
            Fill::Wide => self.word() as i64 >> self.below(64),
            _ => self.below(201) as i64 - 100,
        }
    }
}

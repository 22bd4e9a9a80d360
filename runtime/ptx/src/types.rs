//! The scalar types that instructions name.

/// How the bits of a value are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Pred,
    Bits,
    Unsigned,
    Signed,
    Float,
    /// bfloat16
    Brain,
    /// 32 bits of which the tensor cores use 19
    Tf32,
    E4m3,
    E5m2,
}

/// A type; `lanes` is 2 for the packed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ty {
    pub class: Class,
    /// Bits of one element.
    pub bits: u8,
    pub lanes: u8,
}

impl Ty {
    pub const B32: Ty = Ty::new(Class::Bits, 32);
    pub const B64: Ty = Ty::new(Class::Bits, 64);
    pub const B16: Ty = Ty::new(Class::Bits, 16);
    pub const F32: Ty = Ty::new(Class::Float, 32);
    pub const PRED: Ty = Ty::new(Class::Pred, 1);

    pub const fn new(class: Class, bits: u8) -> Ty {
        Ty { class, bits, lanes: 1 }
    }

    /// The type that a modifier names, without its dot.
    pub fn of(word: &str) -> Option<Ty> {
        let single = |class, bits| Some(Ty::new(class, bits));
        let pair = |class, bits| Some(Ty { class, bits, lanes: 2 });
        match word {
            "pred" => single(Class::Pred, 1),
            "f16" => single(Class::Float, 16),
            "f32" => single(Class::Float, 32),
            "f64" => single(Class::Float, 64),
            "bf16" => single(Class::Brain, 16),
            "f16x2" => pair(Class::Float, 16),
            "bf16x2" => pair(Class::Brain, 16),
            "f32x2" => pair(Class::Float, 32),
            "tf32" => single(Class::Tf32, 32),
            "e4m3" => single(Class::E4m3, 8),
            "e5m2" => single(Class::E5m2, 8),
            "e4m3x2" => pair(Class::E4m3, 8),
            "e5m2x2" => pair(Class::E5m2, 8),
            _ => {
                let class = match word.as_bytes().first()? {
                    b'b' => Class::Bits,
                    b'u' => Class::Unsigned,
                    b's' => Class::Signed,
                    _ => return None,
                };
                match &word[1..] {
                    "8" => single(class, 8),
                    "16" => single(class, 16),
                    "16x2" if class != Class::Bits => pair(class, 16),
                    "32" => single(class, 32),
                    "64" => single(class, 64),
                    _ => None,
                }
            }
        }
    }

    /// Bits that a value occupies.
    pub fn width(self) -> u32 {
        u32::from(self.bits) * u32::from(self.lanes)
    }

    /// Bytes that a value occupies in memory.
    pub fn bytes(self) -> u32 {
        self.width().div_ceil(8)
    }

    pub fn is_float(self) -> bool {
        !matches!(self.class, Class::Pred | Class::Bits | Class::Unsigned | Class::Signed)
    }
}

/// The lowest `bits` bits.
pub fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Extends the sign of a value of `bits` bits.
pub fn sign_extend(value: u64, bits: u32) -> u64 {
    if bits == 0 || bits >= 64 { value } else { (((value << (64 - bits)) as i64) >> (64 - bits)) as u64 }
}

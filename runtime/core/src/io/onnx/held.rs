//! Element types of files that have no dtype of their own here: their elements stand in a wider one.

use tessera_base::DType;

/// What the elements of a tensor are in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Held {
    /// Of the dtype that they have here.
    #[default]
    Own,
    /// 16 bits without a sign, as i32.
    U16,
    /// 32 bits without a sign, as i64.
    U32,
    /// 64 bits without a sign, as i64: the same bits.
    U64,
    /// Two in a byte, as u8.
    U4,
    /// Two in a byte with a sign, as i8.
    I4,
    /// Four in a byte, as u8.
    U2,
    /// Four in a byte with a sign, as i8.
    I2,
}

/// The types with their numbers and names in the format.
const ALL: &[(i64, Held, DType, &str)] = &[
    (4, Held::U16, DType::I32, "uint16"),
    (12, Held::U32, DType::I64, "uint32"),
    (13, Held::U64, DType::I64, "uint64"),
    (21, Held::U4, DType::U8, "uint4"),
    (22, Held::I4, DType::I8, "int4"),
    (25, Held::U2, DType::U8, "uint2"),
    (26, Held::I2, DType::I8, "int2"),
];

impl Held {
    /// What the element type with this number in the format is.
    pub fn of(kind: i64) -> Held {
        ALL.iter().find(|(n, ..)| *n == kind).map_or(Held::Own, |(_, held, ..)| *held)
    }

    /// The dtype that elements of this type stand in; `None` for those that have one of their own.
    pub fn dtype(self) -> Option<DType> {
        ALL.iter().find(|(_, held, ..)| *held == self).map(|(_, _, dtype, _)| *dtype)
    }

    /// The name in the format.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(_, held, ..)| *held == self).map_or("", |(.., name)| name)
    }

    /// The least and the largest element; `None` where they are those of the dtype.
    pub fn range(self) -> Option<(i64, i64)> {
        match self {
            Held::Own | Held::U64 => None,
            Held::U16 => Some((0, 0xffff)),
            Held::U32 => Some((0, 0xffff_ffff)),
            Held::U4 => Some((0, 15)),
            Held::I4 => Some((-8, 7)),
            Held::U2 => Some((0, 3)),
            Held::I2 => Some((-2, 1)),
        }
    }

    /// The bytes of so many elements in a file.
    pub fn stored(self, elems: u64) -> Option<u64> {
        match self {
            Held::Own => None,
            Held::U16 => elems.checked_mul(2),
            Held::U32 => elems.checked_mul(4),
            Held::U64 => elems.checked_mul(8),
            Held::U4 | Held::I4 => Some(elems.div_ceil(2)),
            Held::U2 | Held::I2 => Some(elems.div_ceil(4)),
        }
    }

    /// The bytes of elements as the dtype holds them; there are `elems` of them in `raw`.
    pub fn widened(self, raw: &[u8], elems: u64) -> Vec<u8> {
        let count = usize::try_from(elems).unwrap_or(0);
        let nibbles = || raw.iter().flat_map(|b| [b & 15, b >> 4]).take(count);
        let pairs = || raw.iter().flat_map(|b| [b & 3, b >> 2 & 3, b >> 4 & 3, b >> 6]).take(count);
        match self {
            Held::Own | Held::U64 => raw.to_vec(),
            Held::U16 => {
                raw.as_chunks().0.iter().flat_map(|b| u32::from(u16::from_le_bytes(*b)).to_le_bytes()).collect()
            }
            Held::U32 => {
                raw.as_chunks().0.iter().flat_map(|b| u64::from(u32::from_le_bytes(*b)).to_le_bytes()).collect()
            }
            Held::U4 => nibbles().collect(),
            // The bit of the sign goes on.
            Held::I4 => nibbles().map(|n| if n < 8 { n } else { n | 0xf0 }).collect(),
            Held::U2 => pairs().collect(),
            Held::I2 => pairs().map(|n| if n < 2 { n } else { n | 0xfc }).collect(),
        }
    }

    /// Elements that stand in a list of ints, as bytes in a file: those of four bits are packed there, too.
    pub fn listed(self, ints: &[i64]) -> Vec<u8> {
        let width = match self {
            Held::U16 => 2,
            Held::U32 => 4,
            Held::U4 | Held::I4 | Held::U2 | Held::I2 => 1,
            Held::U64 | Held::Own => 8,
        };
        ints.iter().flat_map(|n| n.to_le_bytes().into_iter().take(width)).collect()
    }
}

//! Descriptions of tensors for copies of tiles. The hardware's encoding is secret; this is the stand-in's own.

/// A matrix in global memory and the tiles that are copied of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    pub base: u64,
    /// Bytes from one row to the next.
    pub stride: u64,
    /// Elements: columns, rows.
    pub dims: [u32; 2],
    pub tile: [u32; 2],
    pub element: u32,
    /// Whether 16-byte parts are exchanged within 128-byte rows.
    pub swizzle: bool,
}

const MARK: u32 = 0x5445_5353;

impl TensorMap {
    pub const BYTES: usize = 128;

    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.base.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.stride.to_le_bytes());
        let [d0, d1] = self.dims;
        let [t0, t1] = self.tile;
        for (at, word) in [d0, d1, t0, t1, self.element, self.swizzle.into(), MARK].into_iter().enumerate() {
            bytes[16 + 4 * at..20 + 4 * at].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The map of its words; None if it is none.
    pub fn decode(words: &[u64; Self::BYTES / 8]) -> Option<TensorMap> {
        let half = |at: usize| (words[2 + at / 2] >> (32 * (at % 2))) as u32;
        let map = TensorMap {
            base: words[0],
            stride: words[1],
            dims: [half(0), half(1)],
            tile: [half(2), half(3)],
            element: half(4),
            swizzle: half(5) != 0,
        };
        let right = half(6) == MARK && map.tile.iter().all(|n| *n <= 256) && matches!(map.element, 1 | 2 | 4 | 8);
        right.then_some(map)
    }
}

/// The place of a byte under the exchange of 128-byte rows.
pub fn swizzled(at: u64) -> u64 {
    at ^ ((at >> 7 & 7) << 4)
}

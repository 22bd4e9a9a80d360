//! Numbers in blocks: a few bits each, with scales that the numbers of a block share.
//!
//! The formats are those that GGUF files hold. A block of `elems` numbers along the last dim is
//! `bytes` bytes, so a tensor `[N, elems·B]` is kept as `u8[N, B, bytes]`. Every number is exact
//! in f32 except where a format says otherwise by itself (one rounding, in one order).

mod encode;

use half::f16;

/// A block format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Blocks {
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
}

use Blocks::*;

impl Blocks {
    pub const ALL: [Blocks; 8] = [Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4K, Q5K, Q6K];

    /// The word that programs use.
    pub fn name(self) -> &'static str {
        match self {
            Q4_0 => "q4_0",
            Q4_1 => "q4_1",
            Q5_0 => "q5_0",
            Q5_1 => "q5_1",
            Q8_0 => "q8_0",
            Q4K => "q4_k",
            Q5K => "q5_k",
            Q6K => "q6_k",
        }
    }

    pub fn parse(name: &str) -> Option<Blocks> {
        Blocks::ALL.into_iter().find(|b| b.name() == name)
    }

    /// Numbers of a block.
    pub fn elems(self) -> usize {
        if matches!(self, Q4K | Q5K | Q6K) { 256 } else { 32 }
    }

    /// Bytes of a block.
    pub fn bytes(self) -> usize {
        match self {
            Q4_0 => 18,
            Q4_1 => 20,
            Q5_0 => 22,
            Q5_1 => 24,
            Q8_0 => 34,
            Q4K => 144,
            Q5K => 176,
            Q6K => 210,
        }
    }

    /// The numbers of one block. Bytes or places that are missing are left out.
    #[inline(always)]
    pub fn decode(self, block: &[u8], out: &mut [f32]) {
        if block.len() < self.bytes() || out.len() < self.elems() {
            return;
        }
        match self {
            Q4_0 => nibbles(&block[2..18], None, out, |q| half_at(block, 0) * (q - 8.0)),
            Q4_1 => nibbles(&block[4..20], None, out, |q| half_at(block, 0) * q + half_at(block, 2)),
            Q5_0 => nibbles(&block[6..22], Some(bits_at(block, 2)), out, |q| half_at(block, 0) * (q - 16.0)),
            Q5_1 => nibbles(&block[8..24], Some(bits_at(block, 4)), out, |q| half_at(block, 0) * q + half_at(block, 2)),
            Q8_0 => {
                let d = half_at(block, 0);
                for (y, &q) in out.iter_mut().zip(&block[2..34]) {
                    *y = d * f32::from(q as i8);
                }
            }
            Q4K => groups(block, &block[16..144], None, out),
            Q5K => groups(block, &block[48..176], Some(&block[16..48]), out),
            Q6K => sixes(block, out),
        }
    }
}

fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

fn bits_at(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

/// 16 bytes: element `j` is the lower half of byte `j`, element `16 + j` the upper one; `high`
/// holds the fifth bit of each.
#[inline(always)]
fn nibbles(bytes: &[u8], high: Option<u32>, out: &mut [f32], value: impl Fn(f32) -> f32) {
    for (j, &b) in bytes.iter().enumerate() {
        let fifth = |i: usize| high.map_or(0, |h| (h >> i & 1) << 4);
        out[j] = value((u32::from(b & 15) | fifth(j)) as f32);
        out[j + 16] = value((u32::from(b >> 4) | fifth(j + 16)) as f32);
    }
}

/// Eight groups of 32, each with a scale and a least value of six bits; `d · scale · q − dmin · least`, of which both
/// products are exact. `high` holds the fifth bits: bit `g` of byte `i` for element `i` of group `g`.
#[inline(always)]
fn groups(block: &[u8], bytes: &[u8], high: Option<&[u8]>, out: &mut [f32]) {
    let (d, least) = (half_at(block, 0), half_at(block, 2));
    let s = &block[4..16];
    for g in 0..8 {
        let (scale, low) = if g < 4 {
            (s[g] & 63, s[g + 4] & 63)
        } else {
            (s[g + 4] & 15 | s[g - 4] >> 6 << 4, s[g + 4] >> 4 | s[g] >> 6 << 4)
        };
        let (scale, low) = (d * f32::from(scale), least * f32::from(low));
        for i in 0..32 {
            let b = bytes[g / 2 * 32 + i];
            let q = if g % 2 == 0 { b & 15 } else { b >> 4 };
            let fifth = high.map_or(0, |h| (h[i] >> g & 1) << 4);
            out[g * 32 + i] = scale * f32::from(q | fifth) - low;
        }
    }
}

/// 256 numbers of six bits: four lower bits, two upper ones, a scale of eight bits for 16 each.
#[inline(always)]
fn sixes(block: &[u8], out: &mut [f32]) {
    let d = half_at(block, 208);
    for half in 0..2 {
        let (low, high) = (&block[half * 64..half * 64 + 64], &block[128 + half * 32..160 + half * 32]);
        let scales = &block[192 + half * 8..200 + half * 8];
        for part in 0..4 {
            for l in 0..32 {
                let b = low[(part & 1) * 32 + l];
                let four = if part < 2 { b & 15 } else { b >> 4 };
                let q = i32::from(four | (high[l] >> (2 * part) & 3) << 4) - 32;
                let scale = d * f32::from(scales[part * 2 + l / 16] as i8);
                out[half * 128 + part * 32 + l] = scale * q as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for b in Blocks::ALL {
            assert_eq!(Blocks::parse(b.name()), Some(b));
        }
        assert_eq!(Blocks::parse("q3_k"), None);
    }

    #[test]
    fn blocks_by_hand() {
        let (half, one) = ([0x00, 0x38], [0x00, 0x3c]);
        let mut out = [0.0; 256];
        let q: Vec<u8> = (0..16).map(|j| j | (15 - j) << 4).collect();
        Q4_0.decode(&[&half[..], &q].concat(), &mut out);
        assert_eq!((out[0], out[15], out[16], out[31]), (-4.0, 3.5, 3.5, -4.0));
        Q4_1.decode(&[&half[..], &one, &q].concat(), &mut out);
        assert_eq!((out[0], out[15], out[16], out[31]), (1.0, 8.5, 8.5, 1.0));
        let fifth = [1, 0, 0, 0x80];
        Q5_0.decode(&[&half[..], &fifth, &q].concat(), &mut out);
        assert_eq!((out[0], out[1], out[31]), (0.0, -7.5, 0.0));
        Q5_1.decode(&[&half[..], &one, &fifth, &q].concat(), &mut out);
        assert_eq!((out[0], out[1], out[31]), (9.0, 1.5, 9.0));
        let eight: Vec<u8> = (0..32).map(|j| (j as i8 - 16) as u8).collect();
        Q8_0.decode(&[&half[..], &eight].concat(), &mut out);
        assert_eq!((out[0], out[16], out[31]), (-8.0, 0.0, 7.5));
    }

    #[test]
    fn larger_blocks_by_hand() {
        let mut out = [0.0; 256];
        // d = 1, dmin = 0.5; group 0: scale 3, least 2; group 4: scale 1 + 16, least 2.
        let mut block = vec![0x00, 0x3c, 0x00, 0x38];
        block.extend([0x43, 0, 0, 0, 2, 0, 0, 0, 0x21, 0, 0, 0]);
        let mut five = block.clone();
        block.extend([0x75; 128]);
        Q4K.decode(&block, &mut out);
        assert_eq!((out[0], out[32], out[128]), (3.0 * 5.0 - 1.0, 0.0, 17.0 * 5.0 - 1.0));
        five.extend([0x01; 32]);
        five.extend([0x75; 128]);
        Q5K.decode(&five, &mut out);
        assert_eq!((out[0], out[128]), (3.0 * 21.0 - 1.0, 17.0 * 5.0 - 1.0));
        let mut six = vec![0x2f; 128];
        six.extend([0b00_01_10_11; 64]);
        six.extend([2, 0xff, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
        six.extend([0x00, 0x38]);
        Q6K.decode(&six, &mut out);
        assert_eq!((out[0], out[16], out[32], out[64], out[96]), (31.0, -15.5, 15.0, -14.0, -30.0));
    }

    #[test]
    fn what_is_too_short_is_left_alone() {
        let mut out = [7.0; 256];
        for b in Blocks::ALL {
            b.decode(&vec![0; b.bytes() - 1], &mut out);
            b.decode(&vec![0; b.bytes()], &mut out[..b.elems() - 1]);
        }
        assert!(out.iter().all(|x| *x == 7.0));
    }
}

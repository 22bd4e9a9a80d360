//! Putting numbers into blocks.

use super::Blocks::{self, *};
use half::f16;
use std::cmp::Ordering;

impl Blocks {
    /// Whether numbers can be put into blocks of this format; others are only read.
    pub fn writes(self) -> bool {
        matches!(self, Q4_0 | Q4_1 | Q5_0 | Q5_1 | Q8_0)
    }

    /// Puts the numbers of one block into `block`: the scale that holds the largest of them, rounded to
    /// f16, and each number over the stored scale, rounded to nearest. A block with a number that is not finite is
    /// NaN as a whole. Numbers or bytes that are missing are left out.
    pub fn encode(self, numbers: &[f32], block: &mut [u8]) {
        if block.len() < self.bytes() || numbers.len() < self.elems() || !self.writes() {
            return;
        }
        let x = &numbers[..32];
        let finite = x.iter().all(|v| v.is_finite());
        let held = |scale: f32| if finite { f16::from_f32(scale) } else { f16::NAN };
        // The largest with its sign, so that it is met exactly.
        let most = x.iter().fold(0.0f32, |m, &v| if v.abs() > m.abs() { v } else { m });
        let (low, high) = (ends(x, f32::INFINITY, Ordering::Less), ends(x, f32::NEG_INFINITY, Ordering::Greater));
        match self {
            Q8_0 => {
                let d = held(most.abs() / 127.0);
                block[..2].copy_from_slice(&d.to_le_bytes());
                for (b, &v) in block[2..34].iter_mut().zip(x) {
                    *b = step(v, 0.0, d, -127, 127) as u8;
                }
            }
            Q4_0 | Q5_0 => {
                let half = if self == Q4_0 { 8 } else { 16 };
                let d = held(most / -(half as f32));
                block[..2].copy_from_slice(&d.to_le_bytes());
                pack(x.iter().map(|&v| (step(v, 0.0, d, -half, half - 1) + half) as u32), &mut block[2..]);
            }
            _ => {
                let top = if self == Q4_1 { 15 } else { 31 };
                let (d, least) = (held((high - low) / top as f32), held(low));
                block[..2].copy_from_slice(&d.to_le_bytes());
                block[2..4].copy_from_slice(&least.to_le_bytes());
                pack(x.iter().map(|&v| step(v, least.to_f32(), d, 0, top) as u32), &mut block[4..]);
            }
        }
    }
}

/// The least or the greatest of numbers, where −0 is below 0.
fn ends(x: &[f32], start: f32, side: Ordering) -> f32 {
    x.iter().fold(start, |m, v| if v.total_cmp(&m) == side { *v } else { m })
}

/// How many steps of the scale a number is from `least`.
fn step(v: f32, least: f32, scale: f16, low: i32, high: i32) -> i32 {
    let steps = (v - least) / scale.to_f32();
    // Without a scale all numbers of the block are 0; NaN becomes 0 here.
    (steps.round_ties_even() as i32).clamp(low, high)
}

/// Codes of four bits, or of five where the first four bytes take the fifth bits, as `nibbles` reads them.
fn pack(codes: impl Iterator<Item = u32>, bytes: &mut [u8]) {
    let codes: Vec<u32> = codes.collect();
    let fifths = codes.iter().enumerate().fold(0u32, |h, (i, c)| h | (c >> 4 & 1) << i);
    let start = bytes.len() - 16;
    if start == 4 {
        bytes[..4].copy_from_slice(&fifths.to_le_bytes());
    }
    for (j, b) in bytes[start..].iter_mut().enumerate() {
        *b = (codes[j] & 15 | (codes[j + 16] & 15) << 4) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes of blocks come back, and what is between them is off by at most half a step (a
    /// whole one at the open end of a signed format), beside the rounding of the scale.
    #[test]
    fn numbers_come_back() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        };
        for format in Blocks::ALL.into_iter().filter(|f| f.writes()) {
            for size in [1e-3, 1.0, 300.0] {
                let x: Vec<f32> = (0..32).map(|_| random() * size).collect();
                let (mut block, mut y, mut z) = (vec![0; format.bytes()], vec![0.0; 32], vec![0.0; 32]);
                format.encode(&x, &mut block);
                format.decode(&block, &mut y);
                let steps = [(Q8_0, 127.0), (Q4_0, 8.0), (Q5_0, 16.0), (Q4_1, 7.5), (Q5_1, 15.5)];
                let step = size / steps.iter().find(|s| s.0 == format).unwrap().1;
                let worst = x.iter().zip(&y).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(worst <= 1.01 * step + size / 1024.0, "{format:?} {size}: {worst}");
                // What is on the grid stays there.
                format.encode(&y, &mut block);
                format.decode(&block, &mut z);
                assert!(y.iter().zip(&z).all(|(a, b)| (a - b).abs() <= size / 512.0), "{format:?}");
            }
        }
    }

    #[test]
    fn nothing_and_what_is_not_finite() {
        for format in Blocks::ALL.into_iter().filter(|f| f.writes()) {
            let (mut block, mut y) = (vec![0xff; format.bytes()], vec![7.0; 32]);
            format.encode(&[0.0; 32], &mut block);
            format.decode(&block, &mut y);
            assert!(y.iter().all(|v| *v == 0.0), "{format:?} {y:?}");
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut x = [1.0; 32];
                x[5] = bad;
                format.encode(&x, &mut block);
                format.decode(&block, &mut y);
                assert!(y.iter().all(|v| v.is_nan()), "{format:?} {bad} {y:?}");
            }
        }
    }
}

//! Products with numbers in blocks.
//!
//! The blocks stay as they are in memory: a panel of [`COLUMNS`] rows of blocks is turned into
//! f32 in registers (or a small buffer) and used at once, so a product of one row moves the bytes
//! of the blocks and nothing else. Every element of the result is a chain of fused multiply-adds in ascending position
//! within each leaf of [`DOT_LEAF`] positions, and a balanced tree over leaves, whatever the processor, the threads and the
//! panels are.

#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::pool::Pool;
use std::borrow::Cow;
use std::ops::Range;
use tessera_abi::leaves::{DOT_LEAF, tree};
use tessera_base::Blocks;

/// Columns of the result that are computed together: two vectors, enough independent chains.
const COLUMNS: usize = 32;
/// Rows of the result that share the numbers of one pass over a panel.
const ROWS: usize = 8;
/// The most numbers of a block.
const ELEMS_MAX: usize = 256;
/// Multiply-adds that are worth a thread's wake-up.
const WAKE_STEPS: usize = 1 << 16;

/// A product `f32[m, k] @ blocks[n, k / elems, bytes]` turned, with where its parts are.
struct Product<'a> {
    format: Blocks,
    x: &'a [f32],
    blocks: &'a [u8],
    m: usize,
    k: usize,
    n: usize,
    out: Out,
}

/// The result, of which every thread writes its own columns.
struct Out(*mut f32);
// SAFETY: threads write disjoint elements, and the caller waits for them.
unsafe impl Sync for Out {}

/// How panels are computed on this machine. All give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// In registers of 512 bits, for the formats that have code for it.
    #[cfg(target_arch = "x86_64")]
    Registers,
    Plain,
}

impl Way {
    fn best(format: Blocks) -> Way {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") && avx512::covers(format) {
            return Way::Registers;
        }
        let _ = format;
        Way::Plain
    }
}

/// Whether blocks of a format are turned in registers on this machine: then a product here takes less time than a kernel.
pub fn in_registers(format: Blocks) -> bool {
    Way::best(format) != Way::Plain
}

/// `x[m, k] @ blocks[n, …]` turned, into `out[m, n]`: all as bytes, which must be as many as the
/// sizes say (else nothing is computed).
pub fn product(pool: &Pool, format: Blocks, [m, k, n]: [usize; 3], x: &[u8], blocks: &[u8], out: &mut [u8]) {
    product_by(Way::best(format), pool, format, [m, k, n], x, blocks, out);
}

fn product_by(way: Way, pool: &Pool, format: Blocks, [m, k, n]: [usize; 3], x: &[u8], blocks: &[u8], out: &mut [u8]) {
    let row = k / format.elems() * format.bytes();
    let fits = k.is_multiple_of(format.elems())
        && Some(x.len()) == m.checked_mul(k).and_then(|e| e.checked_mul(4))
        && Some(blocks.len()) == n.checked_mul(row)
        && Some(out.len()) == m.checked_mul(n).and_then(|e| e.checked_mul(4));
    if !fits || out.is_empty() || !out.as_ptr().cast::<f32>().is_aligned() {
        return;
    }
    let x = floats(x);
    let p = Product { format, x: &x, blocks, m, k, n, out: Out(out.as_mut_ptr().cast()) };
    let grain = WAKE_STEPS.div_ceil((m * k * COLUMNS).max(1));
    pool.run(n.div_ceil(COLUMNS) as u64, grain as u64, &|lo, hi| {
        for panel in lo as usize..hi as usize {
            p.panel(way, panel);
        }
        0
    });
}

/// The numbers of bytes that are f32.
fn floats(bytes: &[u8]) -> Cow<'_, [f32]> {
    // SAFETY: any bits are an f32.
    match unsafe { bytes.align_to::<f32>() } {
        ([], all, []) => Cow::Borrowed(all),
        _ => Cow::Owned(bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()),
    }
}

/// The sum of a chain for each leaf, of which every format's blocks have a whole number, by the tree. More than one leaf gives
/// no -0.
fn over_leaves<T>(k: usize, zero: T, mut chain: impl FnMut(Range<usize>) -> T, add: impl Fn(&T, &T) -> T) -> T {
    if k <= DOT_LEAF {
        return chain(0..k);
    }
    let leaf = |n: usize| chain(n * DOT_LEAF..k.min((n + 1) * DOT_LEAF));
    match tree(0..k.div_ceil(DOT_LEAF), leaf, &add) {
        Some(sum) => add(&zero, &sum),
        None => zero,
    }
}

impl Product<'_> {
    fn panel(&self, way: Way, panel: usize) {
        match way {
            // SAFETY: this way is taken where the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            Way::Registers => unsafe { avx512::panel(self, panel) },
            Way::Plain => self.through_buffer(panel),
        }
    }

    /// Turns a block of each column into a buffer and multiplies from there.
    fn through_buffer(&self, panel: usize) {
        let (elems, bytes) = (self.format.elems(), self.format.bytes());
        let first = panel * COLUMNS;
        let columns = COLUMNS.min(self.n - first);
        let mut numbers = [[0.0f32; COLUMNS]; ELEMS_MAX];
        let mut column = [0.0f32; ELEMS_MAX];
        for row in (0..self.m).step_by(ROWS) {
            let rows = ROWS.min(self.m - row);
            let chain = |leaf: Range<usize>| {
                let mut sums = [[0.0f32; COLUMNS]; ROWS];
                for block in leaf.start / elems..leaf.end / elems {
                    for c in 0..columns {
                        let at = ((first + c) * (self.k / elems) + block) * bytes;
                        self.format.decode(&self.blocks[at..at + bytes], &mut column);
                        for (line, value) in numbers.iter_mut().zip(&column[..elems]) {
                            line[c] = *value;
                        }
                    }
                    for (r, sums) in sums.iter_mut().enumerate().take(rows) {
                        let x = &self.x[(row + r) * self.k + block * elems..][..elems];
                        for (x, line) in x.iter().zip(&numbers) {
                            for (sum, value) in sums.iter_mut().zip(line) {
                                *sum = x.mul_add(*value, *sum);
                            }
                        }
                    }
                }
                sums
            };
            let add = |a: &[[f32; COLUMNS]; ROWS], b: &[[f32; COLUMNS]; ROWS]| -> [[f32; COLUMNS]; ROWS] {
                std::array::from_fn(|r| std::array::from_fn(|c| a[r][c] + b[r][c]))
            };
            let sums = over_leaves(self.k, [[0.0f32; COLUMNS]; ROWS], chain, add);
            for (r, sums) in sums.iter().enumerate().take(rows) {
                for (c, sum) in sums.iter().enumerate().take(columns) {
                    // SAFETY: the row and the column are inside, and the panel is this thread's.
                    unsafe { self.out.0.add((row + r) * self.n + first + c).write(*sum) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random bytes (xorshift64*); the scales of blocks are kept small and finite.
    fn noise(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    fn blocks(format: Blocks, count: usize, seed: u64) -> Vec<u8> {
        let mut out = noise(seed, count * format.bytes());
        for (i, block) in out.chunks_exact_mut(format.bytes()).enumerate() {
            let at = if format == Blocks::Q6K { 208 } else { 0 };
            // f16 numbers between 0.5 and 1.
            block[at + 1] = 0x38 + (i % 4) as u8;
            if matches!(format, Blocks::Q4_1 | Blocks::Q5_1 | Blocks::Q4K | Blocks::Q5K) {
                block[3] = 0xb0 + (i % 8) as u8;
            }
        }
        out
    }

    /// One element after the other.
    fn plainly(format: Blocks, [m, k, n]: [usize; 3], x: &[f32], blocks: &[u8]) -> Vec<u8> {
        let mut w = vec![0.0; n * k];
        for (block, to) in blocks.chunks_exact(format.bytes()).zip(w.chunks_exact_mut(format.elems())) {
            format.decode(block, to);
        }
        let sum = |r: usize, c: usize| {
            let leaf = |p: &[f32], q: &[f32]| p.iter().zip(q).fold(0.0f32, |s, (a, b)| a.mul_add(*b, s));
            let (p, q) = (&x[r * k..][..k], &w[c * k..][..k]);
            let mut now: Vec<f32> = p.chunks(DOT_LEAF).zip(q.chunks(DOT_LEAF)).map(|(p, q)| leaf(p, q)).collect();
            while now.len() > 1 {
                now = now.chunks(2).map(|p| if let [a, b] = p { a + b } else { p[0] }).collect();
            }
            now[0]
        };
        (0..m).flat_map(|r| (0..n).flat_map(move |c| sum(r, c).to_le_bytes())).collect()
    }

    #[test]
    fn every_way_gives_the_bits_of_the_tree() {
        let mut ways = vec![Way::Plain];
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                ways.push(Way::Registers);
            }
        }
        let pool = Pool::new(2);
        for format in Blocks::ALL {
            for (m, per, n) in [(1, 3, 70), (2, 1, 32), (7, 2, 1), (8, 2, 33), (19, 1, 64), (3, 70, 33)] {
                let k = per * format.elems();
                let x: Vec<f32> = noise(7, m * k).iter().map(|b| f32::from(*b as i8) / 16.0).collect();
                let bytes: Vec<u8> = x.iter().flat_map(|v| v.to_le_bytes()).collect();
                let w = blocks(format, n * per, (m * n) as u64);
                let want = plainly(format, [m, k, n], &x, &w);
                for &way in &ways {
                    if cfg!(target_arch = "x86_64") && format!("{way:?}") == "Registers" && Way::best(format) != way {
                        continue;
                    }
                    let mut out = vec![0f32; m * n];
                    // SAFETY: f32 are bytes.
                    let out = unsafe { out.align_to_mut::<u8>().1 };
                    product_by(way, &pool, format, [m, k, n], &bytes, &w, out);
                    assert_eq!(out, want, "{format:?} {way:?} {m} {k} {n}");
                }
            }
        }
    }

    #[test]
    fn sizes_that_do_not_fit_compute_nothing() {
        let pool = Pool::new(1);
        let mut out = vec![1; 4];
        product(&pool, Blocks::Q8_0, [1, 32, 1], &[0; 127], &[0; 34], &mut out);
        product(&pool, Blocks::Q8_0, [1, 31, 1], &[0; 124], &[0; 34], &mut out);
        product(&pool, Blocks::Q8_0, [usize::MAX, 32, 1], &[0; 128], &[0; 34], &mut out);
        assert_eq!(out, [1; 4]);
    }
}

//! Sorting along one dim: stable, NaN last, −0 equal to 0.
//!
//! Elements become unsigned keys that compare alike; a key with its position in the low bits is
//! unique, so that any sort of these words is the stable one. Long lines of narrow elements are
//! sorted by radix. Lines are shared out among threads; one long line is sorted in parts.

use crate::pool::Pool;
use tessera_base::DType;

/// Lines of `n` elements: `outer` blocks of `n` rows of `inner` elements, one line per column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lines {
    pub outer: usize,
    pub n: usize,
    pub inner: usize,
}

/// What to write for the element that comes `i`-th.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Give {
    /// The element.
    Elements,
    /// Its position along the dim, i64.
    Positions,
}

/// Lines below this length are not sorted by radix.
const RADIX_MIN: usize = 1024;
/// A line from this length on is sorted in parts.
const PARTS_MIN: usize = 1 << 17;
/// Elements that are worth a thread's wake-up.
const WAKE_ELEMS: usize = 4096;

/// Sorts every line of `source` (row-major elements of `dtype`) into `out`, of which only the
/// first `first` of each line are written: the others are not wanted.
///
/// `out` has the elements of `source`, or as many i64. Complex types have no order; nothing is
/// written for them. Cost: radix of 11 bits, three passes for 32-bit elements; comparisons for
/// others; selection where `first` is small.
pub fn sort_lines(
    pool: &Pool,
    source: &[u8],
    dtype: DType,
    lines: Lines,
    descending: bool,
    first: usize,
    give: Give,
    out: &mut [u8],
) {
    let bytes = dtype.bytes();
    let each = if give == Give::Positions { 8 } else { bytes };
    let count = lines.outer * lines.inner;
    if dtype.is_complex() || source.len() != count * lines.n * bytes || out.len() != count * lines.n * each {
        return;
    }
    let target = Target { start: out.as_mut_ptr(), len: out.len() };
    let order = Order { source, dtype, lines, descending, first: first.min(lines.n), give };
    if count < pool.threads() && lines.n >= PARTS_MIN {
        for line in 0..count {
            order.long_line(pool, line, &target);
        }
        return;
    }
    let grain = (WAKE_ELEMS / lines.n.max(1)).max(1) as u64;
    pool.run(count as u64, grain, &|lo, hi| {
        let mut words = vec![];
        let mut wide = vec![];
        let mut spare = vec![];
        for line in lo as usize..hi as usize {
            if order.is_narrow() {
                words.clear();
                words.extend((0..lines.n).map(|p| order.word(line, p)));
                smallest(&mut words, &mut spare, order.first);
                order.write(line, words.iter().map(|w| *w as u32 as usize), &target);
            } else {
                wide.clear();
                wide.extend((0..lines.n).map(|p| order.wide_word(line, p)));
                smallest_wide(&mut wide, order.first);
                order.write(line, wide.iter().map(|w| *w as u64 as usize), &target);
            }
        }
        0
    });
}

/// The result, which threads write at different places.
struct Target {
    start: *mut u8,
    len: usize,
}
// SAFETY: every line is written by one thread, and lines do not overlap.
unsafe impl Sync for Target {}

impl Target {
    fn write<const N: usize>(&self, at: usize, value: [u8; N]) {
        if (at + 1) * N <= self.len {
            // SAFETY: in range; no other thread writes or reads this element.
            unsafe { self.start.cast::<[u8; N]>().add(at).write(value) }
        }
    }
}

struct Order<'a> {
    source: &'a [u8],
    dtype: DType,
    lines: Lines,
    descending: bool,
    first: usize,
    give: Give,
}

impl Order<'_> {
    /// Whether a key and a position fit one word.
    fn is_narrow(&self) -> bool {
        self.dtype.bytes() <= 4 && self.lines.n <= u32::MAX as usize
    }

    /// The place of element `p` of a line.
    fn at(&self, line: usize, p: usize) -> usize {
        let Lines { n, inner, .. } = self.lines;
        (line / inner * n + p) * inner + line % inner
    }

    fn element<const N: usize>(&self, at: usize) -> [u8; N] {
        self.source.as_chunks::<N>().0[at]
    }

    fn word(&self, line: usize, p: usize) -> u64 {
        u64::from(self.key(self.at(line, p))) << 32 | p as u64
    }

    fn wide_word(&self, line: usize, p: usize) -> u128 {
        u128::from(self.wide_key(self.at(line, p))) << 64 | p as u128
    }

    /// A number that compares like the element, for types of up to 32 bits.
    fn key(&self, at: usize) -> u32 {
        let (bits, width, infinity) = match self.dtype {
            DType::F32 | DType::Tf32 => (u32::from_le_bytes(self.element(at)), 32, 0x7f80_0000),
            DType::F16 => (u32::from(u16::from_le_bytes(self.element(at))), 16, 0x7c00),
            DType::Bf16 => (u32::from(u16::from_le_bytes(self.element(at))), 16, 0x7f80),
            DType::F8E5M2 => (u32::from(self.element::<1>(at)[0]), 8, 0x7c),
            // Without infinities: the largest number stands before the one NaN.
            DType::F8E4M3 => (u32::from(self.element::<1>(at)[0]), 8, 0x7e),
            _ => {
                let x = match self.dtype {
                    DType::I32 => i32::from_le_bytes(self.element(at)),
                    DType::I16 => i32::from(i16::from_le_bytes(self.element(at))),
                    DType::I8 => i32::from(i8::from_le_bytes(self.element(at))),
                    _ => i32::from(self.element::<1>(at)[0]),
                };
                let key = x as u32 ^ 1 << 31;
                return if self.descending { !key } else { key };
            }
        };
        let sign = 1u32 << (width - 1);
        let magnitude = bits & (sign - 1);
        match (magnitude > infinity, bits & sign != 0 && magnitude != 0) {
            (true, _) => u32::MAX,
            // Magnitudes stay below the middle, so no number meets the key of NaN.
            (_, negative) if negative != self.descending => (1 << 31) - 1 - magnitude,
            _ => (1 << 31) + magnitude,
        }
    }

    /// The same for types of 64 bits.
    fn wide_key(&self, at: usize) -> u64 {
        if self.dtype.bytes() < 8 {
            return u64::from(self.key(at));
        }
        let bits = u64::from_le_bytes(self.element(at));
        if self.dtype == DType::I64 {
            let key = bits ^ 1 << 63;
            return if self.descending { !key } else { key };
        }
        let magnitude = bits & !(1 << 63);
        match (magnitude > f64::INFINITY.to_bits(), bits >> 63 == 1 && magnitude != 0) {
            (true, _) => u64::MAX,
            (_, negative) if negative != self.descending => (1 << 63) - 1 - magnitude,
            _ => (1 << 63) + magnitude,
        }
    }

    fn write(&self, line: usize, from: impl Iterator<Item = usize>, out: &Target) {
        for (i, p) in from.take(self.first).enumerate() {
            let (to, at) = (self.at(line, i), self.at(line, p));
            match (self.give, self.dtype.bytes()) {
                (Give::Positions, _) => out.write(to, (p as i64).to_le_bytes()),
                (_, 1) => out.write(to, self.element::<1>(at)),
                (_, 2) => out.write(to, self.element::<2>(at)),
                (_, 4) => out.write(to, self.element::<4>(at)),
                _ => out.write(to, self.element::<8>(at)),
            }
        }
    }

    /// One line in parts, which threads sort and the caller merges.
    fn long_line(&self, pool: &Pool, line: usize, out: &Target) {
        let part = self.lines.n.div_ceil(pool.threads());
        if self.is_narrow() {
            let mut words = vec![0u64; self.lines.n];
            pool.each_chunk(&mut words, part, &|i, chunk| {
                chunk.iter_mut().enumerate().for_each(|(j, w)| *w = self.word(line, i * part + j));
                smallest(chunk, &mut vec![], self.first);
            });
            keep(&mut words, part, self.first);
            // A merge of sorted runs.
            words.sort();
            self.write(line, words.iter().map(|w| *w as u32 as usize), out);
        } else {
            let mut words = vec![0u128; self.lines.n];
            pool.each_chunk(&mut words, part, &|i, chunk| {
                chunk.iter_mut().enumerate().for_each(|(j, w)| *w = self.wide_word(line, i * part + j));
                smallest_wide(chunk, self.first);
            });
            keep(&mut words, part, self.first);
            words.sort();
            self.write(line, words.iter().map(|w| *w as u64 as usize), out);
        }
    }
}

/// Drops all but the first elements of every part.
fn keep<T: Copy>(words: &mut Vec<T>, part: usize, first: usize) {
    if first < part {
        let kept: Vec<T> = words.chunks(part).flat_map(|c| c.iter().take(first).copied()).collect();
        *words = kept;
    }
}

/// Brings the `first` smallest words to the front, in order.
fn smallest(words: &mut [u64], spare: &mut Vec<u64>, first: usize) {
    if first < words.len() {
        if first > 0 {
            words.select_nth_unstable(first - 1);
            words[..first].sort_unstable();
        }
    } else if words.len() < RADIX_MIN {
        words.sort_unstable();
    } else {
        radix(words, spare);
    }
}

fn smallest_wide(words: &mut [u128], first: usize) {
    if first == 0 {
        return;
    }
    if first < words.len() {
        words.select_nth_unstable(first - 1);
    }
    let end = first.min(words.len());
    words[..end].sort_unstable();
}

/// Sorts by the upper 32 bits and keeps the order of equals: positions ascend already.
fn radix(words: &mut [u64], spare: &mut Vec<u64>) {
    const BITS: u32 = 11;
    const BUCKETS: usize = 1 << BITS;
    let digit = |w: u64, pass: u32| (w >> (32 + pass * BITS)) as usize & (BUCKETS - 1);
    let mut counts = [[0usize; BUCKETS]; 3];
    for w in words.iter() {
        for (pass, counts) in counts.iter_mut().enumerate() {
            counts[digit(*w, pass as u32)] += 1;
        }
    }
    spare.clear();
    spare.resize(words.len(), 0);
    let mut swapped = false;
    for (pass, counts) in counts.iter_mut().enumerate() {
        // A digit that all share needs no pass.
        if counts.contains(&words.len()) {
            continue;
        }
        let mut sum = 0;
        for c in counts.iter_mut() {
            (*c, sum) = (sum, sum + *c);
        }
        let (from, to): (&[u64], &mut [u64]) = if swapped { (spare, words) } else { (words, spare) };
        for w in from {
            let place = &mut counts[digit(*w, pass as u32)];
            to[*place] = *w;
            *place += 1;
        }
        swapped = !swapped;
    }
    if swapped {
        words.copy_from_slice(spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(x: &[f32], descending: bool, first: usize, threads: usize) -> Vec<i64> {
        let bytes: Vec<u8> = x.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut out = vec![0; x.len() * 8];
        let lines = Lines { outer: 1, n: x.len(), inner: 1 };
        let pool = Pool::new(threads);
        sort_lines(&pool, &bytes, DType::F32, lines, descending, first, Give::Positions, &mut out);
        out.as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b)).take(first).collect()
    }

    #[test]
    fn ties_keep_their_order_and_nan_comes_last() {
        let x = [2.0, f32::NAN, -0.0, 0.0, f32::INFINITY, -1.0, 2.0, f32::NEG_INFINITY];
        assert_eq!(sorted(&x, false, 8, 1), [7, 5, 2, 3, 0, 6, 4, 1]);
        assert_eq!(sorted(&x, true, 8, 1), [4, 0, 6, 2, 3, 5, 7, 1]);
        assert_eq!(sorted(&x, true, 3, 1), [4, 0, 6]);
    }

    #[test]
    fn long_lines_are_sorted_alike_by_any_threads() {
        let x: Vec<f32> = (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 12) as f32 - 5e5).collect();
        let mut expected: Vec<i64> = (0..x.len() as i64).collect();
        expected.sort_by(|a, b| x[*a as usize].total_cmp(&x[*b as usize]));
        for threads in [1, 2, 5] {
            assert_eq!(sorted(&x, false, x.len(), threads), expected);
            assert_eq!(sorted(&x, false, 100, threads), expected[..100]);
        }
    }
}

//! Fourier transforms: lengths, stages, tables. The order of operations of every result is
//! fixed here, so that the interpreter and generated kernels agree to the bit whatever the
//! batch, the vector width and the number of threads.
//!
//! A transform of `n = r1·r2·…` points runs Stockham's stages in order. The stage of radix `r`
//! with `s` the product of the radices before it and `m = n/(s·r)` computes for `p < m`, `q < s`
//!
//! ```text
//! y[q + s·(r·p + j)] = w^(p·j) · Σk x[q + s·(p + m·k)]·exp(-2πi·jk/r),   w = exp(-2πi·s/n)
//! ```
//!
//! with the butterflies of [`codelet`]. No permutation remains at the end. The inverse exchanges
//! real and imaginary parts on the way in and out. The real kinds run a complex transform of half
//! the length over neighbouring pairs ([`codelet::split_half`], [`codelet::join_half`]).
//! (Stockham 1966; Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992.)

pub mod codelet;

use crate::prim::FftKind;

/// Complex points of one transform that a kernel keeps at hand for a vector of rows.
pub const POINTS_MAX: u64 = 2048;
/// Largest prime factor of a length with a plan: its butterfly takes quadratic time.
const PRIME_MAX: u64 = 31;
/// Largest composite radix: the parts of 16 points fill a register file of 32.
const RADIX_MAX: u64 = 16;
/// Columns that share one entry of the first twist table.
pub const TWIST_BLOCK: u64 = 16;

/// How a transform of one length is carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    pub kind: FftKind,
    /// Complex points: the length, or half of it for the real kinds.
    pub n: usize,
    pub stages: Vec<Stage>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    pub radix: usize,
    /// Product of the radices before this one (`s`).
    pub before: usize,
    /// Product of the radices after it (`m`).
    pub after: usize,
    /// Where the factors of this stage begin in the table, in floats: for each `p` the real and
    /// imaginary parts of `w^p, w^2p, …, w^(r-1)p`. The last stage has none.
    pub table: usize,
}

/// The plan for `points` (of the real side for the real kinds); `None` for 0, odd real lengths,
/// lengths beyond [`POINTS_MAX`], and those with a prime factor above 31.
pub fn plan(kind: FftKind, points: u64) -> Option<Plan> {
    if points == 0 || (kind.real() && points % 2 == 1) {
        return None;
    }
    let n = if kind.real() { points / 2 } else { points };
    if n > POINTS_MAX {
        return None;
    }
    let mut stages = vec![];
    let (mut before, mut table) = (1, 0);
    for radix in radices(n)? {
        let (radix, n) = (radix as usize, n as usize);
        let after = n / before / radix;
        stages.push(Stage { radix, before, after, table });
        if after > 1 {
            table += 2 * after * (radix - 1);
        }
        before *= radix;
    }
    Some(Plan { kind, n: n as usize, stages })
}

/// Radices in running order, at least one: of all limits on composite radices the one with the
/// fewest stages, each of which goes through memory, and then the least limit.
fn radices(n: u64) -> Option<Vec<u64>> {
    (2..=RADIX_MAX).filter_map(|most| radices_up_to(n, most)).min_by_key(Vec::len)
}

/// Radices, composite ones up to `most`, the larger ones first.
fn radices_up_to(n: u64, most: u64) -> Option<Vec<u64>> {
    let mut rest = n;
    let mut out = vec![];
    while rest > 1 {
        let whole = (2..=most).rev().find(|d| rest.is_multiple_of(*d));
        let prime = || (most + 1..=PRIME_MAX).find(|d| rest.is_multiple_of(*d));
        let radix = whole.or_else(prime)?;
        out.push(radix);
        rest /= radix;
    }
    if out.is_empty() {
        out.push(1);
    }
    Some(out)
}

/// Whether every prime factor is small enough for a butterfly.
pub fn smooth(n: u64) -> bool {
    n > 0 && radices(n).is_some()
}

impl Plan {
    /// Where the factors of the real kinds begin in the table, in floats.
    pub fn half_table(&self) -> usize {
        self.stages.iter().filter(|s| s.after > 1).map(|s| 2 * s.after * (s.radix - 1)).sum()
    }

    /// Floats of the table: those of the stages, then for the real kinds the parts of
    /// `exp(-πi·k/n)` for `k` in `0..=n`.
    pub fn table_len(&self) -> usize {
        self.half_table() + if self.kind.real() { 2 * (self.n + 1) } else { 0 }
    }

    /// The table, each factor rounded once.
    pub fn table(&self) -> Vec<f32> {
        let mut out = Vec::with_capacity(self.table_len());
        for s in self.stages.iter().filter(|s| s.after > 1) {
            for p in 0..s.after {
                for j in 1..s.radix {
                    out.extend(unit((p * j) as u64, (s.after * s.radix) as u64));
                }
            }
        }
        if self.kind.real() {
            for k in 0..=self.n as u64 {
                out.extend(unit(k, 2 * self.n as u64));
            }
        }
        out
    }
}

/// Sizes of the two tables of [`twist_tables`].
pub fn twist_lens(rows: u64, columns: u64) -> [u64; 2] {
    [2 * columns.div_ceil(TWIST_BLOCK) * rows, 2 * TWIST_BLOCK * rows]
}

/// The factors between the two halves of a transform of `n = rows·columns` points: result `k` of
/// column `c` is turned by `w^(k·c)`, `w = exp(-2πi/n)`, as the product of two factors.
///
/// The first table holds `w^(k·16·b)` for block `b` of 16 columns (by block, row, part), the
/// second `w^(k·l)` for `l` in 0..16 (by row, part, `l`).
pub fn twist_tables(rows: u64, columns: u64) -> [Vec<f32>; 2] {
    let n = rows * columns;
    let blocks = columns.div_ceil(TWIST_BLOCK);
    let first = (0..blocks).flat_map(|b| (0..rows).flat_map(move |k| unit(k * b * TWIST_BLOCK % n, n))).collect();
    let part = |k: u64, p: usize| (0..TWIST_BLOCK).map(move |l| unit(k * l % n, n)[p]);
    let second = (0..rows).flat_map(|k| part(k, 0).chain(part(k, 1)).collect::<Vec<_>>()).collect();
    [first, second]
}

/// `exp(-2πi·k/n)`, parts rounded to f32. Cost: constant.
pub fn unit(k: u64, n: u64) -> [f32; 2] {
    let [re, im] = unit_wide(k, n);
    [re as f32, im as f32]
}

/// `exp(-2πi·k/n)` in f64, exact in the eight directions of the axes and diagonals.
pub fn unit_wide(k: u64, n: u64) -> [f64; 2] {
    // The turn in eighths: octant and the part k/n·8 - octant of the next, as a fraction of n.
    let eighths = u128::from(k % n) * 8;
    let (octant, part) = ((eighths / u128::from(n)) as u32, (eighths % u128::from(n)) as u64);
    // In odd octants the angle is measured back from their end.
    let part = if octant % 2 == 1 { n - part } else { part };
    let (s, c) = sin_cos(std::f64::consts::FRAC_PI_4 * (part as f64 / n as f64));
    let (c, s) = match octant {
        0 => (c, s),
        1 => (s, c),
        2 => (-s, c),
        3 => (-c, s),
        4 => (-c, -s),
        5 => (-s, -c),
        6 => (s, -c),
        _ => (c, -s),
    };
    [c, -s]
}

/// Sine and cosine for 0 to π/4 by their series; no libm, so that tables do not depend on one.
fn sin_cos(x: f64) -> (f64, f64) {
    let square = x * x;
    // From the inside out: 1 - x²/(a·(a+1))·(1 - …), with a = 1, 3, … for the cosine.
    let series = |first: u32| {
        (0..9u32).rev().fold(1.0, |sum, d| {
            let a = f64::from(2 * d + first);
            1.0 - square / (a * (a + 1.0)) * sum
        })
    };
    (x * series(2), series(1))
}

#[cfg(test)]
mod tests;

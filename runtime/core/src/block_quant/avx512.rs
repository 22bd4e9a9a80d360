//! Panels in registers of 512 bits: 16 columns a vector, two vectors a panel.
//!
//! Sixteen bytes of a block of each column are loaded and turned so that a lane holds four of a
//! column's bytes; a shift brings the bits of one number to the lower end of every lane, and a
//! table of sixteen floats or a conversion makes it a number.

use super::{COLUMNS, Product, ROWS, over_leaves};
use std::arch::x86_64::*;
use std::ops::Range;
use tessera_base::Blocks;

const Q4_0: u8 = 0;
const Q4_1: u8 = 1;
const Q8_0: u8 = 2;
/// Numbers of a block.
const ELEMS: usize = 32;
const LINE: usize = 64;

pub fn covers(format: Blocks) -> bool {
    matches!(format, Blocks::Q4_0 | Blocks::Q4_1 | Blocks::Q8_0)
}

/// Where the blocks of a panel's columns are.
struct Rows {
    base: *const u8,
    /// The first block of each column, in bytes from the base.
    at: [usize; COLUMNS],
    /// The same as lanes.
    lanes: [__m512i; 2],
    /// Bytes to the next panel.
    panel: usize,
}

/// All rows of one panel.
///
/// # Safety
/// The processor has AVX-512F; the product's sizes fit its slices, and [`covers`] its format.
#[target_feature(enable = "avx512f")]
pub unsafe fn panel(p: &Product, panel: usize) {
    let first = panel * COLUMNS;
    let count = COLUMNS.min(p.n - first);
    let blocks = p.k / ELEMS;
    let row = blocks * p.format.bytes();
    // Columns beyond the last repeat it and are not stored.
    let at: [usize; COLUMNS] = std::array::from_fn(|c| c.min(count - 1) * row);
    let lanes = [0, 16].map(|half| {
        let at: [i32; 16] = std::array::from_fn(|i| at[half + i] as i32);
        // SAFETY: 64 bytes.
        unsafe { _mm512_loadu_si512(at.as_ptr().cast()) }
    });
    // SAFETY: the panel's first row is inside.
    let base = unsafe { p.blocks.as_ptr().add(first * row) };
    let rows = Rows { base, at, lanes, panel: COLUMNS * row };
    for r in (0..p.m).step_by(ROWS) {
        let left = (p.m - r).min(ROWS);
        // SAFETY: row `r` and the `left - 1` after it are inside.
        let (x, out) = unsafe { (p.x.as_ptr().add(r * p.k), p.out.0.add(r * p.n + first)) };
        macro_rules! by_rows {
            ($($m:literal)*) => {
                match left {
                    // SAFETY: as above.
                    $($m => unsafe { by_format::<$m>(p, x, &rows, out, count) },)*
                    _ => {}
                }
            };
        }
        by_rows!(1 2 3 4 5 6 7 8);
    }
}

#[target_feature(enable = "avx512f")]
unsafe fn by_format<const M: usize>(p: &Product, x: *const f32, rows: &Rows, out: *mut f32, count: usize) {
    let zero = [[_mm512_setzero_ps(); 2]; M];
    let chain = |leaf: Range<usize>| {
        let blocks = leaf.start / ELEMS..leaf.end / ELEMS;
        // SAFETY: the caller's promise.
        unsafe {
            match p.format {
                Blocks::Q4_0 => sums::<Q4_0, M>(x, p.k, rows, blocks),
                Blocks::Q4_1 => sums::<Q4_1, M>(x, p.k, rows, blocks),
                _ => sums::<Q8_0, M>(x, p.k, rows, blocks),
            }
        }
    };
    let add = |a: &[[__m512; 2]; M], b: &[[__m512; 2]; M]| -> [[__m512; 2]; M] {
        std::array::from_fn(|r| std::array::from_fn(|c| _mm512_add_ps(a[r][c], b[r][c])))
    };
    let sums = over_leaves(p.k, zero, chain, add);
    let valid = ((1u64 << count) - 1) as u32;
    for (r, sums) in sums.iter().enumerate() {
        // SAFETY: the lanes that are stored are columns of row `r` of the result.
        unsafe {
            _mm512_mask_storeu_ps(out.add(r * p.n), valid as u16, sums[0]);
            _mm512_mask_storeu_ps(out.wrapping_add(r * p.n + 16), (valid >> 16) as u16, sums[1]);
        }
    }
}

const fn bytes(format: u8) -> usize {
    match format {
        Q4_0 => 18,
        Q4_1 => 20,
        _ => 34,
    }
}

/// Sixteen bytes of sixteen columns: lane `c` of vector `q` is bytes `4q` to `4q + 3` of column
/// `half + c`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn turned(rows: &Rows, half: usize, at: usize) -> [__m512i; 4] {
    // SAFETY: a block has sixteen bytes here.
    let one = |i: usize| unsafe { _mm_loadu_si128(rows.base.add(rows.at[half + i] + at).cast()) };
    let four = |i: usize| {
        let a = _mm512_castsi128_si512(one(i));
        let a = _mm512_inserti32x4::<1>(a, one(4 + i));
        let a = _mm512_inserti32x4::<2>(a, one(8 + i));
        _mm512_inserti32x4::<3>(a, one(12 + i))
    };
    let [a, b, c, d] = [four(0), four(1), four(2), four(3)];
    let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
    let (ab_high, cd_high) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
    [
        _mm512_unpacklo_epi64(ab, cd),
        _mm512_unpackhi_epi64(ab, cd),
        _mm512_unpacklo_epi64(ab_high, cd_high),
        _mm512_unpackhi_epi64(ab_high, cd_high),
    ]
}

/// The f16 numbers in the lower halves of the lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn halves(lanes: __m512i) -> __m512 {
    _mm512_cvtph_ps(_mm512_cvtepi32_epi16(lanes))
}

/// Sixteen numbers: the bits from `shift` on of every lane.
#[inline]
#[target_feature(enable = "avx512f")]
fn value<const F: u8>(lanes: __m512i, shift: u32, table: __m512, scale: __m512, low: __m512) -> __m512 {
    if F == Q8_0 {
        let up = _mm512_sllv_epi32(lanes, _mm512_set1_epi32(24 - shift as i32));
        return _mm512_mul_ps(scale, _mm512_cvtepi32_ps(_mm512_srai_epi32::<24>(up)));
    }
    // The table is asked by the lower four bits.
    let q = _mm512_permutexvar_ps(_mm512_srlv_epi32(lanes, _mm512_set1_epi32(shift as i32)), table);
    // Scale times a number of four bits is exact, so this rounds once, like a sum of a product.
    if F == Q4_1 { _mm512_fmadd_ps(scale, q, low) } else { _mm512_mul_ps(scale, q) }
}

/// `M` rows by the panel's columns.
#[target_feature(enable = "avx512f")]
unsafe fn sums<const F: u8, const M: usize>(
    x: *const f32,
    k: usize,
    rows: &Rows,
    blocks: Range<usize>,
) -> [[__m512; 2]; M] {
    let mut sums = [[_mm512_setzero_ps(); 2]; M];
    let from = if F == Q4_0 { -8.0 } else { 0.0 };
    let table: [f32; 16] = std::array::from_fn(|i| from + i as f32);
    // SAFETY: sixteen numbers.
    let table = unsafe { _mm512_loadu_ps(table.as_ptr()) };
    for block in blocks {
        let at = block * bytes(F);
        for line in (0..COLUMNS * bytes(F)).step_by(LINE) {
            _mm_prefetch::<_MM_HINT_T0>(rows.base.wrapping_add(rows.panel + block * COLUMNS * bytes(F) + line).cast());
        }
        // SAFETY: a block has more than four bytes.
        let heads = rows.lanes.map(|l| unsafe { _mm512_i32gather_epi32::<1>(l, rows.base.add(at).cast()) });
        let scale = heads.map(|h| halves(h));
        let low = heads.map(|h| halves(_mm512_srli_epi32::<16>(h)));
        macro_rules! step {
            ($lanes:expr, $q:expr, $shift:expr, $at:expr) => {{
                let w = [
                    value::<F>($lanes[0][$q], $shift, table, scale[0], low[0]),
                    value::<F>($lanes[1][$q], $shift, table, scale[1], low[1]),
                ];
                for r in 0..M {
                    // SAFETY: the position is inside row `r`.
                    let x = _mm512_set1_ps(unsafe { *x.add(r * k + block * ELEMS + $at) });
                    sums[r][0] = _mm512_fmadd_ps(x, w[0], sums[r][0]);
                    sums[r][1] = _mm512_fmadd_ps(x, w[1], sums[r][1]);
                }
            }};
        }
        macro_rules! sixteen {
            ($lanes:expr, $first:expr, $at:expr) => {
                for q in 0..4 {
                    step!($lanes, q, $first, $at + 4 * q);
                    step!($lanes, q, $first + 8, $at + 4 * q + 1);
                    step!($lanes, q, $first + 16, $at + 4 * q + 2);
                    step!($lanes, q, $first + 24, $at + 4 * q + 3);
                }
            };
        }
        let at = at + if F == Q4_1 { 4 } else { 2 };
        // SAFETY: the block has these bytes.
        let lanes = unsafe { [turned(rows, 0, at), turned(rows, 16, at)] };
        sixteen!(lanes, 0, 0);
        if F == Q8_0 {
            // SAFETY: as above.
            let lanes = unsafe { [turned(rows, 0, at + 16), turned(rows, 16, at + 16)] };
            sixteen!(lanes, 0, 16);
        } else {
            sixteen!(lanes, 4, 16);
        }
    }
    sums
}

//! The numbers of matrices, and the tiles of products that registers hold.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Rows of a tile with vectors of 512 bits, and of one without.
const ROWS_WIDE: usize = 8;
const ROWS: usize = 4;

/// Chains of a sum along a vector.
pub const LANES: usize = 16;

/// f32 or f64, and the tile of a product that registers hold.
pub trait Real:
    Copy
    + PartialOrd
    + Default
    + Send
    + Sync
    + fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    /// The distance from 1 to the next number.
    const EPSILON: Self;
    /// Magnitudes whose squares neither overflow nor lose digits, for sums of up to 2^24 of them.
    const SAFE: [Self; 2];

    fn mul_add(self, a: Self, b: Self) -> Self;
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    fn is_finite(self) -> bool;
    /// A power of two that brings a magnitude above zero into [1, 2), or near it for subnormal ones.
    fn to_unit(self) -> Self;
    fn to_f64(self) -> f64;
    fn from_f64(x: f64) -> Self;
    /// The rows and columns of a tile, and the function for one.
    fn tile() -> Tile<Self>;
}

macro_rules! real {
    ($t:ident, $bits:ident, $mantissa:literal, $bias:literal, $safe:expr, $wide:literal, $narrow:literal) => {
        impl Real for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const EPSILON: $t = $t::EPSILON;
            const SAFE: [$t; 2] = $safe;

            #[inline(always)]
            fn mul_add(self, a: $t, b: $t) -> $t {
                $t::mul_add(self, a, b)
            }
            #[inline(always)]
            fn sqrt(self) -> $t {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn abs(self) -> $t {
                $t::abs(self)
            }
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            fn to_unit(self) -> $t {
                let exponent = (self.to_bits() >> $mantissa) as i64 & (2 * $bias + 1);
                // The largest power of two is one less than what the smallest numbers would need.
                $t::from_bits(((2 * $bias - exponent).clamp(1, 2 * $bias) as $bits) << $mantissa)
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn from_f64(x: f64) -> $t {
                x as $t
            }
            fn tile() -> Tile<$t> {
                #[cfg(target_arch = "x86_64")]
                {
                    if std::arch::is_x86_feature_detected!("avx512f") {
                        return Tile { rows: ROWS_WIDE, columns: $wide, add: tiles::$t::wide };
                    }
                    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                        return Tile { rows: ROWS, columns: $narrow, add: tiles::$t::narrow };
                    }
                }
                Tile { rows: ROWS, columns: $narrow, add: plain::<$t, $narrow> }
            }
        }
    };
}

real!(f32, u32, 23, 127, [9.094947e-13, 1.0995116e12], 32, 16);
real!(f64, u64, 52, 1023, [1e-120, 1e120], 16, 8);

/// `c += a · b` for a tile: `a` holds its rows for one step after another, `b` its columns.
pub type Tiled<T> = fn(a: &[T], b: &[T], c: &mut [T]);

/// The tile of the processor.
#[derive(Clone, Copy)]
pub struct Tile<T> {
    pub rows: usize,
    pub columns: usize,
    pub add: Tiled<T>,
}

/// A tile without vectors of a processor.
fn plain<T: Real, const C: usize>(a: &[T], b: &[T], c: &mut [T]) {
    for (i, sums) in c.as_chunks_mut::<C>().0.iter_mut().enumerate() {
        for (x, y) in a.as_chunks::<ROWS>().0.iter().zip(b.as_chunks::<C>().0) {
            for (sum, y) in sums.iter_mut().zip(y) {
                *sum = x[i].mul_add(*y, *sum);
            }
        }
    }
}

/// Tiles of two vectors a row, whose sums stay in registers.
#[cfg(target_arch = "x86_64")]
mod tiles {
    macro_rules! tile {
        ($name:ident, $feature:literal, $rows:expr, $t:ident, $lanes:literal, $load:ident, $store:ident, $all:ident, $fma:ident) => {
            pub fn $name(a: &[$t], b: &[$t], c: &mut [$t]) {
                #[target_feature(enable = $feature)]
                fn run(a: &[$t], b: &[$t], c: &mut [[[$t; $lanes]; 2]]) {
                    let Some(c) = c.first_chunk_mut::<{ $rows }>() else { return };
                    // SAFETY: as many numbers lie there as a vector has.
                    let load = |x: &[$t; $lanes]| unsafe { $load(x.as_ptr()) };
                    let mut sums = [[$all(0.0); 2]; $rows];
                    for i in 0..$rows {
                        sums[i] = [load(&c[i][0]), load(&c[i][1])];
                    }
                    let steps = b.as_chunks::<$lanes>().0.as_chunks::<2>().0;
                    for (x, y) in a.as_chunks::<{ $rows }>().0.iter().zip(steps) {
                        let y = [load(&y[0]), load(&y[1])];
                        for i in 0..$rows {
                            let x = $all(x[i]);
                            sums[i] = [$fma(x, y[0], sums[i][0]), $fma(x, y[1], sums[i][1])];
                        }
                    }
                    for i in 0..$rows {
                        for half in 0..2 {
                            // SAFETY: as many numbers lie there as a vector has.
                            unsafe { $store(c[i][half].as_mut_ptr(), sums[i][half]) }
                        }
                    }
                }
                // SAFETY: the processor has the vectors: who took this function has asked.
                unsafe { run(a, b, c.as_chunks_mut::<$lanes>().0.as_chunks_mut::<2>().0) }
            }
        };
    }

    pub mod f32 {
        use super::super::{ROWS, ROWS_WIDE};
        use std::arch::x86_64::*;
        tile!(wide, "avx512f", ROWS_WIDE, f32, 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps);
        tile!(narrow, "avx2,fma", ROWS, f32, 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_fmadd_ps);
    }

    pub mod f64 {
        use super::super::{ROWS, ROWS_WIDE};
        use std::arch::x86_64::*;
        tile!(wide, "avx512f", ROWS_WIDE, f64, 8, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_fmadd_pd);
        tile!(narrow, "avx2,fma", ROWS, f64, 4, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_fmadd_pd);
    }
}

//! The numbers of matrices, and the tiles of products that registers hold.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};

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
                tile::<$t, 8, $wide, 4, $narrow>()
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

/// The tile that fits the registers of the processor: `WR` by `WC` with vectors of 512 bits, `R` by `C` without.
pub fn tile<T: Real, const WR: usize, const WC: usize, const R: usize, const C: usize>() -> Tile<T> {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return Tile { rows: WR, columns: WC, add: wide::<T, WR, WC> };
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            return Tile { rows: R, columns: C, add: narrow::<T, R, C> };
        }
    }
    Tile { rows: R, columns: C, add: plain::<T, R, C> }
}

#[inline(always)]
fn steps<T: Real, const R: usize, const C: usize>(a: &[T], b: &[T], c: &mut [T]) {
    let lines = c.as_chunks_mut::<C>().0;
    let mut sums = [[T::ZERO; C]; R];
    sums.iter_mut().zip(lines.iter()).for_each(|(s, l)| *s = *l);
    for (x, y) in a.as_chunks::<R>().0.iter().zip(b.as_chunks::<C>().0) {
        for i in 0..R {
            for j in 0..C {
                sums[i][j] = x[i].mul_add(y[j], sums[i][j]);
            }
        }
    }
    lines.iter_mut().zip(sums).for_each(|(l, s)| *l = s);
}

fn plain<T: Real, const R: usize, const C: usize>(a: &[T], b: &[T], c: &mut [T]) {
    steps::<T, R, C>(a, b, c);
}

#[cfg(target_arch = "x86_64")]
fn wide<T: Real, const R: usize, const C: usize>(a: &[T], b: &[T], c: &mut [T]) {
    #[target_feature(enable = "avx512f")]
    fn run<T: Real, const R: usize, const C: usize>(a: &[T], b: &[T], c: &mut [T]) {
        steps::<T, R, C>(a, b, c);
    }
    // SAFETY: the processor has it: who took this function has asked.
    unsafe { run::<T, R, C>(a, b, c) }
}

#[cfg(target_arch = "x86_64")]
fn narrow<T: Real, const R: usize, const C: usize>(a: &[T], b: &[T], c: &mut [T]) {
    #[target_feature(enable = "avx2,fma")]
    fn run<T: Real, const R: usize, const C: usize>(a: &[T], b: &[T], c: &mut [T]) {
        steps::<T, R, C>(a, b, c);
    }
    // SAFETY: the processor has both: who took this function has asked.
    unsafe { run::<T, R, C>(a, b, c) }
}

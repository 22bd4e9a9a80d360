//! Convolution by transforms: a product of spectra in place of a sum over the kernel.
//!
//! It rounds differently from the chain over channels and kernel that `conv2d` promises, so that only
//! `numerics.policy("fast")` takes it, and only where it is clearly less work.

use super::super::expand;
use super::super::spectral::{Direction, from_half, to_half, transform};
use super::super::windows::Known;
use super::super::{Build, Id};
use crate::fft::POINTS_MAX;
use crate::map::MapOp;
use crate::numbers::NumberOp;
use tessera_base::DType;

/// Multiply-adds per nanosecond of a product of many rows, and of each where there are few.
const PRODUCT_RATE: f64 = 100.0;
const ROW_RATE: f64 = 10.0;
/// Operations per nanosecond of a transform, counted as `2.5 n log₂ n` for `n` real numbers, and of
/// one that is too long for a plan and takes several.
const TRANSFORM_RATE: f64 = 30.0;
const LONG_RATE: f64 = 4.0;
/// Nanoseconds for each number to be moved.
const MOVE_NS: f64 = 0.25;
/// The same where channels are mixed: spectra are turned to have the channels innermost.
const TURN_NS: f64 = 3.0;
/// How much faster it has to be by this estimate.
const GAIN: f64 = 1.3;

/// The sizes of a convolution in groups.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub batch: u64,
    pub groups: u64,
    /// Channels of a group on either side.
    pub inside: u64,
    pub outputs: u64,
}

/// The least even length from `n` on without prime factors above 5: a circle on which the whole
/// padded input lies, so that no window reaches around.
fn length(n: u64) -> u64 {
    let smooth = |mut n: u64| {
        for p in [2, 3, 5] {
            while n.is_multiple_of(p) {
                n /= p;
            }
        }
        n == 1
    };
    let start = n.max(2).next_multiple_of(2);
    (start..).step_by(2).find(|n| smooth(*n)).unwrap_or(start)
}

/// Which way a product goes decides its bits, so the logarithm is that of programs, not one of the system.
fn log2(x: f64) -> f64 {
    NumberOp::math_log2.apply(x.to_bits(), 0).map_or(f64::NAN, f64::from_bits)
}

/// Whether transforms of a padded input of these `lengths` are worth it.
pub fn wins(s: Sizes, lengths: &[u64], dims: &[Known]) -> bool {
    if dims.iter().any(|d| d.stride != 1 || d.dilation != 1 || d.kernel < 2 || d.count == 0) {
        return false;
    }
    let all = |sizes: &mut dyn Iterator<Item = u64>| sizes.map(|n| n as f64).product::<f64>();
    let (kernel, places) = (all(&mut dims.iter().map(|d| d.kernel)), all(&mut dims.iter().map(|d| d.count)));
    let [batch, groups, inside, outputs] = [s.batch, s.groups, s.inside, s.outputs].map(|n| n as f64);
    let direct = batch * groups * outputs * inside * kernel * places / (ROW_RATE * outputs).min(PRODUCT_RATE);
    let points = all(&mut lengths.iter().map(|n| length(*n)));
    let spectra = groups * (batch * inside + outputs * inside + batch * outputs);
    let planned = lengths.iter().all(|n| length(*n) <= POINTS_MAX);
    let rate = if planned { TRANSFORM_RATE } else { LONG_RATE };
    let (move_ns, mix_rate) =
        if s.inside * s.outputs == 1 { (MOVE_NS, ROW_RATE) } else { (TURN_NS, PRODUCT_RATE / 4.0) };
    let transforms = spectra * points * (2.5 * log2(points) / rate + move_ns);
    let products = groups * batch * inside * outputs * 4.0 * points / 2.0 / mix_rate;
    direct > GAIN * (transforms + products)
}

/// `x` is the padded input `[batch, groups, inside, d…]`, `w` the weights `[groups, outputs, inside, k…]`;
/// gives `[batch, groups, outputs, count…]`, all f32.
pub fn conv(b: &mut dyn Build, x: Id, w: Id, s: Sizes, dims: &[Known]) -> Id {
    let lengths: Vec<u64> = b.shape(x)[3..].iter().map(|n| length(*n)).collect();
    let (x, w) = (spectrum(b, x, &lengths), spectrum(b, w, &lengths));
    // Windows are not turned round: the weights' spectrum counts as its conjugate.
    let (re, im) = (expand::real(b, w), expand::imag(b, w));
    let im = expand::unary(b, MapOp::neg, im);
    let w = expand::complex(b, re, im);
    let half = b.shape(x)[3..].to_vec();
    let product = if s.inside * s.outputs == 1 {
        let shape = [&[1, s.groups, 1], &half[..]].concat();
        let w = expand::reshape(b, w, &shape);
        expand::binary(b, MapOp::mul, x, w)
    } else {
        mixed(b, x, w, s, &half)
    };
    let last = 2 + lengths.len();
    let mut y = product;
    for axis in 3..last {
        y = transform(b, y, axis, Direction::Inverse, 1.0);
    }
    let points: f64 = lengths.iter().map(|&n| n as f64).product();
    y = from_half(b, y, last, lengths[lengths.len() - 1], 1.0 / points);
    dims.iter().enumerate().fold(y, |y, (d, dim)| expand::slice(b, y, 3 + d, 0, dim.count))
}

/// Zeros up to `lengths`, then half a spectrum along the last dim and whole ones along the others.
fn spectrum(b: &mut dyn Build, x: Id, lengths: &[u64]) -> Id {
    let x = lengths.iter().enumerate().fold(x, |x, (d, n)| expand::fit(b, x, 3 + d, *n));
    let last = 2 + lengths.len();
    let x = to_half(b, x, last, lengths[lengths.len() - 1] / 2 + 1, 1.0);
    (3..last).fold(x, |x, axis| transform(b, x, axis, Direction::Forward, 1.0))
}

/// A product of matrices over the channels for each frequency and group.
fn mixed(b: &mut dyn Build, x: Id, w: Id, s: Sizes, half: &[u64]) -> Id {
    let n = half.len();
    let points: u64 = half.iter().product();
    let front = |rest: &[usize]| (3..3 + n).chain(rest.iter().copied()).collect::<Vec<_>>();
    // [f…, groups, batch, inside] and [f…, groups, inside, outputs].
    let x = expand::transpose(b, x, &front(&[1, 0, 2]));
    let x = expand::reshape(b, x, &[points * s.groups, s.batch, s.inside]);
    let w = expand::transpose(b, w, &front(&[0, 2, 1]));
    let w = expand::reshape(b, w, &[points * s.groups, s.inside, s.outputs]);
    let y = expand::dot(b, x, w, DType::C64, DType::C64);
    let y = expand::reshape(b, y, &[half, &[s.groups, s.batch, s.outputs]].concat());
    let back: Vec<usize> = [n + 1, n, n + 2].into_iter().chain(0..n).collect();
    expand::transpose(b, y, &back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_kernels_win_and_short_ones_do_not() {
        let dim = |kernel: u64, count: u64| Known { kernel, stride: 1, dilation: 1, low: 0, high: 0, count };
        let apart = Sizes { batch: 1, groups: 64, inside: 1, outputs: 1 };
        assert!(wins(apart, &[8191], &[dim(4096, 4096)]));
        assert!(!wins(apart, &[4098], &[dim(3, 4096)]));
        let image = Sizes { batch: 1, groups: 1, inside: 64, outputs: 64 };
        assert!(!wins(image, &[58, 58], &[dim(3, 56), dim(3, 56)]));
        assert_eq!([1, 7, 8191, 31].map(length), [2, 8, 8192, 32]);
    }
}

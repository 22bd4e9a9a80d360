//! Systems of equations with a triangular matrix.
//!
//! Unknown `i` is `(b_i - Σ l_ik x_k) / l_ii`: one chain of fused multiply-adds over what was found before, in
//! the order in which it was found, then the division. So every system becomes one with a lower triangle.

use super::matrix::{Failure, View};
use super::number::Real;
use super::product::{Products, Sizes, Target};
use super::vectors::{add_rows_inline, vectorised};
use super::workers::Workers;

/// Equations that are solved without a product.
const LEAF: usize = 16;
/// Columns of the right side that are taken through a leaf at once.
const STRIP: usize = 128;

/// Which triangle of a matrix counts, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Triangle {
    pub lower: bool,
    /// Of the transposed matrix: the triangle is that of the matrix as it lies.
    pub transposed: bool,
    /// The diagonal is all ones, whatever stands there.
    pub unit: bool,
}

/// Solves `l · x = b` for the lower triangle of `l`; `x` holds the `n` rows of `b`, `width` elements each.
pub fn solve_lower<T: Real, W: Workers>(
    products: &mut Products<T, W>,
    l: View<T>,
    n: usize,
    unit: bool,
    x: &mut [T],
    width: usize,
) {
    if width == 0 {
        return;
    }
    if n <= LEAF {
        let mut factors = [[T::ZERO; LEAF]; LEAF];
        for (i, row) in factors[..n].iter_mut().enumerate() {
            row[..=i].iter_mut().enumerate().for_each(|(k, to)| *to = l.at(i, k));
        }
        return leaf(&factors[..n], unit, &mut x[..n * width], width);
    }
    let first = (n / 2).next_multiple_of(LEAF);
    let (top, bottom) = x.split_at_mut(first * width);
    solve_lower(products, l, first, unit, top, width);
    let sizes = Sizes { m: n - first, n: width, k: first };
    products.take(sizes, l.from(first, 0), View::rows(top, width), true);
    products.add(Target { data: bottom, width, column: 0, lower: false });
    solve_lower(products, l.from(first, first), n - first, unit, bottom, width);
}

vectorised! {
    fn leaf<T: Real>(l: &[[T; LEAF]], unit: bool, x: &mut [T], width: usize) {
        for from in (0..width).step_by(STRIP) {
            let count = STRIP.min(width - from);
            for (i, row) in l.iter().enumerate() {
                let mut by = *row;
                by[..i].iter_mut().for_each(|x| *x = -*x);
                let (found, rest) = x.split_at_mut(i * width);
                let sums = &mut rest[from..][..count];
                add_rows_inline(&by[..i], found, width, from, sums);
                if !unit {
                    sums.iter_mut().for_each(|s| *s = *s / row[i]);
                }
            }
        }
    }
}

/// The solution of `op(a) · x = b`, where `op` and the triangle of `a` (`n` by `n`) are those of `triangle`; `b` has `n`
/// rows of `width` elements. What stands in the other triangle is not read.
///
/// # Errors
/// [`Failure::Singular`] where the diagonal has a zero.
pub fn solve_triangular<T: Real, W: Workers>(
    workers: &W,
    a: &[T],
    n: usize,
    b: &[T],
    width: usize,
    triangle: Triangle,
    x: &mut [T],
) -> Result<(), Failure> {
    let Triangle { lower, transposed, unit } = triangle;
    if !unit && let Some(at) = (0..n).find(|i| a[i * n + i] == T::ZERO) {
        return Err(Failure::Singular { at });
    }
    if n == 0 || width == 0 {
        return Ok(());
    }
    let mut products = Products::new(workers);
    if lower != transposed {
        let l = if transposed { View::columns(a, n) } else { View::rows(a, n) };
        x.copy_from_slice(b);
        solve_lower(&mut products, l, n, unit, x, width);
        return Ok(());
    }
    // From the last unknown to the first: the same from the other end.
    let mut turned = vec![T::ZERO; n * n];
    for i in 0..n {
        for k in 0..=i {
            let (row, column) = (n - 1 - i, n - 1 - k);
            turned[i * n + k] = if transposed { a[column * n + row] } else { a[row * n + column] };
        }
    }
    let flip = |from: &[T], to: &mut [T]| {
        to.chunks_exact_mut(width).zip(from.chunks_exact(width).rev()).for_each(|(t, f)| t.copy_from_slice(f));
    };
    let mut found = vec![T::ZERO; n * width];
    flip(b, &mut found);
    solve_lower(&mut products, View::rows(&turned, n), n, unit, &mut found, width);
    flip(&found, x);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::workers::Alone;
    use super::*;

    /// Unknown after unknown, as the definition says.
    fn plainly(a: &[f64], n: usize, b: &[f64], width: usize, t: Triangle) -> Vec<f64> {
        let at = |i: usize, k: usize| if t.transposed { a[k * n + i] } else { a[i * n + k] };
        let mut x = b.to_vec();
        let down = t.lower != t.transposed;
        for j in 0..width {
            for step in 0..n {
                let i = if down { step } else { n - 1 - step };
                let before = (0..step).map(|s| if down { s } else { n - 1 - s });
                let sum = before.fold(x[i * width + j], |sum, k| (-at(i, k)).mul_add(x[k * width + j], sum));
                x[i * width + j] = if t.unit { sum } else { sum / at(i, i) };
            }
        }
        x
    }

    #[test]
    fn unknowns_are_chains_in_the_order_in_which_they_are_found() {
        let number = |i: usize| (i * 7919 % 1009) as f64 / 503.0 - 1.0;
        for (n, width) in [(1, 1), (3, 40), (16, 2), (17, 33), (70, 5), (100, 65)] {
            let mut a: Vec<f64> = (0..n * n).map(|i| number(i) / n as f64).collect();
            (0..n).for_each(|i| a[i * n + i] += 2.0);
            let b: Vec<f64> = (0..n * width).map(|i| number(i + 3)).collect();
            for bits in 0..8 {
                let t = Triangle { lower: bits & 1 > 0, transposed: bits & 2 > 0, unit: bits & 4 > 0 };
                let mut x = vec![0.0; n * width];
                assert_eq!(solve_triangular(&Alone, &a, n, &b, width, t, &mut x), Ok(()));
                assert_eq!(x, plainly(&a, n, &b, width, t), "{n} {width} {t:?}");
            }
        }
    }

    #[test]
    fn a_zero_on_the_diagonal_is_told() {
        let t = Triangle { lower: true, transposed: false, unit: false };
        let failure = solve_triangular(&Alone, &[1.0, 0.0, 1.0, 0.0], 2, &[1.0, 1.0], 1, t, &mut [0.0; 2]);
        assert_eq!(failure, Err(Failure::Singular { at: 1 }));
    }
}

//! The Cholesky factor: `l_ij = (a_ij - Σ l_ik l_jk) / l_jj`, the sum one chain in ascending `k`.

use super::matrix::{Failure, View, finite_lower, transposed};
use super::number::Real;
use super::product::{Products, Sizes, Target};
use super::triangular::solve_lower;
use super::vectors::vectorised;
use super::workers::Workers;
use std::cmp::Ordering;

/// Rows that are factored without a product.
const LEAF: usize = 16;

/// The lower triangular `l` with `l · lᵀ = a`, in place of `a` (`n` by `n`), of which only the lower triangle is read.
/// Zeros stand above the diagonal of `l`.
///
/// Cost: `n³/3` multiplications.
///
/// # Errors
/// [`Failure::NotFinite`], [`Failure::NotPositive`].
pub fn cholesky<T: Real, W: Workers>(workers: &W, a: &mut [T], n: usize) -> Result<(), Failure> {
    finite_lower(a, n)?;
    let mut products = Products::new(workers);
    block(&mut products, a, n, 0, n)?;
    for (i, row) in a.chunks_exact_mut(n.max(1)).enumerate() {
        row[i + 1..].fill(T::ZERO);
    }
    Ok(())
}

/// Rows and columns `at..at + size`, from which all before has been subtracted.
fn block<T: Real, W: Workers>(
    products: &mut Products<T, W>,
    a: &mut [T],
    n: usize,
    at: usize,
    size: usize,
) -> Result<(), Failure> {
    if size <= LEAF {
        // Turned: what is divided, and what is subtracted, lies side by side.
        let mut columns = [[T::ZERO; LEAF]; LEAF];
        for i in 0..size {
            let row = &a[(at + i) * n + at..][..=i];
            row.iter().zip(&mut columns).for_each(|(x, column)| column[i] = *x);
        }
        let failed = leaf(&mut columns, size);
        if failed < size {
            return Err(Failure::NotPositive { at: at + failed, value: columns[failed][failed].to_f64() });
        }
        for i in 0..size {
            let row = &mut a[(at + i) * n + at..][..=i];
            row.iter_mut().zip(&columns).for_each(|(x, column)| *x = column[i]);
        }
        return Ok(());
    }
    let first = (size / 2).next_multiple_of(LEAF);
    let rest = size - first;
    block(products, a, n, at, first)?;
    // The rows below, turned: each of their rows becomes a column of the right side.
    let mut below = transposed(&a[(at + first) * n + at..], rest, first, n);
    solve_lower(products, View::rows(&a[at * n + at..], n), first, false, &mut below, rest);
    for i in 0..rest {
        let row = &mut a[(at + first + i) * n + at..][..first];
        row.iter_mut().zip(below[i..].iter().step_by(rest)).for_each(|(to, x)| *to = *x);
    }
    let sizes = Sizes { m: rest, n: rest, k: first };
    products.take(sizes, View::columns(&below, rest), View::rows(&below, rest), true);
    let data = &mut a[(at + first) * n..];
    products.add(Target { data, width: n, column: at + first, lower: true });
    block(products, a, n, at + first, rest)
}

vectorised! {
    /// Factors the first `n` rows, each of which stands in a column here; gives `n`, or the row whose pivot, which is left
    /// there, is not positive. What is above the diagonal may become anything.
    fn leaf<T: Real>(a: &mut [[T; LEAF]; LEAF], n: usize) -> usize {
        for k in 0..n {
            let pivot = a[k][k];
            if pivot.partial_cmp(&T::ZERO) != Some(Ordering::Greater) {
                return k;
            }
            let root = pivot.sqrt();
            let (before, rest) = a.split_at_mut(k + 1);
            let column = &mut before[k];
            column.iter_mut().for_each(|x| *x = *x / root);
            column[k] = root;
            for (i, own) in (k + 1..n).zip(rest) {
                let by = -column[i];
                for (x, c) in own.iter_mut().zip(&*column) {
                    *x = by.mul_add(*c, *x);
                }
            }
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::super::workers::Alone;
    use super::*;

    #[test]
    fn elements_are_chains() {
        for n in [0, 1, 2, 15, 16, 17, 40, 100] {
            let number = |i: usize| (i * 7919 % 1009) as f64 / 503.0 - 1.0;
            let mut a: Vec<f64> = (0..n * n).map(number).collect();
            (0..n).for_each(|i| a[i * n + i] += n as f64 + 1.0);
            let mut expected = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..=i {
                    let l = &expected;
                    let sum = (0..j).fold(a[i * n + j], |sum, k| f64::mul_add(-l[i * n + k], l[j * n + k], sum));
                    expected[i * n + j] = if i == j { sum.sqrt() } else { sum / expected[j * n + j] };
                }
            }
            assert_eq!(cholesky(&Alone, &mut a, n), Ok(()));
            assert_eq!(a, expected, "{n}");
        }
    }

    #[test]
    fn what_is_not_positive_definite_is_told() {
        let mut a = [1.0, 0.0, 2.0, 1.0];
        assert_eq!(cholesky(&Alone, &mut a, 2), Err(Failure::NotPositive { at: 1, value: -3.0 }));
        let mut a = [f64::NAN];
        assert!(matches!(cholesky(&Alone, &mut a, 1), Err(Failure::NotFinite { row: 0, column: 0, .. })));
    }
}

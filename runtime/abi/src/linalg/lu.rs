//! The factors of Gaussian elimination with partial pivoting: what is subtracted from an element is one chain in
//! ascending position of the pivot.

use super::matrix::{Failure, View, finite};
use super::number::Real;
use super::product::{Products, Sizes, Target};
use super::triangular::solve_lower;
use super::vectors::{divide, largest, vectorised};
use super::workers::Workers;

/// Columns that are eliminated without a product.
const LEAF: usize = 16;

/// `l` (unit lower triangular, below the diagonal) and `u` (on and above it) in place of `a` (`m` by `n`), with rows in the
/// order of `order`: row `i` of `l · u` is row `order[i]` of `a`. The pivot is the first of the largest magnitudes of its
/// column; one that is zero leaves a column of zeros in `l`.
///
/// Cost: `n³·2/3` operations of a square matrix.
///
/// # Errors
/// [`Failure::NotFinite`].
pub fn lu<T: Real, W: Workers>(
    workers: &W,
    a: &mut [T],
    m: usize,
    n: usize,
    order: &mut [usize],
) -> Result<(), Failure> {
    finite(a, n)?;
    order.iter_mut().enumerate().for_each(|(i, o)| *o = i);
    if n == 0 {
        return Ok(());
    }
    let steps = m.min(n);
    let mut e = Elimination { products: Products::new(workers), a, m, n, order, column: vec![] };
    e.columns(0, steps);
    if n > steps {
        e.right_of(0, steps, n);
    }
    Ok(())
}

struct Elimination<'a, 'w, T, W> {
    products: Products<'w, T, W>,
    a: &'a mut [T],
    m: usize,
    n: usize,
    order: &'a mut [usize],
    /// Columns that are eliminated, one after the other.
    column: Vec<T>,
}

impl<T: Real, W: Workers> Elimination<'_, '_, T, W> {
    /// Eliminates columns `at..at + size`, in rows `at..`, from which all before has been subtracted. Other columns
    /// have their rows exchanged too.
    fn columns(&mut self, at: usize, size: usize) {
        if size <= LEAF {
            return self.leaf(at, size);
        }
        let first = (size / 2).next_multiple_of(LEAF);
        self.columns(at, first);
        self.right_of(at, first, at + size);
        self.columns(at + first, size - first);
    }

    /// Takes columns `at + size..end` through the elimination of columns `at..at + size`.
    fn right_of(&mut self, at: usize, size: usize, end: usize) {
        let (m, n) = (self.m, self.n);
        let (begin, wide) = (at + size, end - at - size);
        let mut top = Vec::with_capacity(size * wide);
        for i in at..begin {
            top.extend_from_slice(&self.a[i * n + begin..i * n + end]);
        }
        solve_lower(&mut self.products, View::rows(&self.a[at * n + at..], n), size, true, &mut top, wide);
        for (i, row) in top.chunks_exact(wide.max(1)).enumerate() {
            self.a[(at + i) * n + begin..][..wide].copy_from_slice(row);
        }
        if begin < m {
            let sizes = Sizes { m: m - begin, n: wide, k: size };
            let left = View::rows(&self.a[begin * n + at..], n);
            self.products.take(sizes, left, View::rows(&top, wide), true);
            let data = &mut self.a[begin * n..];
            self.products.add(Target { data, width: n, column: begin, lower: false });
        }
    }

    fn leaf(&mut self, at: usize, size: usize) {
        let (m, n) = (self.m, self.n);
        let tall = m - at;
        self.column.clear();
        self.column.resize(size * tall, T::ZERO);
        for i in 0..tall {
            let row = &self.a[(at + i) * n + at..][..size];
            self.column[i..].iter_mut().step_by(tall).zip(row).for_each(|(to, x)| *to = *x);
        }
        let mut exchanged = [0; LEAF];
        for j in 0..size {
            let (before, rest) = self.column.split_at_mut((j + 1) * tall);
            let own = &mut before[j * tall..];
            let most = largest(&own[j..]);
            let pivot = j + own[j..].iter().position(|x| x.abs() == most).unwrap_or(0);
            exchanged[j] = pivot;
            own.swap(j, pivot);
            before[..j * tall].chunks_exact_mut(tall).for_each(|c| c.swap(j, pivot));
            rest.chunks_exact_mut(tall).for_each(|c| c.swap(j, pivot));
            let own = &mut before[j * tall..];
            let by = own[j];
            if by != T::ZERO {
                divide(&mut own[j + 1..], by);
            }
            eliminate(&own[j..], rest, tall, j);
        }
        for i in 0..tall {
            let row = &mut self.a[(at + i) * n + at..][..size];
            row.iter_mut().zip(self.column[i..].iter().step_by(tall)).for_each(|(to, x)| *to = *x);
        }
        for (j, &pivot) in exchanged[..size].iter().enumerate() {
            if pivot != j {
                self.exchange(at + j, at + pivot, at, at + size);
            }
        }
    }

    /// Exchanges two rows outside of columns `from..to`, where that has been done.
    fn exchange(&mut self, i: usize, k: usize, from: usize, to: usize) {
        self.order.swap(i, k);
        let (upper, lower) = self.a.split_at_mut(k * self.n);
        let (upper, lower) = (&mut upper[i * self.n..][..self.n], &mut lower[..self.n]);
        upper[..from].swap_with_slice(&mut lower[..from]);
        upper[to..].swap_with_slice(&mut lower[to..]);
    }
}

vectorised! {
    /// Subtracts a column (`l`, which begins with the pivot in row `j`) times the row of the pivot from the columns `rest`.
    fn eliminate<T: Real>(l: &[T], rest: &mut [T], tall: usize, j: usize) {
        for column in rest.chunks_exact_mut(tall) {
            let by = -column[j];
            for (x, l) in column[j + 1..].iter_mut().zip(&l[1..]) {
                *x = l.mul_add(by, *x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::workers::Alone;
    use super::*;

    /// Elimination, row by row.
    fn plainly(a: &mut [f64], m: usize, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..m).collect();
        for j in 0..m.min(n) {
            let mut pivot = j;
            for i in j + 1..m {
                if a[i * n + j].abs() > a[pivot * n + j].abs() {
                    pivot = i;
                }
            }
            order.swap(j, pivot);
            (0..n).for_each(|c| a.swap(j * n + c, pivot * n + c));
            for i in j + 1..m {
                if a[j * n + j] != 0.0 {
                    a[i * n + j] /= a[j * n + j];
                }
                for c in j + 1..n {
                    a[i * n + c] = f64::mul_add(-a[i * n + j], a[j * n + c], a[i * n + c]);
                }
            }
        }
        order
    }

    #[test]
    fn elements_are_chains() {
        for (m, n) in [(0, 0), (0, 3), (3, 0), (1, 1), (2, 5), (5, 2), (17, 17), (40, 70), (70, 40), (100, 100)] {
            let number = |i: usize| (i * 7919 % 1009) as f64 / 503.0 - 1.0;
            let mut a: Vec<f64> = (0..m * n).map(number).collect();
            let mut expected = a.clone();
            let mut order = vec![0; m];
            assert_eq!(lu(&Alone, &mut a, m, n, &mut order), Ok(()));
            assert_eq!(order, plainly(&mut expected, m, n), "{m} {n}");
            assert_eq!(a, expected, "{m} {n}");
        }
    }

    #[test]
    fn a_column_of_zeros_has_the_pivot_zero() {
        let mut a = [0.0, 1.0, 0.0, 2.0];
        assert_eq!(lu(&Alone, &mut a, 2, 2, &mut [0; 2]), Ok(()));
        assert_eq!(a, [0.0, 1.0, 0.0, 2.0]);
    }
}

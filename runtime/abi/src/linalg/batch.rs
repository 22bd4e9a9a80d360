//! Many matrices one after the other in memory: what a step of a plan computes, and its meaning.

use super::cholesky::cholesky;
use super::eigen::eigh;
use super::lu::lu;
use super::matrix::Failure;
use super::number::Real;
use super::qr::qr;
use super::schur::eig;
use super::svd::svd;
use super::triangular::{Triangle, solve_triangular};
use super::workers::{Alone, Workers};
use std::sync::Mutex;

/// What a matrix is taken apart into.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Factor {
    /// The lower triangular `l` with `l · lᵀ = a`; the lower triangle of `a` is read.
    Cholesky,
    /// `l` and `u` in one matrix, `m` by `n`, then the row of `a` that each row of `l · u` is, as a float.
    Lu,
    /// `q` (`m` by `k`), then `r` (`k` by `n`), `k` the less of `m` and `n`.
    Qr,
    /// Ascending eigenvalues, then the matrix of eigenvectors; the lower triangle of `a` is read.
    Eigh,
    /// The eigenvalues alone.
    Eigvalsh,
    /// `u` (`m` by `k`), descending singular values, `vh` (`k` by `n`).
    Svd,
    /// The singular values alone.
    Svdvals,
    /// Of any square matrix: real parts of the eigenvalues, imaginary parts, real parts of the eigenvectors, imaginary parts.
    /// Computed in f64.
    Eig,
    /// The eigenvalues alone.
    Eigvals,
}

impl Factor {
    pub const ALL: [Factor; 9] = [
        Factor::Cholesky,
        Factor::Lu,
        Factor::Qr,
        Factor::Eigh,
        Factor::Eigvalsh,
        Factor::Svd,
        Factor::Svdvals,
        Factor::Eig,
        Factor::Eigvals,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Factor::Cholesky => "cholesky",
            Factor::Lu => "lu",
            Factor::Qr => "qr",
            Factor::Eigh => "eigh",
            Factor::Eigvalsh => "eigvalsh",
            Factor::Svd => "svd",
            Factor::Svdvals => "svdvals",
            Factor::Eig => "eig",
            Factor::Eigvals => "eigvals",
        }
    }

    pub fn parse(name: &str) -> Option<Factor> {
        Factor::ALL.into_iter().find(|f| f.name() == name)
    }

    /// Whether the matrix has as many rows as columns.
    pub fn is_square(self) -> bool {
        !matches!(self, Factor::Lu | Factor::Qr | Factor::Svd | Factor::Svdvals)
    }

    /// The sizes of the parts of the result for a matrix of `m` by `n`, one after the other.
    pub fn parts(self, m: u64, n: u64) -> Vec<u64> {
        let k = m.min(n);
        let by = u64::saturating_mul;
        match self {
            Factor::Cholesky => vec![by(n, n)],
            Factor::Lu => vec![by(m, n), m],
            Factor::Qr => vec![by(m, k), by(k, n)],
            Factor::Eigh => vec![n, by(n, n)],
            Factor::Eigvalsh => vec![n],
            Factor::Svd => vec![by(m, k), k, by(k, n)],
            Factor::Svdvals => vec![k],
            Factor::Eig => vec![n, n, by(n, n), by(n, n)],
            Factor::Eigvals => vec![n, n],
        }
    }

    /// The elements of the result for a matrix of `m` by `n`: all parts in one vector.
    pub fn elems(self, m: u64, n: u64) -> u64 {
        self.parts(m, n).into_iter().fold(0, u64::saturating_add)
    }

    /// Operations for a matrix of `m` by `n`, roughly.
    pub fn operations(self, m: u64, n: u64) -> f64 {
        let (long, k) = (m.max(n) as f64, m.min(n) as f64);
        match self {
            Factor::Cholesky => k * k * k / 3.0,
            Factor::Lu => k * k * (long - k / 3.0),
            Factor::Qr => 4.0 * k * k * (long - k / 3.0),
            Factor::Eigh => 9.0 * k * k * k,
            Factor::Eigvalsh => 4.0 / 3.0 * k * k * k,
            Factor::Svd => 14.0 * long * k * k,
            Factor::Svdvals => 4.0 * long * k * k,
            Factor::Eig => 25.0 * k * k * k,
            Factor::Eigvals => 10.0 * k * k * k,
        }
    }

    fn one<T: Real, W: Workers>(self, workers: &W, a: &[T], m: usize, n: usize, out: &mut [T]) -> Result<(), Failure> {
        let k = m.min(n);
        match self {
            Factor::Cholesky => {
                out.copy_from_slice(a);
                cholesky(workers, out, n)
            }
            Factor::Lu => {
                let (factors, rows) = out.split_at_mut(m * n);
                factors.copy_from_slice(a);
                let mut order = vec![0; m];
                lu(workers, factors, m, n, &mut order)?;
                rows.iter_mut().zip(order).for_each(|(to, row)| *to = T::from_f64(row as f64));
                Ok(())
            }
            Factor::Qr => {
                let (q, r) = out.split_at_mut(m * k);
                qr(workers, a, m, n, q, r)
            }
            Factor::Eigh => {
                let (w, v) = out.split_at_mut(n);
                eigh(workers, a, n, w, v)
            }
            Factor::Eigvalsh => eigh(workers, a, n, out, &mut []),
            Factor::Svd => {
                let (u, rest) = out.split_at_mut(m * k);
                let (s, vh) = rest.split_at_mut(k);
                svd(workers, a, m, n, super::svd::Parts { u, s, vh })
            }
            Factor::Svdvals => svd(workers, a, m, n, super::svd::Parts { u: &mut [], s: out, vh: &mut [] }),
            Factor::Eig | Factor::Eigvals => {
                let wide: Vec<f64> = a.iter().map(|x| x.to_f64()).collect();
                let found = eig(&wide, n, self == Factor::Eig)?;
                let parts = [&found.values, &found.vectors].map(|z| [0, 1].map(|part| z.iter().map(move |z| z[part])));
                let numbers = parts.into_iter().flatten().flatten();
                out.iter_mut().zip(numbers).for_each(|(to, x)| *to = T::from_f64(x));
                Ok(())
            }
        }
    }
}

/// The first matrix that stopped, by its number, and why.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Failed {
    pub matrix: usize,
    pub failure: Failure,
}

impl Failed {
    /// In words, for a batch of these dims: lower case, without a full stop.
    pub fn message(&self, batch: &[u64]) -> String {
        let mut at = self.matrix as u64;
        let mut place: Vec<String> = vec![];
        for &size in batch.iter().rev() {
            place.push((at % size.max(1)).to_string());
            at /= size.max(1);
        }
        place.reverse();
        match &place[..] {
            [] => self.failure.message("the matrix"),
            [one] => self.failure.message(&format!("matrix {one} of the batch")),
            several => self.failure.message(&format!("matrix ({}) of the batch", several.join(", "))),
        }
    }
}

/// Multiplications of a matrix from which on threads share one, not a batch.
const LARGE: f64 = 2e6;

/// Writes the factors of every matrix of `a`, which are `m` by `n`.
///
/// # Errors
/// The first matrix that has none.
pub fn factor<T: Real, W: Workers>(
    workers: &W,
    factor: Factor,
    [m, n]: [usize; 2],
    a: &[T],
    out: &mut [T],
) -> Result<(), Failed> {
    let each = factor.elems(m as u64, n as u64) as usize;
    if each == 0 {
        return Ok(());
    }
    let matrix = |i: usize| &a[i * m * n..][..m * n];
    let large = factor.operations(m as u64, n as u64) > LARGE;
    each_matrix(workers, large, each, out, &|i, out| factor.one(&Alone, matrix(i), m, n, out), |i, out| {
        factor.one(workers, matrix(i), m, n, out)
    })
}

/// Writes the solution of every system of equations: matrices `a` of `n` by `n`, right sides `b` of `n` by `width`.
///
/// # Errors
/// The first matrix that is singular.
pub fn solve<T: Real, W: Workers>(
    workers: &W,
    triangle: Triangle,
    [n, width]: [usize; 2],
    a: &[T],
    b: &[T],
    out: &mut [T],
) -> Result<(), Failed> {
    let each = n * width;
    if each == 0 {
        return Ok(());
    }
    let (matrix, right) = (|i: usize| &a[i * n * n..][..n * n], |i: usize| &b[i * each..][..each]);
    let large = (n * n) as f64 * width as f64 > LARGE;
    let alone = |i: usize, out: &mut [T]| solve_triangular(&Alone, matrix(i), n, right(i), width, triangle, out);
    each_matrix(workers, large, each, out, &alone, |i, out| {
        solve_triangular(workers, matrix(i), n, right(i), width, triangle, out)
    })
}

/// Calls `alone` for the matrices of a batch on threads, or `together` for one after the other where one of them is work
/// enough for all threads.
fn each_matrix<T: Real, W: Workers>(
    workers: &W,
    large: bool,
    each: usize,
    out: &mut [T],
    alone: &(dyn Fn(usize, &mut [T]) -> Result<(), Failure> + Sync),
    together: impl Fn(usize, &mut [T]) -> Result<(), Failure>,
) -> Result<(), Failed> {
    let count = out.len() / each;
    if large && count < 4 * workers.threads() {
        for (matrix, out) in out.chunks_exact_mut(each).enumerate() {
            together(matrix, out).map_err(|failure| Failed { matrix, failure })?;
        }
        return Ok(());
    }
    let first: Mutex<Option<Failed>> = Mutex::new(None);
    let group = count.div_ceil(8 * workers.threads()).max(1);
    workers.each_chunk(out, group * each, &|chunk, out| {
        for (i, out) in out.chunks_exact_mut(each).enumerate() {
            let matrix = chunk * group + i;
            let Err(failure) = alone(matrix, out) else { continue };
            let mut first = first.lock().unwrap_or_else(|e| e.into_inner());
            if first.is_none_or(|f| matrix < f.matrix) {
                *first = Some(Failed { matrix, failure });
            }
            return;
        }
    });
    first.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matrix_that_stops_is_told() {
        let a = [1.0f64, 2.0, -1.0, -2.0];
        let failed = factor(&Alone, Factor::Cholesky, [1, 1], &a, &mut [0.0; 4]).unwrap_err();
        assert_eq!(failed, Failed { matrix: 2, failure: Failure::NotPositive { at: 0, value: -1.0 } });
        assert_eq!(
            failed.message(&[2, 2]),
            "matrix (1, 0) of the batch is not positive definite: the pivot of row 0 is -1"
        );
    }

    #[test]
    fn parts_have_the_sizes_that_are_stated() {
        for f in Factor::ALL {
            for (m, n) in [(0, 0), (0, 3), (3, 0), (3, 3), (4, 2), (2, 4)] {
                if f.is_square() && m != n {
                    continue;
                }
                let mut a = vec![0.0f32; m * n];
                a.iter_mut().step_by(n + 1).for_each(|x| *x = 1.0);
                let mut out = vec![f32::NAN; f.elems(m as u64, n as u64) as usize];
                assert_eq!(factor(&Alone, f, [m, n], &a, &mut out), Ok(()));
                assert!(out.iter().all(|x| x.is_finite()), "{f:?} {m} {n}");
            }
        }
    }
}

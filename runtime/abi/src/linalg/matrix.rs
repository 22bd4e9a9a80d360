//! Matrices in memory, and what may be wrong with one.

use super::number::Real;

/// Why a matrix has no such factors or solution; positions count from 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Failure {
    /// An element that is infinite or no number.
    NotFinite { row: usize, column: usize, value: f64 },
    /// The pivot that has to be positive.
    NotPositive { at: usize, value: f64 },
    /// The element of the diagonal that is zero.
    Singular { at: usize },
    /// Iterations that did not end.
    NotConverged,
}

impl Failure {
    /// In words, of a matrix that `which` names: lower case, without a full stop.
    pub fn message(self, which: &str) -> String {
        match self {
            Failure::NotFinite { row, column, value } => {
                format!("{which} is not finite: element ({row}, {column}) is {value}")
            }
            Failure::NotPositive { at, value } => {
                format!("{which} is not positive definite: the pivot of row {at} is {value}")
            }
            Failure::Singular { at } => format!("{which} is singular: pivot {at} is 0"),
            Failure::NotConverged => format!("the iterations for {which} did not converge"),
        }
    }
}

/// The first element that is not finite.
///
/// # Errors
/// [`Failure::NotFinite`].
pub fn finite<T: Real>(a: &[T], columns: usize) -> Result<(), Failure> {
    match a.iter().position(|x| !x.is_finite()) {
        Some(at) => Err(Failure::NotFinite { row: at / columns, column: at % columns, value: a[at].to_f64() }),
        None => Ok(()),
    }
}

/// The same, of the lower triangle of a square matrix.
///
/// # Errors
/// [`Failure::NotFinite`].
pub fn finite_lower<T: Real>(a: &[T], n: usize) -> Result<(), Failure> {
    for (row, line) in a.chunks_exact(n.max(1)).enumerate() {
        if let Some(column) = line[..=row].iter().position(|x| !x.is_finite()) {
            return Err(Failure::NotFinite { row, column, value: line[column].to_f64() });
        }
    }
    Ok(())
}

/// The elements of a matrix somewhere in memory: element `(i, j)` is `data[i * rows + j * columns]`.
#[derive(Clone, Copy)]
pub struct View<'a, T> {
    pub data: &'a [T],
    pub rows: usize,
    pub columns: usize,
}

impl<'a, T: Real> View<'a, T> {
    /// Rows of `width` elements.
    pub fn rows(data: &'a [T], width: usize) -> View<'a, T> {
        View { data, rows: width, columns: 1 }
    }

    /// Columns of `height` elements.
    pub fn columns(data: &'a [T], height: usize) -> View<'a, T> {
        View { data, rows: 1, columns: height }
    }

    #[inline(always)]
    pub fn at(&self, i: usize, j: usize) -> T {
        self.data[i * self.rows + j * self.columns]
    }

    /// What begins at an element.
    pub fn from(&self, i: usize, j: usize) -> View<'a, T> {
        let start = (i * self.rows + j * self.columns).min(self.data.len());
        View { data: &self.data[start..], ..*self }
    }
}

/// The transposed matrix of `rows` by `columns` elements in rows of `width`.
pub fn transposed<T: Real>(a: &[T], rows: usize, columns: usize, width: usize) -> Vec<T> {
    /// Rows and columns of what is turned at once.
    const BLOCK: usize = 16;
    let mut out = vec![T::ZERO; rows * columns];
    for i0 in (0..rows).step_by(BLOCK) {
        for j0 in (0..columns).step_by(BLOCK) {
            for i in i0..rows.min(i0 + BLOCK) {
                for j in j0..columns.min(j0 + BLOCK) {
                    out[j * rows + i] = a[i * width + j];
                }
            }
        }
    }
    out
}

/// The columns, of `count` in rows of as many elements, whose sign is to be changed: so that the first of the elements that
/// are at least half as large as the largest one is positive. That holds still where elements are nearly equal.
pub fn turned_columns<T: Real>(a: &[T], count: usize) -> Vec<bool> {
    let two = T::ONE + T::ONE;
    let mut most = vec![T::ZERO; count];
    for row in a.chunks_exact(count.max(1)) {
        most.iter_mut().zip(row).for_each(|(m, x)| *m = if x.abs() > *m { x.abs() } else { *m });
    }
    let mut signs: Vec<Option<bool>> = vec![None; count];
    for row in a.chunks_exact(count.max(1)) {
        for ((sign, x), m) in signs.iter_mut().zip(row).zip(&most) {
            if sign.is_none() && x.abs() * two >= *m {
                *sign = Some(*x < T::ZERO);
            }
        }
    }
    signs.into_iter().map(|s| s == Some(true)).collect()
}

/// Changes the signs of columns.
pub fn turn_columns<T: Real>(a: &mut [T], turned: &[bool]) {
    for row in a.chunks_exact_mut(turned.len().max(1)) {
        row.iter_mut().zip(turned).for_each(|(x, t)| *x = if *t { -*x } else { *x });
    }
}

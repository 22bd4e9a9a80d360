//! Factors of Householder reflectors, [`PANEL`] columns at a time: `H = I - V T Vᵀ` (Schreiber and Van Loan, 1989).
//! Lengths of columns have [`super::number::LANES`] chains; all other sums are single chains.

use super::matrix::{Failure, View, finite};
use super::number::{LANES, Real};
use super::product::{Products, Sizes, Target};
use super::vectors::{add_rows, divide, largest, length, subtract_outer, vectorised};
use super::workers::Workers;

/// Columns whose reflectors are applied together. Results depend on it.
pub const PANEL: usize = 32;

/// Reflectors that act on the rows from `row` on, one after the other.
pub struct Panel<T> {
    pub row: usize,
    /// Rows of the vectors side by side; the `j`-th is zero above its row `j`, where it is one.
    v: Vec<[T; PANEL]>,
    size: usize,
    /// Upper triangular, in rows of `size`.
    t: Vec<T>,
}

/// The reflector that takes `x` to a multiple of the first unit vector: `x` becomes the vector of the reflector, whose first
/// element is one. Gives the factor `tau` of `I - tau v vᵀ` and the multiple; `tau` is 0 where `x` is such a multiple.
pub fn reflector<T: Real>(x: &mut [T]) -> [T; 2] {
    let Some((&first, rest)) = x.split_first() else { return [T::ZERO; 2] };
    if largest(rest) == T::ZERO {
        x[0] = T::ONE;
        return [T::ZERO, first];
    }
    // Of numbers near the smallest ones the vector would lose digits: it is the same of any multiple.
    let most = largest(x);
    let unit = if most > T::SAFE[0] && most < T::SAFE[1] { T::ONE } else { most.to_unit() };
    if unit != T::ONE {
        x.iter_mut().for_each(|x| *x = *x * unit);
    }
    let (first, whole) = (x[0], length(x));
    let image = if first < T::ZERO { whole } else { -whole };
    divide(&mut x[1..], first - image);
    x[0] = T::ONE;
    [(image - first) / image, image / unit]
}

impl<T: Real> Panel<T> {
    /// The reflectors of the vectors that stand one after the other in `v`, `height` elements each, and act on the rows from
    /// `row` on.
    pub fn of_columns<W: Workers>(
        products: &mut Products<T, W>,
        row: usize,
        v: &[T],
        height: usize,
        taus: &[T],
    ) -> Panel<T> {
        let mut rows = vec![[T::ZERO; PANEL]; height];
        for (j, column) in v.chunks_exact(height.max(1)).enumerate() {
            rows.iter_mut().zip(column).for_each(|(row, x)| row[j] = *x);
        }
        Panel::of_rows(products, row, rows, taus)
    }

    fn of_rows<W: Workers>(products: &mut Products<T, W>, row: usize, v: Vec<[T; PANEL]>, taus: &[T]) -> Panel<T> {
        let size = taus.len();
        let flat = v.as_flattened();
        let mut inner = vec![T::ZERO; size * size];
        let sizes = Sizes { m: size, n: size, k: v.len() };
        products.take(sizes, View::columns(flat, PANEL), View::rows(flat, PANEL), false);
        products.add(Target { data: &mut inner, width: size, column: 0, lower: false });
        let mut t = vec![T::ZERO; size * size];
        triangle(taus, &inner, &mut t);
        Panel { row, v, size, t }
    }

    /// Applies the reflectors, the last one first; `transposed`: the first one first. To `columns` of `c`, whose rows have
    /// `width` elements.
    pub fn apply<W: Workers>(
        &self,
        products: &mut Products<T, W>,
        transposed: bool,
        c: &mut [T],
        width: usize,
        columns: std::ops::Range<usize>,
    ) {
        let (n, size, tall) = (columns.len(), self.size, self.v.len());
        if n == 0 || size == 0 || tall == 0 {
            return;
        }
        let flat = self.v.as_flattened();
        let (v, across) = (View::rows(flat, PANEL), View::columns(flat, PANEL));
        let below = &mut c[self.row * width..];
        let start = columns.start;
        let mut inner = vec![T::ZERO; size * n];
        let whole = Target { data: &mut inner, width: n, column: 0, lower: false };
        products.take(
            Sizes { m: size, n, k: tall },
            across,
            View { data: &below[start..], rows: width, columns: 1 },
            false,
        );
        products.add(whole);
        let t = if transposed { View::columns(&self.t, size) } else { View::rows(&self.t, size) };
        let mut turned = vec![T::ZERO; size * n];
        products.take(Sizes { m: size, n, k: size }, t, View::rows(&inner, n), false);
        products.add(Target { data: &mut turned, width: n, column: 0, lower: false });
        products.take(Sizes { m: tall, n, k: size }, v, View::rows(&turned, n), true);
        products.add(Target { data: below, width, column: start, lower: false });
    }
}

vectorised! {
    /// `T` of reflectors, from the factors and the inner products of the vectors.
    fn triangle<T: Real>(taus: &[T], inner: &[T], t: &mut [T]) {
        let size = taus.len();
        for j in 0..size {
            for i in 0..j {
                let mut sum = T::ZERO;
                for k in i..j {
                    sum = t[i * size + k].mul_add(inner[k * size + j], sum);
                }
                t[i * size + j] = -taus[j] * sum;
            }
            t[j * size + j] = taus[j];
        }
    }
}

/// `I - tau x xᵀ` times the rows, in the columns behind `j`.
fn reflect<T: Real>(tau: T, x: &[T], rows: &mut [[T; PANEL]], j: usize) {
    // Whole vectors, of which what stands before counts for nothing.
    let from = (j + 1) / LANES * LANES;
    let mut inner = [T::ZERO; PANEL];
    let rows = rows.as_flattened_mut();
    add_rows(x, rows, PANEL, from, &mut inner[from..]);
    for (c, sum) in inner.iter_mut().enumerate() {
        *sum = if c > j { tau * *sum } else { T::ZERO };
    }
    subtract_outer(x, &inner[from..], rows, PANEL, from);
}

/// Takes `a` (`m` by `n`) to its upper triangular factor, in place, with zeros below the diagonal.
fn triangularise<T: Real, W: Workers>(products: &mut Products<T, W>, a: &mut [T], m: usize, n: usize) -> Vec<Panel<T>> {
    let mut panels = vec![];
    let steps = m.min(n);
    for at in (0..steps).step_by(PANEL) {
        let (size, tall) = (PANEL.min(steps - at), m - at);
        let mut v = vec![[T::ZERO; PANEL]; tall];
        for (row, from) in v.iter_mut().zip(a[at * n..].chunks_exact(n)) {
            row[..size].copy_from_slice(&from[at..][..size]);
        }
        let mut taus = vec![T::ZERO; size];
        for j in 0..size {
            let mut x: Vec<T> = v[j..].iter().map(|row| row[j]).collect();
            let [tau, image] = reflector(&mut x);
            taus[j] = tau;
            if tau != T::ZERO {
                reflect(tau, &x, &mut v[j..], j);
            }
            v[j..].iter_mut().zip(&x).for_each(|(row, x)| row[j] = *x);
            let own = &mut a[(at + j) * n + at..][..size];
            own[j] = image;
            own[j + 1..].copy_from_slice(&v[j][j + 1..size]);
            v[j][j + 1..].fill(T::ZERO);
        }
        for i in 1..tall {
            a[(at + i) * n + at..][..i.min(size)].fill(T::ZERO);
        }
        let panel = Panel::of_rows(products, at, v, &taus);
        panel.apply(products, true, a, n, at + size..n);
        panels.push(panel);
    }
    panels
}

/// The first `k` columns of the product of all reflectors, `m` by `k`.
pub fn columns_of<T: Real, W: Workers>(
    products: &mut Products<T, W>,
    panels: &[Panel<T>],
    m: usize,
    k: usize,
) -> Vec<T> {
    let mut q = vec![T::ZERO; m * k];
    q.iter_mut().step_by(k + 1).take(m.min(k)).for_each(|x| *x = T::ONE);
    for panel in panels.iter().rev() {
        // Columns before the first row that is touched are those of the identity there.
        panel.apply(products, false, &mut q, k, panel.row.min(k)..k);
    }
    q
}

/// `q` (`m` by `k`, orthonormal columns) and `r` (`k` by `n`, upper triangular) with `q · r = a`, `k` the less of `m` and `n`;
/// `a` is `m` by `n`. Signs of the diagonal of `r` are those of LAPACK: that of what a reflector maps to.
///
/// Cost: `4 m n² - n³·4/3` operations for `m >= n`.
///
/// # Errors
/// [`Failure::NotFinite`].
pub fn qr<T: Real, W: Workers>(
    workers: &W,
    a: &[T],
    m: usize,
    n: usize,
    q: &mut [T],
    r: &mut [T],
) -> Result<(), Failure> {
    finite(a, n)?;
    let k = m.min(n);
    if k == 0 {
        return Ok(());
    }
    let mut products = Products::new(workers);
    let mut rest = a.to_vec();
    let panels = triangularise(&mut products, &mut rest, m, n);
    r.copy_from_slice(&rest[..k * n]);
    q.copy_from_slice(&columns_of(&mut products, &panels, m, k));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::workers::Alone;
    use super::*;

    #[test]
    fn factors_are_orthonormal_and_triangular() {
        for (m, n) in [(0, 2), (1, 1), (5, 3), (3, 5), (33, 33), (70, 40), (40, 70), (100, 100)] {
            let number = |i: usize| (i * 7919 % 1009) as f64 / 503.0 - 1.0;
            let a: Vec<f64> = (0..m * n).map(number).collect();
            let k = m.min(n);
            let (mut q, mut r) = (vec![0.0; m * k], vec![0.0; k * n]);
            assert_eq!(qr(&Alone, &a, m, n, &mut q, &mut r), Ok(()));
            for i in 0..m {
                for j in 0..n {
                    let sum: f64 = (0..k).map(|p| q[i * k + p] * r[p * n + j]).sum();
                    assert!((sum - a[i * n + j]).abs() < 1e-13, "{m} {n}: ({i}, {j})");
                }
            }
            for i in 0..k {
                for j in 0..k {
                    let sum: f64 = (0..m).map(|p| q[p * k + i] * q[p * k + j]).sum();
                    assert!((sum - f64::from(u8::from(i == j))).abs() < 1e-13, "{m} {n}: ({i}, {j})");
                }
                assert!(r[i * n..][..i.min(n)].iter().all(|x| *x == 0.0));
            }
        }
    }
}

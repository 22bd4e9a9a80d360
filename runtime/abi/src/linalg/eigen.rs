//! Eigenvalues and eigenvectors of symmetric matrices: reflectors make the matrix tridiagonal, implicit QR steps with
//! Wilkinson's shift make that diagonal (Golub and Van Loan, Matrix Computations, 8.3).

use super::matrix::{Failure, finite_lower, turn_columns, turned_columns};
use super::number::Real;
use super::product::Products;
use super::qr::{PANEL, Panel, columns_of, reflector};
use super::rotations::{Rotation, Rows, turning};
use super::vectors::{add_rows, dot, larger, largest, subtract_symmetric};
use super::workers::Workers;

/// Steps that are tried for one eigenvalue; about two are usual.
const STEPS: usize = 60;

/// Ascending eigenvalues `w` of the symmetric `a` (`n` by `n`), of which the lower triangle is read, and where `v` has
/// elements the eigenvectors as its columns, of length 1: the first element of at least half the largest magnitude is positive.
///
/// Cost: `n³·4/3` operations for the eigenvalues, about `9 n³` with vectors.
///
/// # Errors
/// [`Failure::NotFinite`], [`Failure::NotConverged`].
pub fn eigh<T: Real, W: Workers>(workers: &W, a: &[T], n: usize, w: &mut [T], v: &mut [T]) -> Result<(), Failure> {
    finite_lower(a, n)?;
    if n == 0 {
        return Ok(());
    }
    let mut a = symmetric(a, n);
    let most = largest(&a);
    // A power of two is exact, and squares of what it leaves are neither too large nor too small.
    let by = if most > T::ZERO { most.to_unit() } else { T::ONE };
    a.iter_mut().for_each(|x| *x = *x * by);
    let (mut d, mut e) = (vec![T::ZERO; n], vec![T::ZERO; n - 1]);
    let wanted = !v.is_empty();
    let mut products = Products::new(workers);
    let panels = tridiagonal(&mut products, &mut a, &mut d, &mut e, wanted);
    drop(a);
    let mut rows = wanted.then(|| Rows::of_columns(&columns_of(&mut products, &panels, n, n), n));
    diagonal(workers, &mut d, &mut e, rows.as_mut())?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &k| d[i].partial_cmp(&d[k]).unwrap_or(std::cmp::Ordering::Equal));
    w.iter_mut().zip(&order).for_each(|(w, &i)| *w = d[i] / by);
    if let Some(rows) = rows {
        rows.write_columns(&order, v);
        let turned = turned_columns(v, n);
        turn_columns(v, &turned);
    }
    Ok(())
}

/// The whole of the matrix that a lower triangle stands for.
fn symmetric<T: Real>(a: &[T], n: usize) -> Vec<T> {
    let mut whole = a.to_vec();
    for i in 0..n {
        for k in 0..i {
            whole[k * n + i] = a[i * n + k];
        }
    }
    whole
}

/// Brings `a` to the diagonal `d` and what stands beside it, `e`; gives the reflectors where they are wanted.
fn tridiagonal<T: Real, W: Workers>(
    products: &mut Products<T, W>,
    a: &mut [T],
    d: &mut [T],
    e: &mut [T],
    wanted: bool,
) -> Vec<Panel<T>> {
    let n = d.len();
    let mut panels = vec![];
    let mut vectors: Vec<T> = vec![];
    let mut taus: Vec<T> = vec![];
    for k in 0..n {
        d[k] = a[k * n + k];
        if k + 1 == n {
            break;
        }
        let size = n - k - 1;
        // The row is the column, but for how both were rounded.
        let mut v = a[k * n + k + 1..][..size].to_vec();
        let [tau, image] = reflector(&mut v);
        e[k] = image;
        if tau != T::ZERO {
            let below = &mut a[(k + 1) * n..];
            let mut p = vec![T::ZERO; size];
            add_rows(&v, below, n, k + 1, &mut p);
            p.iter_mut().for_each(|p| *p = tau * *p);
            let half = tau * dot(&p, &v) / (T::ONE + T::ONE);
            p.iter_mut().zip(&v).for_each(|(p, v)| *p = *p - half * *v);
            subtract_symmetric(&v, &p, below, n, k + 1);
        }
        if !wanted {
            continue;
        }
        let height = n - 1 - k / PANEL * PANEL;
        vectors.resize(vectors.len() + height - size, T::ZERO);
        vectors.extend(v);
        taus.push(tau);
        if taus.len() == PANEL || k + 2 == n {
            panels.push(Panel::of_columns(products, k / PANEL * PANEL + 1, &vectors, height, &taus));
            vectors.clear();
            taus.clear();
        }
    }
    panels
}

/// Takes the tridiagonal matrix to its eigenvalues, `d`; the rows take part in every rotation.
fn diagonal<T: Real, W: Workers>(
    workers: &W,
    d: &mut [T],
    e: &mut [T],
    mut rows: Option<&mut Rows<T>>,
) -> Result<(), Failure> {
    let two = T::ONE + T::ONE;
    // What reflectors have rounded is as large: smaller elements say nothing.
    let least = T::EPSILON * larger(largest(d), largest(e));
    let mut end = d.len() - 1;
    let mut tried = 0;
    while end > 0 {
        let is_zero =
            |d: &[T], e: &[T], i: usize| e[i].abs() <= larger(T::EPSILON * (d[i].abs() + d[i + 1].abs()), least);
        if is_zero(d, e, end - 1) {
            e[end - 1] = T::ZERO;
            end -= 1;
            tried = 0;
            continue;
        }
        let mut begin = end - 1;
        while begin > 0 && !is_zero(d, e, begin - 1) {
            begin -= 1;
        }
        tried += 1;
        if tried > STEPS {
            return Err(Failure::NotConverged);
        }
        let last = e[end - 1];
        let apart = (d[end - 1] - d[end]) / two;
        let [.., far] = turning(apart, last);
        let far = if apart < T::ZERO { -far.abs() } else { far.abs() };
        let shift = d[end] - last * (last / (apart + far));
        let (mut x, mut z) = (d[begin] - shift, e[begin]);
        for k in begin..end {
            let [c, s, r] = turning(x, z);
            if k > begin {
                e[k - 1] = r;
            }
            // The two by two block from both sides.
            let (p, q, o) = (d[k], d[k + 1], e[k]);
            let (top, low) = (c * p + s * o, c * o + s * q);
            let (beside, below) = (c * o - s * p, c * q - s * o);
            d[k] = c * top + s * low;
            e[k] = c * low - s * top;
            d[k + 1] = c * below - s * beside;
            x = e[k];
            if k + 1 < end {
                z = s * e[k + 1];
                e[k + 1] = c * e[k + 1];
            }
            if let Some(rows) = &mut rows {
                rows.turn(workers, Rotation { i: k, k: k + 1, c, s });
            }
        }
    }
    if let Some(rows) = rows {
        rows.settle(workers);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::workers::Alone;
    use super::*;

    #[test]
    fn vectors_and_values_make_the_matrix() {
        for n in [0, 1, 2, 3, 17, 34, 70, 100] {
            let number = |i: usize| (i * 7919 % 1009) as f64 / 503.0 - 1.0;
            let a: Vec<f64> = (0..n * n).map(number).collect();
            let (mut w, mut v) = (vec![0.0; n], vec![0.0; n * n]);
            assert_eq!(eigh(&Alone, &a, n, &mut w, &mut v), Ok(()));
            for i in 0..n {
                for j in 0..=i {
                    let sum: f64 = (0..n).map(|p| v[i * n + p] * w[p] * v[j * n + p]).sum();
                    assert!((sum - a[i * n + j]).abs() < 1e-12, "{n}: ({i}, {j})");
                    let inner: f64 = (0..n).map(|p| v[p * n + i] * v[p * n + j]).sum();
                    assert!((inner - f64::from(u8::from(i == j))).abs() < 1e-12, "{n}: ({i}, {j})");
                }
            }
            assert!(w.is_sorted());
            let mut alone = vec![0.0; n];
            assert_eq!(eigh(&Alone, &a, n, &mut alone, &mut []), Ok(()));
            assert_eq!(w, alone);
        }
    }

    #[test]
    fn numbers_of_any_size() {
        for by in [1e-300, 1e-30, 1e30, 1e300] {
            let (mut w, mut v) = ([0.0; 2], [0.0; 4]);
            assert_eq!(eigh(&Alone, &[2.0 * by, 0.0, by, 2.0 * by], 2, &mut w, &mut v), Ok(()));
            assert!((w[0] / by - 1.0).abs() < 1e-14 && (w[1] / by - 3.0).abs() < 1e-14, "{w:?}");
        }
    }
}

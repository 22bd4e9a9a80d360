//! Singular values and vectors: reflectors from both sides make the matrix bidiagonal, implicit QR steps make that
//! diagonal (Golub and Kahan, 1965; Golub and Van Loan, Matrix Computations, 8.6).

use super::matrix::{Failure, View, finite, transposed, turn_columns, turned_columns};
use super::number::Real;
use super::product::{Products, Sizes, Target};
use super::qr::{PANEL, Panel, columns_of, qr, reflector};
use super::rotations::{Rotation, Rows, turning};
use super::vectors::{add_rows, larger, largest, reflect_rows, subtract_outer};
use super::workers::Workers;

/// Steps that are tried for one singular value; about two are usual.
const STEPS: usize = 60;

/// What to write: the vectors may be left out, both together.
pub struct Parts<'a, T> {
    /// `m` by `k`.
    pub u: &'a mut [T],
    /// `k`.
    pub s: &'a mut [T],
    /// `k` by `n`.
    pub vh: &'a mut [T],
}

/// Descending singular values `s` of `a` (`m` by `n`), and where `u` and `vh` have elements the vectors:
/// `a = u · diag(s) · vh`, with `k` orthonormal columns of `u` and rows of `vh`, `k` the less of `m` and `n`. In each column of `u` the
/// first element of at least half the largest magnitude is positive.
///
/// Cost: about `4 m n²` operations for the values, some `10 m n²` more with vectors (`m >= n`).
///
/// # Errors
/// [`Failure::NotFinite`], [`Failure::NotConverged`].
pub fn svd<T: Real, W: Workers>(workers: &W, a: &[T], m: usize, n: usize, out: Parts<T>) -> Result<(), Failure> {
    finite(a, n)?;
    let k = m.min(n);
    if k == 0 {
        return Ok(());
    }
    let wanted = !out.u.is_empty();
    let most = largest(a);
    // A power of two is exact, and squares of what it leaves are neither too large nor too small.
    let by = if most > T::ZERO { most.to_unit() } else { T::ONE };
    let (tall, wide) = (m.max(n), k);
    let mut scaled = if m < n { transposed(a, m, n, n) } else { a.to_vec() };
    scaled.iter_mut().for_each(|x| *x = *x * by);
    // Of many rows the triangular factor is enough for the iterations.
    let orthonormal = if 2 * tall > 3 * wide {
        let (mut q, mut r) = (vec![T::ZERO; tall * wide], vec![T::ZERO; wide * wide]);
        qr(workers, &scaled, tall, wide, &mut q, &mut r)?;
        scaled = r;
        Some(q)
    } else {
        None
    };
    let rows = scaled.len() / wide;
    let mut found = bidiagonal(workers, scaled, rows, wide, wanted);
    found.diagonalise(workers)?;
    let d = &found.d;
    let mut order: Vec<usize> = (0..wide).collect();
    order.sort_by(|&i, &j| d[j].partial_cmp(&d[i]).unwrap_or(std::cmp::Ordering::Equal));
    out.s.iter_mut().zip(&order).for_each(|(s, &i)| *s = d[i] / by);
    let Some([left, right]) = found.vectors else { return Ok(()) };
    let mut columns = vec![T::ZERO; rows * wide];
    left.write_columns(&order, &mut columns);
    if let Some(q) = orthonormal {
        let mut products = Products::new(workers);
        let mut whole = vec![T::ZERO; tall * wide];
        let sizes = Sizes { m: tall, n: wide, k: wide };
        products.take(sizes, View::rows(&q, wide), View::rows(&columns, wide), false);
        products.add(Target { data: &mut whole, width: wide, column: 0, lower: false });
        columns = whole;
    }
    if m < n {
        // The other way round: `u` is the right factor.
        right.write_columns(&order, out.u);
        out.vh.copy_from_slice(&transposed(&columns, tall, wide, wide));
    } else {
        out.u.copy_from_slice(&columns);
        right.write_rows(&order, out.vh);
    }
    let turned = turned_columns(out.u, k);
    turn_columns(out.u, &turned);
    for (row, turned) in out.vh.chunks_exact_mut(n).zip(turned) {
        if turned {
            row.iter_mut().for_each(|x| *x = -*x);
        }
    }
    Ok(())
}

/// An upper bidiagonal matrix with the factors on both sides of it, whose columns are rows here.
struct Bidiagonal<T> {
    d: Vec<T>,
    e: Vec<T>,
    vectors: Option<[Rows<T>; 2]>,
}

/// Takes `a` (`m` by `n`, `m >= n`) to its bidiagonal form.
fn bidiagonal<T: Real, W: Workers>(workers: &W, mut a: Vec<T>, m: usize, n: usize, wanted: bool) -> Bidiagonal<T> {
    let mut products = Products::new(workers);
    let (mut d, mut e) = (vec![T::ZERO; n], vec![T::ZERO; n.saturating_sub(1)]);
    let (mut left, mut right) = (Gathered::new(m, 0, wanted), Gathered::new(n, 1, wanted));
    for k in 0..n {
        let mut v: Vec<T> = (k..m).map(|i| a[i * n + k]).collect();
        let [tau, image] = reflector(&mut v);
        d[k] = image;
        let rest = n - k - 1;
        if tau != T::ZERO && rest > 0 {
            let mut inner = vec![T::ZERO; rest];
            add_rows(&v, &a[k * n..], n, k + 1, &mut inner);
            inner.iter_mut().for_each(|x| *x = tau * *x);
            subtract_outer(&v, &inner, &mut a[k * n..], n, k + 1);
        }
        left.push(&mut products, v, tau, k + 1 == n);
        if rest == 0 {
            break;
        }
        let mut v = a[k * n + k + 1..][..rest].to_vec();
        let [tau, image] = reflector(&mut v);
        e[k] = image;
        if tau != T::ZERO {
            reflect_rows(tau, &v, &mut a[(k + 1) * n..], n, k + 1);
        }
        right.push(&mut products, v, tau, k + 2 == n);
    }
    let vectors = wanted.then(|| {
        [(left, m), (right, n)].map(|(of, tall)| Rows::of_columns(&columns_of(&mut products, &of.panels, tall, n), n))
    });
    Bidiagonal { d, e, vectors }
}

/// Reflectors that are gathered to panels: the `k`-th acts on the rows from `k + first` on.
struct Gathered<T> {
    tall: usize,
    first: usize,
    wanted: bool,
    panels: Vec<Panel<T>>,
    vectors: Vec<T>,
    taus: Vec<T>,
}

impl<T: Real> Gathered<T> {
    fn new(tall: usize, first: usize, wanted: bool) -> Gathered<T> {
        Gathered { tall, first, wanted, panels: vec![], vectors: vec![], taus: vec![] }
    }

    fn push<W: Workers>(&mut self, products: &mut Products<T, W>, v: Vec<T>, tau: T, last: bool) {
        if !self.wanted {
            return;
        }
        let row = self.panels.len() * PANEL + self.first;
        let height = self.tall - row;
        self.vectors.resize(self.vectors.len() + height - v.len(), T::ZERO);
        self.vectors.extend(v);
        self.taus.push(tau);
        if last || self.taus.len() == PANEL {
            self.panels.push(Panel::of_columns(products, row, &self.vectors, height, &self.taus));
            self.vectors.clear();
            self.taus.clear();
        }
    }
}

impl<T: Real> Bidiagonal<T> {
    fn turn<W: Workers>(&mut self, workers: &W, side: usize, rotation: Rotation<T>) {
        if let Some(vectors) = &mut self.vectors {
            vectors[side].turn(workers, rotation);
        }
    }

    /// Takes the matrix to its diagonal, whose elements are not negative.
    fn diagonalise<W: Workers>(&mut self, workers: &W) -> Result<(), Failure> {
        // What reflectors have rounded is as large: smaller elements say nothing.
        let least = T::EPSILON * larger(largest(&self.d), largest(&self.e));
        let mut end = self.d.len() - 1;
        let mut tried = 0;
        while end > 0 {
            if self.splits(end - 1, least) {
                self.e[end - 1] = T::ZERO;
                end -= 1;
                tried = 0;
                continue;
            }
            let mut begin = end - 1;
            while begin > 0 && !self.splits(begin - 1, least) {
                begin -= 1;
            }
            match (begin..=end).find(|&i| self.d[i].abs() <= least) {
                // Each of these takes one element beside the diagonal away for good.
                Some(at) if at == end => self.clear_column(workers, begin, end),
                Some(at) => self.clear_row(workers, at, end),
                None => self.step(workers, begin, end),
            }
            tried += 1;
            if tried > STEPS + end - begin {
                return Err(Failure::NotConverged);
            }
        }
        if let Some(vectors) = &mut self.vectors {
            vectors.iter_mut().for_each(|rows| rows.settle(workers));
        }
        for i in 0..self.d.len() {
            if self.d[i] < T::ZERO {
                self.d[i] = -self.d[i];
                if let Some([_, right]) = &mut self.vectors {
                    right.negate(i);
                }
            }
        }
        Ok(())
    }

    /// Whether what stands beside the diagonal is too small to count.
    fn splits(&self, i: usize, least: T) -> bool {
        self.e[i].abs() <= larger(T::EPSILON * (self.d[i].abs() + self.d[i + 1].abs()), least)
    }

    /// A diagonal element that is zero: what stands in its row goes too.
    fn clear_row<W: Workers>(&mut self, workers: &W, at: usize, end: usize) {
        self.d[at] = T::ZERO;
        let mut beside = std::mem::take(&mut self.e[at]);
        for k in at + 1..=end {
            let [c, s, r] = turning(self.d[k], beside);
            self.d[k] = r;
            self.turn(workers, 0, Rotation { i: k, k: at, c, s });
            if k < end {
                beside = -(s * self.e[k]);
                self.e[k] = c * self.e[k];
            }
        }
    }

    /// The last diagonal element is zero: what stands in its column goes too.
    fn clear_column<W: Workers>(&mut self, workers: &W, begin: usize, end: usize) {
        self.d[end] = T::ZERO;
        let mut above = std::mem::take(&mut self.e[end - 1]);
        for k in (begin..end).rev() {
            let [c, s, r] = turning(self.d[k], above);
            self.d[k] = r;
            self.turn(workers, 1, Rotation { i: k, k: end, c, s });
            if k > begin {
                above = -(s * self.e[k - 1]);
                self.e[k - 1] = c * self.e[k - 1];
            }
        }
    }

    /// One implicit QR step with the shift of the last two columns.
    fn step<W: Workers>(&mut self, workers: &W, begin: usize, end: usize) {
        let two = T::ONE + T::ONE;
        let (p, q, f) = (self.d[end - 1], self.d[end], self.e[end - 1]);
        let over = if end - 1 > begin { self.e[end - 2] } else { T::ZERO };
        // The last two by two block of the product with the transposed matrix.
        let (t, u, o) = (p * p + over * over, q * q + f * f, p * f);
        let apart = (t - u) / two;
        let [.., far] = turning(apart, o);
        let far = if apart < T::ZERO { -far.abs() } else { far.abs() };
        let shift = if o == T::ZERO { u } else { u - o * (o / (apart + far)) };
        let first = self.d[begin];
        // Divided by the first element, so that small ones keep their digits.
        let (mut y, mut z) = (first - shift / first, self.e[begin]);
        for k in begin..end {
            let [c, s, r] = turning(y, z);
            if k > begin {
                self.e[k - 1] = r;
            }
            let (x, beside, next) = (self.d[k], self.e[k], self.d[k + 1]);
            let top = c * x + s * beside;
            let beside = c * beside - s * x;
            let (below, next) = (s * next, c * next);
            self.turn(workers, 1, Rotation { i: k, k: k + 1, c, s });
            let [c, s, r] = turning(top, below);
            self.d[k] = r;
            self.e[k] = c * beside + s * next;
            self.d[k + 1] = c * next - s * beside;
            y = self.e[k];
            if k + 1 < end {
                z = s * self.e[k + 1];
                self.e[k + 1] = c * self.e[k + 1];
            }
            self.turn(workers, 0, Rotation { i: k, k: k + 1, c, s });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::workers::Alone;
    use super::*;

    fn check(a: &[f64], m: usize, n: usize) {
        let k = m.min(n);
        let (mut u, mut s, mut vh) = (vec![0.0; m * k], vec![0.0; k], vec![0.0; k * n]);
        assert_eq!(svd(&Alone, a, m, n, Parts { u: &mut u, s: &mut s, vh: &mut vh }), Ok(()));
        let most = a.iter().fold(1e-300f64, |m, x| m.max(x.abs()));
        for i in 0..m {
            for j in 0..n {
                let sum: f64 = (0..k).map(|p| u[i * k + p] * s[p] * vh[p * n + j]).sum();
                assert!((sum - a[i * n + j]).abs() < 1e-12 * most, "{m} {n}: ({i}, {j})");
            }
        }
        for i in 0..k {
            for j in 0..k {
                let one = f64::from(u8::from(i == j));
                let left: f64 = (0..m).map(|p| u[p * k + i] * u[p * k + j]).sum();
                let right: f64 = (0..n).map(|p| vh[i * n + p] * vh[j * n + p]).sum();
                assert!((left - one).abs() < 1e-12 && (right - one).abs() < 1e-12, "{m} {n}: ({i}, {j})");
            }
        }
        assert!(s.is_sorted_by(|a, b| a >= b) && s.iter().all(|s| *s >= 0.0));
        let mut alone = vec![0.0; k];
        assert_eq!(svd(&Alone, a, m, n, Parts { u: &mut [], s: &mut alone, vh: &mut [] }), Ok(()));
        assert_eq!(s, alone);
    }

    #[test]
    fn factors_make_the_matrix() {
        for (m, n) in [(0, 2), (1, 1), (2, 2), (5, 3), (3, 5), (34, 33), (90, 40), (40, 90), (70, 70)] {
            let a: Vec<f64> = (0..m * n).map(|i| (i * 7919 % 1009) as f64 / 503.0 - 1.0).collect();
            check(&a, m, n);
        }
    }

    #[test]
    fn matrices_of_low_rank() {
        check(&[0.0; 12], 4, 3);
        check(&[1.0; 25], 5, 5);
        let shifted: Vec<f64> = (0..64).map(|i| if i % 8 == i / 8 + 1 { 1.0 } else { 0.0 }).collect();
        check(&shifted, 8, 8);
        let a: Vec<f64> = (0..400).map(|i| ((i / 20 % 3) * (i % 20)) as f64 * 1e200).collect();
        check(&a, 20, 20);
    }
}

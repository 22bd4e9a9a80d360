//! Eigenvalues and eigenvectors of any square matrix: reflectors bring it to Hessenberg form, QR steps with two shifts at a time to
//! a triangular one with blocks of two rows for pairs of conjugates, and each vector follows from that by substitution (Francis,
//! 1961; Golub and Van Loan, Matrix Computations, 7.5 and 7.6). Everything in f64.

use super::matrix::{Failure, finite};
use super::qr::reflector;
use super::rotations::turning;
use super::vectors::{add_rows, larger, largest, reflect_rows, subtract_outer};

/// Steps that are tried for one eigenvalue; about two are usual.
const STEPS: usize = 60;

/// A complex number: real and imaginary part.
type Complex = [f64; 2];

fn times([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

fn minus([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a - c, b - d]
}

/// Scaled, so that nothing overflows on the way (Smith, 1962).
fn over([a, b]: Complex, [c, d]: Complex) -> Complex {
    if c.abs() >= d.abs() {
        let (ratio, by) = (d / c, c + d * (d / c));
        [(a + b * ratio) / by, (b - a * ratio) / by]
    } else {
        let (ratio, by) = (c / d, c * (c / d) + d);
        [(a * ratio + b) / by, (b * ratio - a) / by]
    }
}

fn size([a, b]: Complex) -> f64 {
    super::vectors::hypotenuse(a, b)
}

/// What [`eig`] gives.
pub struct Eigen {
    pub values: Vec<Complex>,
    /// `n` by `n`, the vectors as columns.
    pub vectors: Vec<Complex>,
}

/// Eigenvalues of `a` (`n` by `n`), ascending by their real parts and then by their imaginary ones, and where they are wanted the
/// eigenvectors, of length 1: the first element of at least half the largest magnitude is real and positive. Pairs of conjugates are
/// exactly that.
///
/// Cost: about `25 n³` operations with vectors, `10 n³` without.
///
/// # Errors
/// [`Failure::NotFinite`], [`Failure::NotConverged`].
pub fn eig(a: &[f64], n: usize, wanted: bool) -> Result<Eigen, Failure> {
    finite(a, n)?;
    let most = largest(a);
    // A power of two is exact, and products of what it leaves are neither too large nor too small.
    let by = if most > 0.0 { super::number::Real::to_unit(most) } else { 1.0 };
    let mut form = Form { t: a.iter().map(|x| x * by).collect(), z: vec![], n };
    if wanted {
        form.z = vec![0.0; n * n];
        form.z.iter_mut().step_by(n + 1).for_each(|x| *x = 1.0);
    }
    form.hessenberg();
    form.triangular()?;
    let values = form.values();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &k| {
        let ([a, b], [c, d]) = (values[i], values[k]);
        a.partial_cmp(&c).unwrap_or(std::cmp::Ordering::Equal).then(b.total_cmp(&d))
    });
    let mut vectors = vec![[0.0; 2]; if wanted { n * n } else { 0 }];
    if wanted {
        for (column, &i) in order.iter().enumerate() {
            let v = form.vector(&values, i);
            vectors[column..].iter_mut().step_by(n).zip(v).for_each(|(to, x)| *to = x);
        }
    }
    let values = order.iter().map(|&i| [values[i][0] / by, values[i][1] / by]).collect();
    Ok(Eigen { values, vectors })
}

/// A matrix on its way to a triangle, `z t zᵀ`.
struct Form {
    t: Vec<f64>,
    /// Empty where no vectors are wanted.
    z: Vec<f64>,
    n: usize,
}

impl Form {
    fn at(&self, i: usize, j: usize) -> f64 {
        self.t[i * self.n + j]
    }

    fn hessenberg(&mut self) {
        let n = self.n;
        for k in 0..n.saturating_sub(2) {
            let mut v: Vec<f64> = (k + 1..n).map(|i| self.at(i, k)).collect();
            let [tau, image] = reflector(&mut v);
            self.t[(k + 1) * n + k] = image;
            (k + 2..n).for_each(|i| self.t[i * n + k] = 0.0);
            if tau == 0.0 {
                continue;
            }
            let mut inner = vec![0.0; n - k - 1];
            let below = &mut self.t[(k + 1) * n..];
            add_rows(&v, below, n, k + 1, &mut inner);
            inner.iter_mut().for_each(|x| *x *= tau);
            subtract_outer(&v, &inner, below, n, k + 1);
            reflect_rows(tau, &v, &mut self.t, n, k + 1);
            reflect_rows(tau, &v, &mut self.z, n, k + 1);
        }
    }

    /// Applies the reflector of `v` to rows and columns from `k` on: to the columns from `from` on and the rows below `to`.
    fn reflect(&mut self, tau: f64, v: &[f64], k: usize, from: usize, to: usize) {
        let n = self.n;
        if tau == 0.0 {
            return;
        }
        for j in from..n {
            let sum: f64 = v.iter().enumerate().fold(0.0, |sum, (i, v)| sum + v * self.t[(k + i) * n + j]);
            v.iter().enumerate().for_each(|(i, v)| self.t[(k + i) * n + j] -= tau * sum * v);
        }
        for row in self.t.chunks_exact_mut(n).take(to).chain(self.z.chunks_exact_mut(n)) {
            let part = &mut row[k..][..v.len()];
            let sum = part.iter().zip(v).fold(0.0, |sum, (x, v)| sum + x * v);
            part.iter_mut().zip(v).for_each(|(x, v)| *x -= tau * sum * v);
        }
    }

    fn triangular(&mut self) -> Result<(), Failure> {
        let n = self.n;
        // What reflectors have rounded is as large: smaller elements say nothing.
        let least = f64::EPSILON * largest(&self.t);
        let (mut end, mut tried) = (n, 0);
        while end > 0 {
            let splits = |f: &Form, i: usize| {
                let beside = f.at(i, i).abs() + f.at(i - 1, i - 1).abs();
                f.at(i, i - 1).abs() <= larger(f64::EPSILON * beside, least)
            };
            let begin = (1..end).rev().find(|&i| splits(self, i)).unwrap_or(0);
            if begin > 0 {
                self.t[begin * n + begin - 1] = 0.0;
            }
            if begin + 2 >= end {
                if begin + 2 == end {
                    self.split_pair(begin);
                }
                (end, tried) = (begin, 0);
                continue;
            }
            tried += 1;
            if tried > STEPS {
                return Err(Failure::NotConverged);
            }
            self.step(begin, end, tried % 10 == 0);
        }
        Ok(())
    }

    /// A QR step with two shifts; one of ten takes others, in case those go round in circles.
    fn step(&mut self, begin: usize, end: usize, other: bool) {
        let (p, q) = (end - 2, end - 1);
        let (mut sum, mut product) =
            (self.at(p, p) + self.at(q, q), self.at(p, p) * self.at(q, q) - self.at(p, q) * self.at(q, p));
        if other {
            let beside = self.at(q, p).abs() + self.at(p, p - 1).abs();
            (sum, product) = (1.5 * beside, beside * beside);
        }
        let (a, b, c, d) = (
            self.at(begin, begin),
            self.at(begin, begin + 1),
            self.at(begin + 1, begin),
            self.at(begin + 1, begin + 1),
        );
        let mut x = vec![a * a + b * c - sum * a + product, c * (a + d - sum), c * self.at(begin + 2, begin + 1)];
        for k in begin..end - 1 {
            let [tau, image] = reflector(&mut x);
            if k > begin {
                self.t[k * self.n + k - 1] = image;
                (1..x.len()).for_each(|i| self.t[(k + i) * self.n + k - 1] = 0.0);
            }
            self.reflect(tau, &x, k, k, (k + 4).min(end));
            x = (k + 1..(k + 4).min(end)).map(|i| self.at(i, k)).collect();
        }
    }

    /// Two rows that stand alone: a triangle where their eigenvalues are real.
    fn split_pair(&mut self, p: usize) {
        let (n, q) = (self.n, p + 1);
        let (a, b, c, d) = (self.at(p, p), self.at(p, q), self.at(q, p), self.at(q, q));
        let half = (a - d) / 2.0;
        let square = half * half + b * c;
        if c == 0.0 || square < 0.0 {
            return;
        }
        // The vector of the eigenvalue that is farther from `d`, so that nothing cancels.
        let far = half + if half < 0.0 { -square.sqrt() } else { square.sqrt() };
        let [cos, sin, _] = turning(far, c);
        let turn = |x: &mut f64, y: &mut f64| (*x, *y) = (cos * *x + sin * *y, cos * *y - sin * *x);
        let (upper, lower) = self.t.split_at_mut(q * n);
        upper[p * n + p..].iter_mut().zip(&mut lower[p..n]).for_each(|(x, y)| turn(x, y));
        for row in self.t.chunks_exact_mut(n).take(q + 1).chain(self.z.chunks_exact_mut(n)) {
            let (x, y) = row.split_at_mut(q);
            turn(&mut x[p], &mut y[0]);
        }
        self.t[q * n + p] = 0.0;
    }

    /// Whether row `i` is the first one of a pair of conjugates.
    fn is_pair(&self, i: usize) -> bool {
        i + 1 < self.n && self.at(i + 1, i) != 0.0
    }

    fn values(&self) -> Vec<Complex> {
        let mut out = vec![];
        while out.len() < self.n {
            let i = out.len();
            if !self.is_pair(i) {
                out.push([self.at(i, i), 0.0]);
                continue;
            }
            let half = (self.at(i, i) - self.at(i + 1, i + 1)) / 2.0;
            let square = half * half + self.at(i, i + 1) * self.at(i + 1, i);
            let (re, im) = (self.at(i + 1, i + 1) + half, (-square).max(0.0).sqrt());
            out.extend([[re, im], [re, -im]]);
        }
        out
    }

    /// The eigenvector of eigenvalue `i`.
    fn vector(&self, values: &[Complex], i: usize) -> Vec<Complex> {
        let n = self.n;
        let second = i > 0 && values[i][1] < 0.0;
        if second {
            // The conjugate of the other one.
            return self.vector(values, i - 1).into_iter().map(|[re, im]| [re, -im]).collect();
        }
        let value = values[i];
        let mut y = vec![[0.0; 2]; n];
        let least = f64::EPSILON * largest(&self.t).max(f64::MIN_POSITIVE);
        let away = |x: Complex| if size(x) < least { [least, 0.0] } else { x };
        y[i] = [1.0, 0.0];
        let mut last = i;
        if self.is_pair(i) {
            last = i + 1;
            let (b, c) = (self.at(i, i + 1), self.at(i + 1, i));
            if b.abs() >= c.abs() {
                y[i + 1] = over(minus(value, [self.at(i, i), 0.0]), [b, 0.0]);
            } else {
                y[i] = over(minus(value, [self.at(i + 1, i + 1), 0.0]), [c, 0.0]);
                y[i + 1] = [1.0, 0.0];
            }
        }
        let right = |y: &[Complex], row: usize, from: usize| {
            (from..=last)
                .fold([0.0; 2], |s: Complex, k| [s[0] - self.at(row, k) * y[k][0], s[1] - self.at(row, k) * y[k][1]])
        };
        let mut row = i;
        while row > 0 {
            row -= 1;
            if row > 0 && self.is_pair(row - 1) {
                let (p, q) = (row - 1, row);
                let (a, d) = (minus([self.at(p, p), 0.0], value), minus([self.at(q, q), 0.0], value));
                let (b, c) = ([self.at(p, q), 0.0], [self.at(q, p), 0.0]);
                // Divided by the largest of the four, so that a determinant is as large as one of them.
                let most = [a, b, c, d].into_iter().map(size).fold(least, f64::max);
                let [a, b, c, d, r, s] =
                    [a, b, c, d, right(&y, p, q + 1), right(&y, q, q + 1)].map(|z| [z[0] / most, z[1] / most]);
                let whole = minus(times(a, d), times(b, c));
                let whole = if size(whole) < f64::EPSILON { [f64::EPSILON, 0.0] } else { whole };
                y[p] = over(minus(times(r, d), times(b, s)), whole);
                y[q] = over(minus(times(a, s), times(c, r)), whole);
                row = p;
            } else {
                y[row] = over(right(&y, row, row + 1), away(minus([self.at(row, row), 0.0], value)));
            }
            let most = y[row..=last].iter().fold(0.0, |m: f64, y| m.max(size(*y)));
            if most > 1e100 {
                y[row..=last].iter_mut().for_each(|y| *y = [y[0] / most, y[1] / most]);
            }
        }
        let element = |row: &[f64]| {
            row[..=last].iter().zip(&y).fold([0.0; 2], |s: Complex, (z, y)| [s[0] + z * y[0], s[1] + z * y[1]])
        };
        normal(self.z.chunks_exact(n).map(element).collect())
    }
}

/// The vector with length 1 and the turn that is stated.
fn normal(mut v: Vec<Complex>) -> Vec<Complex> {
    let most = v.iter().fold(0.0, |m: f64, x| m.max(size(*x)));
    let Some(&first) = v.iter().find(|x| 2.0 * size(**x) >= most).filter(|_| most > 0.0) else { return v };
    let length =
        v.iter().fold(0.0, |sum, x| sum + (x[0] / most) * (x[0] / most) + (x[1] / most) * (x[1] / most)).sqrt();
    let turn = [first[0] / size(first), -first[1] / size(first)];
    for x in &mut v {
        let turned = times(*x, turn);
        *x = [turned[0] / most / length, turned[1] / most / length];
    }
    v
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &[f64], n: usize) {
        let Eigen { values, vectors } = eig(a, n, true).expect("eigenvalues");
        let norm = largest(a) * n as f64;
        for j in 0..n {
            let mut length = 0.0;
            for i in 0..n {
                let sum = (0..n).fold([0.0; 2], |s: Complex, k| {
                    [s[0] + a[i * n + k] * vectors[k * n + j][0], s[1] + a[i * n + k] * vectors[k * n + j][1]]
                });
                let off = size(minus(sum, times(values[j], vectors[i * n + j])));
                assert!(off <= 1e-13 * norm * n as f64, "{n}: ({i}, {j}) is off by {off}");
                length += size(vectors[i * n + j]).powi(2);
            }
            assert!((length - 1.0).abs() < 1e-13);
        }
        let trace: f64 = (0..n).map(|i| a[i * n + i]).sum();
        let sum = values.iter().fold([0.0; 2], |s: Complex, w| [s[0] + w[0], s[1] + w[1]]);
        assert!((sum[0] - trace).abs() <= 1e-12 * norm * n as f64 && sum[1] == 0.0, "{n}: {sum:?}");
        assert_eq!(eig(a, n, false).expect("eigenvalues").values, values);
    }

    #[test]
    fn vectors_are_turned_by_nothing_but_their_values() {
        for n in [0, 1, 2, 3, 4, 5, 10, 31, 60] {
            let a: Vec<f64> = (0..n * n).map(|i| (i * 7919 % 1009) as f64 / 503.0 - 1.0).collect();
            check(&a, n);
            let symmetric: Vec<f64> = (0..n * n).map(|i| a[i] + a[i % n.max(1) * n + i / n.max(1)]).collect();
            check(&symmetric, n);
            check(&a.iter().map(|x| x * 1e-200).collect::<Vec<f64>>(), n);
        }
        // A turn, a shift, a cycle, and zeros.
        check(&[0.0, -1.0, 1.0, 0.0], 2);
        check(&[0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0], 3);
        check(&[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0], 4);
        check(&[0.0; 9], 3);
    }

    #[test]
    fn values_of_a_turn_are_a_pair() {
        let found = eig(&[0.0, -1.0, 1.0, 0.0], 2, true).expect("eigenvalues");
        assert_eq!(found.values, [[0.0, -1.0], [0.0, 1.0]]);
    }
}

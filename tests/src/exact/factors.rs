//! Factors of matrices and triangular systems by textbook loops in f64, none of them those of the kernels: Jacobi's
//! rotations for eigenvalues and singular values, reflectors one by one.
//!
//! The bound of an element is the usual one of backward stable algorithms: a multiple of `n` roundings times the condition of what
//! is asked for. Where a decision (a pivot, a sign, an order) hangs on a rounding nothing is known, or only the magnitude.

#![expect(clippy::needless_range_loop, reason = "loops over rows and columns read like the formulas")]

use super::Array;
use super::value::{Value, format};
use tessera_base::DType;
use tessera_ops::prim::{Factor, Triangle};

/// Rows of a matrix.
type Matrix = Vec<Vec<f64>>;

/// What a rounding may be multiplied with.
const SLACK: f64 = 16.0;
/// What is so near that a rounding may decide.
const NEAR: f64 = 1e-3;

/// The numbers in the middle of the ranges, and the largest of the halves of those; `None` where one is not finite.
fn middle(values: &[Value], columns: usize) -> Option<(Matrix, f64)> {
    let mut half: f64 = 0.0;
    let mut number = |v: &Value| match *v {
        Value::Real(lo, hi) if lo.is_finite() && hi.is_finite() => {
            half = half.max((hi - lo) / 2.0);
            Some(if lo == hi { lo } else { lo + (hi - lo) / 2.0 })
        }
        _ => None,
    };
    let numbers = values.iter().map(&mut number).collect::<Option<Vec<f64>>>()?;
    Some((numbers.chunks(columns.max(1)).map(<[f64]>::to_vec).collect(), half))
}

/// A matrix of which every element is one number.
fn matrix(values: &[Value], columns: usize) -> Option<Matrix> {
    middle(values, columns).filter(|(_, half)| *half == 0.0).map(|(a, _)| a)
}

fn turned(a: &Matrix, columns: usize) -> Matrix {
    (0..columns).map(|j| a.iter().map(|row| row[j]).collect()).collect()
}

fn largest(a: &Matrix) -> f64 {
    a.iter().flatten().fold(0.0, |m: f64, x| m.max(x.abs()))
}

fn norm(a: &Matrix) -> f64 {
    a.iter().flatten().map(|x| x * x).sum::<f64>().sqrt()
}

/// The condition of a square matrix, by its inverse.
fn condition(a: &Matrix) -> f64 {
    let n = a.len();
    let mut left = a.clone();
    let mut right: Matrix = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for j in 0..n {
        let pivot = (j..n).max_by(|&p, &q| left[p][j].abs().total_cmp(&left[q][j].abs())).unwrap_or(j);
        left.swap(j, pivot);
        right.swap(j, pivot);
        if left[j][j] == 0.0 {
            return f64::INFINITY;
        }
        for i in (0..n).filter(|&i| i != j) {
            let by = left[i][j] / left[j][j];
            for k in 0..n {
                left[i][k] -= by * left[j][k];
                right[i][k] -= by * right[j][k];
            }
        }
    }
    for (row, diagonal) in right.iter_mut().zip(left.iter().enumerate().map(|(i, r)| r[i])) {
        row.iter_mut().for_each(|x| *x /= diagonal);
    }
    norm(a) * norm(&right)
}

fn within(x: f64, bound: f64) -> Value {
    if bound.is_finite() { Value::Real(x - bound, x + bound) } else { Value::Any }
}

/// The vectors with the signs that the kernels state: the first element of at least half the largest magnitude is positive. `None`
/// for one where a rounding may decide which element that is.
fn signs(vectors: &Matrix) -> Vec<Option<f64>> {
    let sign = |v: &Vec<f64>| {
        let most = v.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let first = v.iter().position(|x| x.abs() >= 0.5 * most)?;
        let clear = v[..=first].iter().all(|x| (x.abs() / most - 0.5).abs() > NEAR);
        clear.then_some(if v[first] < 0.0 { -1.0 } else { 1.0 })
    };
    vectors.iter().map(sign).collect()
}

/// An element of a vector of some sign.
fn signed(sign: Option<f64>, x: f64, bound: f64) -> Value {
    match sign {
        Some(sign) if bound < NEAR => within(sign * x, bound),
        _ if bound.is_finite() => Value::Real(-x.abs() - bound, x.abs() + bound),
        _ => Value::Any,
    }
}

/// What [`tessera_ops::prim::Prim::Factor`] gives.
pub fn factor(factor: Factor, x: &Array, dtype: DType) -> Vec<Value> {
    let [batch @ .., m, n] = &x.shape[..] else { return vec![] };
    let unit = format(dtype).unit() * SLACK * (m.max(n) + 1) as f64;
    let each = factor.elems(*m as u64, *n as u64) as usize;
    let mut out = vec![];
    for at in 0..batch.iter().product() {
        let own = matrix(&x.values[at * m * n..][..m * n], *n).and_then(|a| {
            let a = if *n == 0 { vec![vec![]; *m] } else { a };
            one(factor, &a, *m, *n, unit)
        });
        out.extend(own.unwrap_or_else(|| vec![Value::Any; each]));
    }
    out
}

fn one(factor: Factor, a: &Matrix, m: usize, n: usize, unit: f64) -> Option<Vec<Value>> {
    let k = m.min(n);
    match factor {
        Factor::Cholesky => {
            let mut l = vec![vec![0.0; n]; n];
            for i in 0..n {
                for j in 0..=i {
                    let sum = a[i][j] - (0..j).map(|p| l[i][p] * l[j][p]).sum::<f64>();
                    l[i][j] = if i == j { sum.sqrt() } else { sum / l[j][j] };
                }
            }
            let bound = unit * condition(&l).powi(2) * largest(&l);
            let value = |(i, j): (usize, usize)| if j > i { Value::point(0.0) } else { within(l[i][j], bound) };
            Some((0..n * n).map(|at| value((at / n, at % n))).collect())
        }
        // What is one matrix's eigenvalues hangs on roundings where they are near each other: `law_linalg` holds their equation.
        Factor::Eig | Factor::Eigvals => None,
        Factor::Lu => lu(a, m, n, unit),
        Factor::Qr => qr(a, m, n, unit),
        Factor::Eigh | Factor::Eigvalsh => {
            let whole: Matrix = (0..n).map(|i| (0..n).map(|j| a[i.max(j)][i.min(j)]).collect()).collect();
            let (w, v) = eigen(&whole);
            let bound = unit * norm(&whole);
            let mut out: Vec<Value> = w.iter().map(|w| within(*w, bound)).collect();
            if factor == Factor::Eigh {
                let (gaps, signs) = (gaps(&w), signs(&v));
                let near = |p: usize, i: usize| signed(signs[p], v[p][i], 4.0 * bound / gaps[p]);
                out.extend((0..n * n).map(|at| near(at % n, at / n)));
            }
            Some(out)
        }
        Factor::Svd | Factor::Svdvals => {
            let flip = m < n;
            let tall = if flip { turned(a, n) } else { a.clone() };
            let (u, s, v) = singular(&tall, k);
            let bound = unit * norm(a);
            let values = s.iter().map(|s| within(*s, bound));
            if factor == Factor::Svdvals {
                return Some(values.collect());
            }
            let gaps: Vec<f64> = gaps(&s).iter().zip(&s).map(|(g, s)| g.min(*s)).collect();
            let (left, right) = if flip { (v, u) } else { (u, v) };
            let signs = signs(&left);
            let near = |p: usize, x: f64| signed(signs[p], x, 4.0 * bound / gaps[p]);
            let of_u = (0..m * k).map(|at| near(at % k, left[at % k][at / k]));
            let of_v = (0..k * n).map(|at| near(at / n, right[at / n][at % n]));
            Some(of_u.chain(values).chain(of_v).collect())
        }
    }
}

/// How far each number is from the next one; without another one as far as it is large.
fn gaps(w: &[f64]) -> Vec<f64> {
    let far = |i: usize| (0..w.len()).filter(|&j| j != i).map(|j| (w[i] - w[j]).abs()).fold(f64::INFINITY, f64::min);
    (0..w.len()).map(far).collect()
}

fn lu(a: &Matrix, m: usize, n: usize, unit: f64) -> Option<Vec<Value>> {
    let k = m.min(n);
    let mut both = a.clone();
    let mut rows: Vec<usize> = (0..m).collect();
    for j in 0..k {
        let mut sizes: Vec<f64> = both[j..].iter().map(|row| row[j].abs()).collect();
        let pivot = j + sizes.iter().position(|s| *s == sizes.iter().fold(0.0, |m: f64, x| m.max(*x)))?;
        sizes.sort_by(|a, b| b.total_cmp(a));
        let apart = sizes[0] - sizes.get(1).copied().unwrap_or(0.0);
        // A first column is compared as it is.
        if j > 0 && apart <= 4.0 * unit * largest(a) {
            return None;
        }
        both.swap(j, pivot);
        rows.swap(j, pivot);
        let head = both[j].clone();
        for row in &mut both[j + 1..] {
            row[j] = if head[j] == 0.0 { row[j] } else { row[j] / head[j] };
            let by = row[j];
            row[j + 1..].iter_mut().zip(&head[j + 1..]).for_each(|(x, h)| *x -= by * h);
        }
    }
    let square: Matrix = rows[..k].iter().map(|&r| a[r][..k].to_vec()).collect();
    let growth = largest(&both).max(1.0);
    let bound = unit * condition(&square) * growth;
    let row = |r: &usize| Value::Real(*r as f64, *r as f64);
    Some(both.iter().flatten().map(|x| within(*x, bound)).chain(rows.iter().map(row)).collect())
}

fn qr(a: &Matrix, m: usize, n: usize, unit: f64) -> Option<Vec<Value>> {
    let k = m.min(n);
    let mut r = a.clone();
    let mut reflectors: Vec<Vec<f64>> = vec![];
    for j in 0..k {
        let mut v: Vec<f64> = (0..m).map(|i| if i < j { 0.0 } else { r[i][j] }).collect();
        let whole = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        if v[j + 1..].iter().all(|x| *x == 0.0) {
            reflectors.push(vec![0.0; m]);
            continue;
        }
        if j > 0 && v[j].abs() <= NEAR * whole {
            return None;
        }
        v[j] += if v[j] < 0.0 { -whole } else { whole };
        let square: f64 = v.iter().map(|x| x * x).sum();
        for c in 0..n {
            let by = 2.0 * (0..m).map(|i| v[i] * r[i][c]).sum::<f64>() / square;
            (0..m).for_each(|i| r[i][c] -= by * v[i]);
        }
        v.iter_mut().for_each(|x| *x *= (2.0 / square).sqrt());
        reflectors.push(v);
    }
    let mut q: Matrix = (0..m).map(|i| (0..k).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for v in reflectors.iter().rev() {
        for c in 0..k {
            let by: f64 = (0..m).map(|i| v[i] * q[i][c]).sum();
            (0..m).for_each(|i| q[i][c] -= by * v[i]);
        }
    }
    let square: Matrix = r[..k].iter().map(|row| row[..k].to_vec()).collect();
    let bound = unit * condition(&square);
    let of_r = |(i, j): (usize, usize)| if j < i { Value::point(0.0) } else { within(r[i][j], bound * largest(a)) };
    let of_q = q.iter().flatten().map(|x| within(*x, bound));
    Some(of_q.chain((0..k * n).map(|at| of_r((at / n, at % n)))).collect())
}

/// Ascending eigenvalues with their vectors, by Jacobi's rotations.
fn eigen(a: &Matrix) -> (Vec<f64>, Matrix) {
    let n = a.len();
    let mut a = a.clone();
    let mut v: Matrix = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for _ in 0..60 {
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q] == 0.0 {
                    continue;
                }
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for row in &mut a {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                for k in 0..n {
                    (a[p][k], a[q][k]) = (c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]);
                }
                for k in 0..n {
                    (v[p][k], v[q][k]) = (c * v[p][k] - s * v[q][k], s * v[p][k] + c * v[q][k]);
                }
            }
        }
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j].abs()).sum();
        if off <= 1e-18 * norm(&a) {
            break;
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[i][i].total_cmp(&a[j][j]));
    (order.iter().map(|&i| a[i][i]).collect(), order.iter().map(|&i| v[i].clone()).collect())
}

/// Vectors on the left, descending singular values, vectors on the right of a matrix with `k` columns and no fewer rows: rotations
/// of pairs of columns until all are orthogonal.
fn singular(a: &Matrix, k: usize) -> (Matrix, Vec<f64>, Matrix) {
    let mut columns = turned(a, k);
    let mut v: Matrix = (0..k).map(|i| (0..k).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    for _ in 0..60 {
        let mut rotated = false;
        for p in 0..k {
            for q in p + 1..k {
                let (x, y) = (dot(&columns[p], &columns[p]), dot(&columns[q], &columns[q]));
                let z = dot(&columns[p], &columns[q]);
                if z == 0.0 || z.abs() <= 1e-16 * (x * y).sqrt() {
                    continue;
                }
                rotated = true;
                let theta = (y - x) / (2.0 * z);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for of in [&mut columns, &mut v] {
                    let (head, tail) = of.split_at_mut(q);
                    for (x, y) in head[p].iter_mut().zip(tail[0].iter_mut()) {
                        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                    }
                }
            }
        }
        if !rotated {
            break;
        }
    }
    let sizes: Vec<f64> = columns.iter().map(|c| dot(c, c).sqrt()).collect();
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by(|&i, &j| sizes[j].total_cmp(&sizes[i]));
    let unit = |i: &usize| columns[*i].iter().map(|x| if sizes[*i] > 0.0 { x / sizes[*i] } else { 0.0 }).collect();
    let u = order.iter().map(unit).collect();
    (u, order.iter().map(|&i| sizes[i]).collect(), order.iter().map(|&i| v[i].clone()).collect())
}

/// What [`tessera_ops::prim::Prim::TriangularSolve`] gives.
pub fn solve(triangle: Triangle, a: &Array, b: &Array, dtype: DType) -> Vec<Value> {
    let [batch @ .., n, width] = &b.shape[..] else { return vec![] };
    let (n, width) = (*n, *width);
    let mut out = vec![];
    for at in 0..batch.iter().product() {
        let own =
            middle(&a.values[at * n * n..][..n * n], n).zip(middle(&b.values[at * n * width..][..n * width], width));
        let Some(((a, of_a), (mut x, of_b))) = own else {
            out.resize(out.len() + n * width, Value::Any);
            continue;
        };
        let element = |i: usize, j: usize| match (i == j, (i > j) == triangle.lower) {
            (true, _) => {
                if triangle.unit {
                    1.0
                } else {
                    a[i][i]
                }
            }
            (_, true) => a[i][j],
            _ => 0.0,
        };
        let whole: Matrix = (0..n)
            .map(|i| (0..n).map(|j| if triangle.transposed { element(j, i) } else { element(i, j) }).collect())
            .collect();
        let down = triangle.lower != triangle.transposed;
        if width > 0 {
            for step in 0..n {
                let i = if down { step } else { n - 1 - step };
                for c in 0..width {
                    let sum: f64 = (0..n)
                        .filter(|&k| k != i)
                        .map(|k| whole[i][k] * if (k < i) == down { x[k][c] } else { 0.0 })
                        .sum();
                    x[i][c] = (x[i][c] - sum) / whole[i][i];
                }
            }
        }
        let most = largest(&x);
        let unit = format(dtype).unit() * SLACK * (n + 1) as f64;
        // What the operands may be off goes through the inverse.
        let moved = n as f64 * (of_a * most + of_b) / norm(&whole);
        let bound = condition(&whole) * (unit * most + moved);
        out.extend((0..n * width).map(|at| within(x[at / width][at % width], bound)));
    }
    out
}

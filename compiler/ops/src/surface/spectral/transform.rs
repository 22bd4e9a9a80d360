//! A transform of any length from those that have a plan: two of them around a twist for long
//! smooth lengths (Gentleman and Sande 1966), a convolution for large primes (Bluestein 1970).

use super::super::expand;
use super::super::{Build, Derivative, Id, Pull};
use crate::fft::{POINTS_MAX, plan, smooth, twist_tables, unit, unit_wide};
use crate::prim::{Fft, FftKind, Prim, Scalar};
use std::sync::Arc;
use tessera_base::DType;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Forward,
    Inverse,
}

impl Direction {
    fn kind(self) -> FftKind {
        match self {
            Direction::Forward => FftKind::Forward,
            Direction::Inverse => FftKind::Inverse,
        }
    }

    fn conjugate(self, w: [f32; 2]) -> [f32; 2] {
        if self == Direction::Inverse { [w[0], -w[1]] } else { w }
    }
}

/// A known f32 tensor.
fn table(b: &mut dyn Build, values: &[f32]) -> Id {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    b.push(Prim::Literal(bytes.into()), &[], vec![values.len() as u64], DType::F32)
}

/// Known complex numbers along the last dim of `shape`.
fn along_last(b: &mut dyn Build, values: &[[f32; 2]], shape: &[u64]) -> Id {
    let bytes: Vec<u8> = values.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    let x = b.push(Prim::Literal(bytes.into()), &[], vec![values.len() as u64], DType::C64);
    expand::broadcast_to(b, x, shape)
}

/// One primitive; its length has a plan.
fn one(b: &mut dyn Build, x: Id, f: Fft, out: u64, twist: Option<[Id; 2]>) -> Id {
    let mut shape = b.shape(x);
    shape.remove(f.axis);
    shape.insert(f.to, out);
    let values = plan(f.kind, f.points).map(|p| p.table()).unwrap_or_default();
    let mut operands = vec![x, table(b, &values)];
    operands.extend(twist.into_iter().flatten());
    let dtype = if f.kind == FftKind::RealInverse { DType::F32 } else { DType::C64 };
    let f = Fft { scale: f64::from(f.scale as f32), ..f };
    b.push(Prim::Fft(f), &operands, shape, dtype)
}

/// The transform of a c64 tensor along `axis`, which has elements, times `scale`. Its derivative
/// is the transform of the other direction.
pub fn transform(b: &mut dyn Build, x: Id, axis: usize, direction: Direction, scale: f64) -> Id {
    let y = steps(b, x, axis, direction, scale);
    let back = match direction {
        Direction::Forward => Direction::Inverse,
        Direction::Inverse => Direction::Forward,
    };
    let pull: Pull = Arc::new(move |b, p| vec![Some(transform(b, p.cotangent, axis, back, scale))]);
    b.derive(Derivative { inputs: vec![x], output: y, saved: vec![], pull });
    y
}

fn steps(b: &mut dyn Build, x: Id, axis: usize, direction: Direction, scale: f64) -> Id {
    let shape = b.shape(x);
    let n = shape[axis];
    if plan(direction.kind(), n).is_some() {
        let f = Fft { kind: direction.kind(), axis, to: axis, points: n, scale };
        return one(b, x, f, n, None);
    }
    let last = shape.len() - 1;
    let moved = expand::axis_last(b, x, axis);
    let out = match smooth(n).then(|| divide(n)).flatten() {
        Some(rows) => two(b, moved, [rows, n / rows], direction, scale),
        None => by_convolution(b, moved, direction, scale),
    };
    // The last dim goes back to its place.
    let perm: Vec<usize> = (0..last).map(|d| if d < axis { d } else { d + 1 }).collect();
    let mut back = vec![0; shape.len()];
    for (from, to) in perm.iter().enumerate() {
        back[*to] = from;
    }
    back[axis] = last;
    expand::transpose(b, out, &back)
}

/// Rows of the matrix that a long transform is folded to: near the root of `n`, multiples of 16
/// where there are any.
fn divide(n: u64) -> Option<u64> {
    let fits = |d: &u64| n.is_multiple_of(*d);
    let cost = |d: &u64| {
        let uneven = u64::from(!d.is_multiple_of(16)) + u64::from(!(n / d).is_multiple_of(16));
        (u64::from(n / d > POINTS_MAX), uneven, d.abs_diff(n / d))
    };
    (2..=POINTS_MAX).filter(fits).min_by_key(cost)
}

/// `x` has `rows·columns` elements along its last dim. Transforms of the columns, a twist, and
/// transforms of the rows, of which the results lie transposed.
fn two(b: &mut dyn Build, x: Id, [rows, columns]: [u64; 2], direction: Direction, scale: f64) -> Id {
    let shape = b.shape(x);
    let last = shape.len() - 1;
    let folded = [&shape[..last], &[rows, columns]].concat();
    let x = expand::reshape(b, x, &folded);
    let twist = twist_tables(rows, columns).map(|t| table(b, &t));
    let f = Fft { kind: direction.kind(), axis: last, to: last, points: rows, scale: 1.0 };
    let x = one(b, x, f, rows, Some(twist));
    let x = if plan(direction.kind(), columns).is_some() {
        let f = Fft { kind: direction.kind(), axis: last + 1, to: last, points: columns, scale };
        one(b, x, f, columns, None)
    } else {
        let x = transform(b, x, last + 1, direction, scale);
        let perm: Vec<usize> = (0..last).chain([last + 1, last]).collect();
        expand::transpose(b, x, &perm)
    };
    expand::reshape(b, x, &shape)
}

/// With the chirp `c[j] = exp(-πi·j²/n)`: `X[k] = c[k]·Σ (x[j]·c[j])·conj(c[k-j])`, a cyclic
/// convolution of a power of two.
fn by_convolution(b: &mut dyn Build, x: Id, direction: Direction, scale: f64) -> Id {
    let shape = b.shape(x);
    let last = shape.len() - 1;
    let n = shape[last];
    let m = (2 * n - 1).next_power_of_two();
    let square = |j: u64| (u128::from(j) * u128::from(j) % u128::from(2 * n)) as u64;
    let chirp: Vec<[f32; 2]> = (0..n).map(|j| direction.conjugate(unit(square(j), 2 * n))).collect();
    let c = along_last(b, &chirp, &shape);
    let x = expand::map(b, crate::map::MapOp::mul, &[x, c]);
    let x = expand::fit(b, x, last, m);
    let x = transform(b, x, last, Direction::Forward, 1.0);
    let mut kernel = vec![[0.0; 2]; m as usize];
    for j in 0..n {
        let [re, im] = unit_wide(square(j), 2 * n);
        let value = if direction == Direction::Inverse { [re, im] } else { [re, -im] };
        kernel[j as usize] = value;
        kernel[((m - j) % m) as usize] = value;
    }
    let kernel: Vec<[f32; 2]> = wide_dft(kernel).into_iter().map(|[re, im]| [re as f32, im as f32]).collect();
    let long = b.shape(x);
    let kernel = along_last(b, &kernel, &long);
    let x = expand::map(b, crate::map::MapOp::mul, &[x, kernel]);
    let x = transform(b, x, last, Direction::Inverse, 1.0 / m as f64);
    let x = expand::slice(b, x, last, 0, n);
    let by: Vec<[f32; 2]> = (0..n)
        .map(|j| {
            let [re, im] = unit_wide(square(j), 2 * n);
            direction.conjugate([(re * scale) as f32, (im * scale) as f32])
        })
        .collect();
    let by = along_last(b, &by, &shape);
    expand::map(b, crate::map::MapOp::mul, &[x, by])
}

/// The transform of a power of two of f64 numbers, for tables.
fn wide_dft(x: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let n = x.len();
    if n < 2 {
        return x;
    }
    let part = |first: usize| wide_dft(x.iter().skip(first).step_by(2).copied().collect());
    let (even, odd) = (part(0), part(1));
    let mut out = vec![[0.0; 2]; n];
    for k in 0..n / 2 {
        let ([a, b], [c, s]) = (odd[k], unit_wide(k as u64, n as u64));
        let turned = [a * c - b * s, a * s + b * c];
        out[k] = [even[k][0] + turned[0], even[k][1] + turned[1]];
        out[k + n / 2] = [even[k][0] - turned[0], even[k][1] - turned[1]];
    }
    out
}

/// The first `count <= n/2 + 1` values of the spectrum of an f32 tensor along `axis`.
pub fn to_half(b: &mut dyn Build, x: Id, axis: usize, count: u64, scale: f64) -> Id {
    let n = b.shape(x)[axis];
    if plan(FftKind::RealForward, n).is_some() {
        let f = Fft { kind: FftKind::RealForward, axis, to: axis, points: n, scale };
        let y = one(b, x, f, count, None);
        // Each inner value stands for two, of which the inverse counts both.
        let pull: Pull = Arc::new(move |b, p| {
            let c = expand::fit(b, p.cotangent, axis, n / 2 + 1);
            let c = weighted(b, c, axis, n, 0.5);
            vec![Some(from_half(b, c, axis, n, scale))]
        });
        b.derive(Derivative { inputs: vec![x], output: y, saved: vec![], pull });
        return y;
    }
    let x = expand::cast(b, x, DType::C64);
    let x = transform(b, x, axis, Direction::Forward, scale);
    expand::slice(b, x, axis, 0, count)
}

/// `n` real numbers along `axis` from the first values of their spectrum, at most `n/2 + 1`; those
/// that are not given are 0.
pub fn from_half(b: &mut dyn Build, x: Id, axis: usize, n: u64, scale: f64) -> Id {
    // The transform takes one value at least.
    let x = if b.shape(x)[axis] == 0 { expand::fit(b, x, axis, 1) } else { x };
    if plan(FftKind::RealInverse, n).is_some() {
        let f = Fft { kind: FftKind::RealInverse, axis, to: axis, points: n, scale };
        let y = one(b, x, f, n, None);
        let given = b.shape(x)[axis];
        let pull: Pull = Arc::new(move |b, p| {
            let c = to_half(b, p.cotangent, axis, given, scale);
            vec![Some(weighted(b, c, axis, n, 2.0))]
        });
        b.derive(Derivative { inputs: vec![x], output: y, saved: vec![], pull });
        return y;
    }
    let x = expand::fit(b, x, axis, n / 2 + 1);
    // The values that are their own mirror images are real.
    let first = expand::slice(b, x, axis, 0, 1);
    let mut parts = vec![only_real(b, first)];
    let inner = (n - 1) / 2;
    let middle = expand::slice(b, x, axis, 1, inner);
    parts.push(middle);
    if n.is_multiple_of(2) {
        let nyquist = expand::slice(b, x, axis, n / 2, 1);
        parts.push(only_real(b, nyquist));
    }
    let (shape, mut start, mut step) = (b.shape(middle), vec![0; b.shape(x).len()], vec![1; b.shape(x).len()]);
    if inner > 0 {
        (start[axis], step[axis]) = (inner as i64 - 1, -1);
        let reversed = b.push(Prim::Slice { start, step }, &[middle], shape, DType::C64);
        let (re, im) = (expand::real(b, reversed), expand::imag(b, reversed));
        let im = expand::unary(b, crate::map::MapOp::neg, im);
        parts.push(expand::complex(b, re, im));
    } else {
        parts.retain(|p| *p != middle);
    }
    let whole = expand::concat(b, &parts, axis);
    let out = transform(b, whole, axis, Direction::Inverse, scale);
    expand::real(b, out)
}

/// The first values of a spectrum of `n` points, those that have a mirror image times `factor`.
fn weighted(b: &mut dyn Build, x: Id, axis: usize, n: u64, factor: f64) -> Id {
    let shape = b.shape(x);
    let single = |k: u64| k == 0 || 2 * k == n;
    let factors: Vec<f32> = (0..shape[axis]).map(|k| if single(k) { 1.0 } else { factor as f32 }).collect();
    let factors = table(b, &factors);
    let factors = expand::broadcast_dims(b, factors, &shape, vec![axis]);
    let parts = [expand::real(b, x), expand::imag(b, x)];
    let [re, im] = parts.map(|part| expand::map(b, crate::map::MapOp::mul, &[part, factors]));
    expand::complex(b, re, im)
}

fn only_real(b: &mut dyn Build, x: Id) -> Id {
    let re = expand::real(b, x);
    let shape = b.shape(x);
    let zero = expand::full(b, &shape, DType::F32, Scalar::F(0.0));
    expand::complex(b, re, zero)
}

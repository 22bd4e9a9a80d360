//! Fourier transforms by their sums.

use super::Array;
use super::value::{Value, format};
use std::f64::consts::PI;
use tessera_base::DType;
use tessera_ops::prim::{Fft, FftKind};

/// Roundings per factor of two of the length: a butterfly adds and multiplies by a rounded
/// complex factor (less than 8 half units), and a prime radix p < 2^(p/2) sums p terms.
const ROUNDINGS_PER_DOUBLING: f64 = 8.0;
/// The same for scaling, twisting and the halves of real transforms.
const ROUNDINGS_AT_THE_ENDS: f64 = 24.0;

/// Sums of so many magnitudes stay below the largest number throughout a transform.
const LARGEST_PART: f64 = 16.0;

/// A complex number.
type Pair = [f64; 2];

/// Middle and half width of every number; `None` where one is not finite.
fn centres(values: &[Value]) -> Option<(Vec<f64>, f64)> {
    let mut width = 0.0;
    let mut out = vec![];
    for v in values {
        v.magnitude()?;
        let Value::Real(lo, hi) = *v else { return None };
        out.push(lo / 2.0 + hi / 2.0);
        width += (hi - lo) / 2.0;
    }
    Some((out, width))
}

/// The values of a transform; `twist` turns result `k` of column `c` by `exp(∓2πi·k·c/(n·columns))`.
pub fn fft(f: &Fft, x: &Array, shape: &[usize], twist: bool) -> Vec<Value> {
    let columns: usize = x.shape[f.axis + 1..].iter().product();
    let rows: usize = x.shape[..f.axis].iter().product();
    let length = x.shape[f.axis];
    let (count, after) = (shape[f.to], shape[f.to + 1..].iter().product::<usize>());
    let (wide_in, wide_out) = (x.parts(), if f.kind == FftKind::RealInverse { 1 } else { 2 });
    let total: usize = shape.iter().product();
    let mut out = vec![Value::Any; total * wide_out];
    for row in 0..rows * columns {
        let source = |j: usize| ((row / columns * length + j) * columns + row % columns) * wide_in;
        let values: Vec<Value> = (0..length).flat_map(|j| x.values[source(j)..source(j) + wide_in].to_vec()).collect();
        let Some((line, width)) = centres(&values) else { continue };
        // Intermediate numbers may be too large where the result is not.
        let size: f64 = line.iter().map(|x| x.abs()).sum();
        if size * f.scale.abs().max(1.0) > format(DType::F32).largest / LARGEST_PART {
            continue;
        }
        let turn = if twist { row % columns } else { 0 };
        let result = one(f, &line, count, turn as f64 / columns as f64);
        let off = bound(f, &line) + width * 2.0 * f.scale.abs();
        for (k, z) in result.iter().enumerate() {
            let at = ((row / after * count + k) * after + row % after) * wide_out;
            for part in 0..wide_out {
                out[at + part] = Value::Real(z[part] - off, z[part] + off);
            }
        }
    }
    out
}

/// Every intermediate number is at most the sum of magnitudes.
fn bound(f: &Fft, line: &[f64]) -> f64 {
    let size: f64 = line.iter().map(|x| x.abs()).sum::<f64>() * if f.kind == FftKind::RealInverse { 2.0 } else { 1.0 };
    let roundings = ROUNDINGS_PER_DOUBLING * (f.points as f64).log2() + ROUNDINGS_AT_THE_ENDS;
    roundings * format(DType::F32).unit() * size * f.scale.abs() + format(DType::F32).least()
}

fn one(f: &Fft, line: &[f64], count: usize, turn: f64) -> Vec<Pair> {
    let n = f.points as usize;
    let sign = if matches!(f.kind, FftKind::Inverse | FftKind::RealInverse) { 1.0 } else { -1.0 };
    let unit = |turns: f64| {
        let angle = sign * 2.0 * PI * turns;
        [angle.cos(), angle.sin()]
    };
    let mul = |[a, b]: Pair, [c, d]: Pair| [a * c - b * d, a * d + b * c];
    let term = |j: usize| match f.kind {
        FftKind::RealForward => [line[j], 0.0],
        _ => [line[2 * j], line[2 * j + 1]],
    };
    let result = |k: usize| {
        let mut sum = [0.0; 2];
        if f.kind == FftKind::RealInverse {
            for j in 0..line.len() / 2 {
                let [a, b] = term(j);
                // The ends of the spectrum are real and stand alone; the others have a conjugate.
                let ends = j == 0 || 2 * j == n;
                let z = mul([a, if ends { 0.0 } else { b }], unit((j * k % n) as f64 / n as f64));
                sum[0] += if ends { z[0] } else { 2.0 * z[0] };
            }
        } else {
            for j in 0..n {
                let z = mul(term(j), unit((j * k % n) as f64 / n as f64));
                sum = [sum[0] + z[0], sum[1] + z[1]];
            }
        }
        mul(sum, unit(k as f64 * turn / n as f64)).map(|v| v * f.scale)
    };
    (0..count).map(result).collect()
}

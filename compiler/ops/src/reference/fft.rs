//! Fourier transforms, in the order of operations that [`crate::fft`] lays down.

use super::layout::split;
use super::{ArrayRef, EvalError};
use crate::fft::codelet::{self, Numbers, Pair};
use crate::fft::{self, Plan, TWIST_BLOCK};
use crate::prim::{Fft, FftKind};

/// [`super::shape_check`] has seen that tables and shapes fit.
pub fn fft(f: &Fft, operands: &[ArrayRef], shape: &[u64]) -> Result<Vec<u8>, EvalError> {
    let no_plan = || EvalError::from("no plan for a transform of this length".to_string());
    let plan = fft::plan(f.kind, f.points).ok_or_else(no_plan)?;
    let x = operands[0];
    let from = split(x.shape, f.axis);
    let to = split(shape, f.to);
    let tables: Vec<Vec<f32>> = operands[1..].iter().map(|t| floats(t.bytes)).collect();
    let input = floats(x.bytes);
    let (wide_in, wide_out) =
        (if f.kind == FftKind::RealForward { 1 } else { 2 }, if f.kind == FftKind::RealInverse { 1 } else { 2 });
    let mut out = vec![0f32; to.outer * to.n * to.inner * wide_out];
    // The other dims keep their order, so both sides count them alike.
    for row in 0..from.outer * from.inner {
        let source = |j: usize| ((row / from.inner * from.n + j) * from.inner + row % from.inner) * wide_in;
        let target = |k: usize| ((row / to.inner * to.n + k) * to.inner + row % to.inner) * wide_out;
        let values: Vec<f32> = (0..from.n).flat_map(|j| input[source(j)..source(j) + wide_in].to_vec()).collect();
        let mut result = one(f, &plan, &tables[0], &values, to.n);
        if let [_, a, b] = &tables[..] {
            twist(f, &mut result, a, b, row % from.inner);
        }
        if f.scale != 1.0 && f.kind != FftKind::RealForward {
            result.iter_mut().for_each(|v| *v *= f.scale as f32);
        }
        if f.kind == FftKind::Inverse {
            swap(&mut result);
        }
        for (k, values) in result.chunks_exact(wide_out).enumerate() {
            out[target(k)..target(k) + wide_out].copy_from_slice(values);
        }
    }
    Ok(out.iter().flat_map(|v| v.to_le_bytes()).collect())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn swap(values: &mut [f32]) {
    values.as_chunks_mut::<2>().0.iter_mut().for_each(|z| z.swap(0, 1));
}

/// One transform of `values` (reals, or parts by turns) to `count` results. For the inverse the
/// result has its parts exchanged.
fn one(f: &Fft, plan: &Plan, table: &[f32], values: &[f32], count: usize) -> Vec<f32> {
    let half = |k: usize| {
        let at = plan.half_table() + 2 * k;
        [table[at], table[at + 1]]
    };
    let mut z: Vec<Pair<f32>> = values.as_chunks::<2>().0.to_vec();
    if f.kind == FftKind::RealInverse {
        // What is not given is zero, and the ends of the spectrum are real.
        z.resize(plan.n + 1, [0.0; 2]);
        z[0][1] = 0.0;
        z[plan.n][1] = 0.0;
        z = (0..plan.n).map(|k| codelet::join_half(&mut Numbers, z[k], z[plan.n - k], half(k))).collect();
    }
    if matches!(f.kind, FftKind::Inverse | FftKind::RealInverse) {
        z.iter_mut().for_each(|z| z.swap(0, 1));
    }
    let mut z = stages(plan, table, z);
    match f.kind {
        FftKind::RealForward => {
            let by = 0.5 * f.scale as f32;
            let value = |k: usize| {
                let sum = codelet::split_half(&mut Numbers, z[k % plan.n], z[(plan.n - k) % plan.n], half(k));
                codelet::scale(&mut Numbers, sum, by)
            };
            (0..count).flat_map(value).collect()
        }
        FftKind::RealInverse => {
            z.iter_mut().for_each(|z| z.swap(0, 1));
            z.concat()
        }
        _ => z.concat(),
    }
}

fn stages(plan: &Plan, table: &[f32], mut x: Vec<Pair<f32>>) -> Vec<Pair<f32>> {
    for s in &plan.stages {
        let mut y = x.clone();
        for p in 0..s.after {
            for q in 0..s.before {
                let points: Vec<_> = (0..s.radix).map(|k| x[q + s.before * (p + s.after * k)]).collect();
                for (j, mut v) in codelet::dft(&mut Numbers, &points).into_iter().enumerate() {
                    if s.after > 1 && j > 0 {
                        let at = s.table + 2 * (p * (s.radix - 1) + j - 1);
                        v = codelet::mul(&mut Numbers, v, [table[at], table[at + 1]]);
                    }
                    y[q + s.before * (s.radix * p + j)] = v;
                }
            }
        }
        x = y;
    }
    x
}

/// Turns the results of column `column`.
fn twist(f: &Fft, values: &mut [f32], first: &[f32], second: &[f32], column: usize) {
    let (block, lane) = (column / TWIST_BLOCK as usize, column % TWIST_BLOCK as usize);
    for (k, z) in values.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let at = 2 * (block * f.points as usize + k);
        let part = |p: usize| second[(2 * k + p) * TWIST_BLOCK as usize + lane];
        let w = codelet::mul(&mut Numbers, [first[at], first[at + 1]], [part(0), part(1)]);
        *z = codelet::mul(&mut Numbers, *z, w);
    }
}

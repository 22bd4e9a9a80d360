use super::*;
use crate::interpret;
use tessera_ir::reference::{ArrayRef, eval};
use tessera_ir::tile::verify::verify;
use tessera_ops::fft::twist_tables;
use tessera_ops::prim::Prim;

const MACHINES: [u32; 2] = [64, 16];

fn machine(vector_bytes: u32) -> Machine {
    Machine {
        vector_bytes,
        vector_registers: 32,
        bf16: tessera_ops::prim::Order::Chain,
        block_products: false,
        l1_bytes: 1 << 15,
        l2_bytes: 1 << 20,
        l3_bytes: 1 << 25,
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Runs the kernels in the checked interpreter and the reference kernel; both must give the same
/// bits, and no access may be wrong.
fn check(kind: FftKind, points: u64, (axis, to): (usize, usize), shapes: [&[u64]; 2], scale: f64, twist: bool) {
    let f = Fft { kind, axis, to, points, scale };
    let what = format!("{f:?} {shapes:?}");
    let plan = plan(kind, points).unwrap_or_else(|| panic!("{what}"));
    let floats = |shape: &[u64], real: bool| shape.iter().product::<u64>() as usize * if real { 1 } else { 2 };
    let mut state = points * 7919 + axis as u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let (real_in, real_out) = (kind == FftKind::RealForward, kind == FftKind::RealInverse);
    let x: Vec<f32> = (0..floats(shapes[0], real_in)).map(|_| next()).collect();
    let mut operands = vec![bytes(&x), bytes(&plan.table())];
    let mut lens = vec![vec![plan.table_len() as u64]];
    if twist {
        for t in twist_tables(points, shapes[0][axis + 1]) {
            lens.push(vec![t.len() as u64]);
            operands.push(bytes(&t));
        }
    }
    let (c64, f32) = (DType::C64, DType::F32);
    let (dtype, result) = (if real_in { f32 } else { c64 }, if real_out { f32 } else { c64 });
    let mut refs = vec![ArrayRef { dtype, shape: shapes[0], bytes: &operands[0] }];
    for (shape, bytes) in lens.iter().zip(&operands[1..]) {
        refs.push(ArrayRef { dtype: f32, shape, bytes });
    }
    let want = eval(&Prim::Fft(f), &refs, result, shapes[1]).unwrap_or_else(|e| panic!("{what}: {e}"));
    for vector_bytes in MACHINES {
        let lowered = lower(&f, "fft", shapes, twist, &machine(vector_bytes)).unwrap_or_else(|e| panic!("{what}: {e}"));
        let mut got = vec![0xa5; 4 * floats(shapes[1], real_out)];
        for step in &lowered.steps {
            verify(&step.kernel).unwrap_or_else(|e| panic!("{what}: {e}"));
            let mut tensors: Vec<Vec<u8>> = operands.clone();
            tensors.push(got);
            interpret(&step.kernel, &mut tensors, &[]).unwrap_or_else(|e| panic!("{what}: {e}"));
            got = tensors.pop().unwrap_or_default();
        }
        assert!(got == want, "{what} with vectors of {vector_bytes} bytes");
    }
}

#[test]
fn columns_and_rows_of_every_short_length() {
    use FftKind::*;
    for n in (1..=20).chain([24, 31, 32, 48, 62, 64]) {
        for rows in [1u64, 2, 5, 21] {
            for kind in [Forward, Inverse] {
                check(kind, n, (1, 1), [&[rows, n], &[rows, n]], 1.0, false);
                check(kind, n, (1, 1), [&[2, n, rows], &[2, n, rows]], 0.25, false);
            }
        }
    }
}

#[test]
fn real_numbers_in_rows_and_columns() {
    use FftKind::*;
    for n in (2..=20).step_by(2).chain([30, 32, 50, 62, 64]) {
        for rows in [1u64, 3, 19] {
            for kept in [1, 2, n / 4 + 1, n / 2, n / 2 + 1] {
                let scale = 1.0 / 16.0;
                check(RealForward, n, (1, 1), [&[rows, n], &[rows, kept]], scale, false);
                check(RealForward, n, (0, 0), [&[n, rows], &[kept, rows]], 1.0, false);
                check(RealInverse, n, (1, 1), [&[rows, kept], &[rows, n]], scale, false);
                check(RealInverse, n, (0, 0), [&[kept, rows], &[n, rows]], 1.0, false);
            }
        }
    }
}

#[test]
fn twists_and_turned_results() {
    for (n, columns) in [(4, 16), (6, 5), (32, 40), (3, 1)] {
        check(FftKind::Forward, n, (1, 1), [&[3, n, columns], &[3, n, columns]], 1.0, columns > 1);
        check(FftKind::Inverse, n, (0, 0), [&[n, columns], &[n, columns]], 0.5, columns > 1);
        check(FftKind::Forward, n, (2, 1), [&[3, columns, n], &[3, n, columns]], 1.0, false);
        check(FftKind::Inverse, n, (1, 0), [&[columns, n], &[n, columns]], 0.125, false);
    }
}

#[test]
fn longer_lengths() {
    for n in [100, 128, 240, 512, 2048] {
        check(FftKind::Forward, n, (1, 1), [&[3, n], &[3, n]], 1.0, false);
        check(FftKind::RealForward, n, (0, 0), [&[n, 2], &[n / 2 + 1, 2]], 1.0, false);
    }
}

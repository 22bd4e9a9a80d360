//! Complex numbers: their parts, and Fourier transforms.

use super::Builder;
use std::sync::Arc;
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::fft::{plan, twist_tables};
use tessera_ops::prim::{Fft, FftKind, Prim};

/// An earlier c64 node, or two f32 ones put together.
fn complex(b: &mut Builder) -> NodeId {
    if let Some(x) = b.find(|t| t.dtype == DType::C64).filter(|_| !b.random.once_in(3)) {
        return x;
    }
    let x = b.operand();
    let ty = b.ty(x);
    let re = b.cast_to(x, DType::F32);
    let im = b.like(&ty.shape, DType::F32);
    b.push(Prim::Complex, &[re, im], &ty.shape, DType::C64)
}

/// A part, which arithmetic goes on with, or numbers put together.
pub fn parts(b: &mut Builder) {
    let x = complex(b);
    let ty = b.ty(x);
    if b.random.once_in(4) {
        return;
    }
    let imag = b.random.once_in(2);
    b.push(Prim::Part { imag }, &[x], &ty.shape, DType::F32);
}

fn table(b: &mut Builder, values: &[f32]) -> NodeId {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    b.push(Prim::Literal(Arc::from(bytes)), &[], &[values.len() as u64], DType::F32)
}

/// New numbers for a transform of an odd number of points, or of some power of two times one.
fn odd(b: &mut Builder, kind: FftKind) -> NodeId {
    let mut shape = vec![b.random.pick(&[3, 5, 7, 9, 11, 15, 21, 25, 27, 30, 45, 60, 75, 105])];
    if b.random.once_in(2) {
        let at = b.random.below(2);
        shape.insert(at, b.random.pick(&[1, 2, 3, 5, 8, 17]));
    }
    let dtype = if kind == FftKind::RealForward { DType::F32 } else { DType::C64 };
    b.input(&shape, dtype)
}

/// A transform of some kind along some axis, now and then with its axis moved or with a twist.
pub fn fft(b: &mut Builder) {
    let kind = b.random.pick(&[FftKind::Forward, FftKind::Inverse, FftKind::RealForward, FftKind::RealInverse]);
    let x = match kind {
        _ if b.random.once_in(4) => odd(b, kind),
        FftKind::RealForward => {
            let x = b.ranked(1);
            b.cast_to(x, DType::F32)
        }
        _ => complex(b),
    };
    let shape = b.ty(x).shape;
    if shape.is_empty() {
        return;
    }
    let rank = shape.len();
    let axis = if b.random.once_in(2) { rank - 1 } else { b.random.below(rank) };
    let points = match kind {
        FftKind::RealInverse => 2 * shape[axis].saturating_sub(1) + 2 * b.random.below(2) as u64,
        _ => shape[axis],
    };
    let Some(plan) = plan(kind, points).filter(|_| shape[axis] > 0) else { return };
    let size = match kind {
        FftKind::RealForward => 1 + b.random.below(points as usize / 2 + 1) as u64,
        _ => points,
    };
    let twisted = !kind.real() && axis + 2 == rank && shape[rank - 1] > 0 && b.random.once_in(2);
    let to = if !twisted && b.random.once_in(4) { b.random.below(rank) } else { axis };
    let mut out = shape.clone();
    out.remove(axis);
    out.insert(to, size);
    if !b.affords(&out) {
        return;
    }
    let values = plan.table();
    let mut operands = vec![x, table(b, &values)];
    if twisted {
        operands.extend(twist_tables(points, shape[rank - 1]).map(|t| table(b, &t)));
    }
    let scale = b.random.pick(&[1.0, 1.0, 0.5, f64::from(1.0f32 / 3.0)]);
    let dtype = if kind == FftKind::RealInverse { DType::F32 } else { DType::C64 };
    b.push(Prim::Fft(Fft { kind, axis, to, points, scale }), &operands, &out, dtype);
}

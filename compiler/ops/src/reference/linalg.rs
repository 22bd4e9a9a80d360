//! Factors of matrices and triangular systems: the algorithms of [`tessera_abi::linalg`], one matrix after the other.

use super::{ArrayRef, EvalError};
use crate::prim::{Factor, Triangle};
use tessera_abi::linalg::batch::{self, Failed};
use tessera_abi::linalg::number::Real;
use tessera_abi::linalg::workers::{Alone, Workers};
use tessera_base::DType;

/// The number of the code for a matrix that has no such factors or solution: E0719.
pub const NO_FACTORS: u16 = 719;

/// Elements of f32 or f64 as bytes.
trait Bytes: Real {
    fn read(bytes: &[u8]) -> Vec<Self>;
    fn write(values: &[Self], to: &mut [u8]);
}

macro_rules! bytes {
    ($($t:ident $n:literal),*) => {
        $(impl Bytes for $t {
            fn read(bytes: &[u8]) -> Vec<$t> {
                bytes.as_chunks::<$n>().0.iter().map(|b| $t::from_le_bytes(*b)).collect()
            }
            fn write(values: &[$t], to: &mut [u8]) {
                to.as_chunks_mut::<$n>().0.iter_mut().zip(values).for_each(|(to, x)| *to = x.to_le_bytes());
            }
        })*
    };
}

bytes!(f32 4, f64 8);

/// The dims before the last two, and those.
fn split(shape: &[u64]) -> (&[u64], [usize; 2]) {
    match shape {
        [batch @ .., m, n] => (batch, [*m as usize, *n as usize]),
        _ => (&[], [0, 0]),
    }
}

fn told(shape: &[u64], failed: Failed) -> EvalError {
    EvalError { message: failed.message(split(shape).0), code: NO_FACTORS, refused: None }
}

/// The factors of every matrix, written to `out`, which has their bytes.
///
/// # Errors
/// The first matrix that has none.
pub fn factor_into(workers: &impl Workers, factor: Factor, a: ArrayRef, out: &mut [u8]) -> Result<(), EvalError> {
    fn run<T: Bytes>(workers: &impl Workers, factor: Factor, a: ArrayRef, out: &mut [u8]) -> Result<(), EvalError> {
        let mut found = vec![T::ZERO; out.len() / size_of::<T>()];
        batch::factor(workers, factor, split(a.shape).1, &T::read(a.bytes), &mut found)
            .map_err(|failed| told(a.shape, failed))?;
        T::write(&found, out);
        Ok(())
    }
    match a.dtype {
        DType::F64 => run::<f64>(workers, factor, a, out),
        _ => run::<f32>(workers, factor, a, out),
    }
}

/// The solution of every system, written to `out`, which has the bytes of `b`.
///
/// # Errors
/// The first matrix that is singular.
pub fn solve_into(
    workers: &impl Workers,
    triangle: Triangle,
    [a, b]: [ArrayRef; 2],
    out: &mut [u8],
) -> Result<(), EvalError> {
    fn run<T: Bytes>(
        workers: &impl Workers,
        triangle: Triangle,
        [a, b]: [ArrayRef; 2],
        out: &mut [u8],
    ) -> Result<(), EvalError> {
        let mut found = vec![T::ZERO; out.len() / size_of::<T>()];
        batch::solve(workers, triangle, split(b.shape).1, &T::read(a.bytes), &T::read(b.bytes), &mut found)
            .map_err(|failed| told(a.shape, failed))?;
        T::write(&found, out);
        Ok(())
    }
    match a.dtype {
        DType::F64 => run::<f64>(workers, triangle, [a, b], out),
        _ => run::<f32>(workers, triangle, [a, b], out),
    }
}

/// The meaning of [`crate::prim::Prim::Factor`].
///
/// # Errors
/// The first matrix that has no such factors.
pub fn factor(factor: Factor, a: ArrayRef) -> Result<Vec<u8>, EvalError> {
    let (batch, [m, n]) = split(a.shape);
    let count = batch.iter().product::<u64>().saturating_mul(factor.elems(m as u64, n as u64));
    let mut out = vec![0; count as usize * a.dtype.bytes()];
    factor_into(&Alone, factor, a, &mut out)?;
    Ok(out)
}

/// The meaning of [`crate::prim::Prim::TriangularSolve`].
///
/// # Errors
/// The first matrix that is singular.
pub fn solve(triangle: Triangle, a: ArrayRef, b: ArrayRef) -> Result<Vec<u8>, EvalError> {
    let mut out = vec![0; b.bytes.len()];
    solve_into(&Alone, triangle, [a, b], &mut out)?;
    Ok(out)
}

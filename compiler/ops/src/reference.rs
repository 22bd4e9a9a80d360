//! Reference kernels: what the rows of primitives (`tessera_ir::prim`) name as their meaning.
//!
//! Arrays are row-major little-endian bytes. Compiled code gives the same bits (NaN payloads
//! in f32 and f64 apart), because both follow the orders written down in [`crate::prim`] and
//! the programs of [`crate::map`] and [`crate::convert`].

mod layout;
pub mod rule;
pub mod complex;
pub mod dot;
pub mod elementwise;
pub mod fft;
pub mod index;
pub mod linalg;
pub mod movement;
pub mod random;
pub mod reduce;
pub mod sort;
pub mod block_quant;

pub use dot::{Unit, atom, pair_step};
pub use random::{PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_WEYL, philox, random_bits_program};
pub use reduce::{Summation, combine, identity};

use std::fmt;
use tessera_abi::check::Check;
use tessera_base::DType;

/// An operand.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRef<'a> {
    pub dtype: DType,
    pub shape: &'a [u64],
    /// Row-major elements, as many as the shape says.
    pub bytes: &'a [u8],
}

/// Element type and shape of an operand or a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeRef<'a> {
    pub dtype: DType,
    pub shape: &'a [u64],
}

/// Why a kernel stopped: a position out of range, a matrix without factors, or operands that do not fit the primitive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EvalError {
    /// Lower case, without a full stop.
    pub message: String,
    /// The number of the diagnostic: 703 where a position is out of range.
    pub code: u16,
    /// What [`crate::prim::Prim::Check`] refused.
    pub refused: Option<Refused>,
}

/// The first operands for which an operation of host code has no value: i64 or the bits of an f64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    pub check: Check,
    pub operands: [u64; 2],
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EvalError {}

impl From<String> for EvalError {
    fn from(message: String) -> EvalError {
        EvalError { message, code: 703, refused: None }
    }
}

/// Number of elements; `None` where it does not fit the machine.
pub fn elems(shape: &[u64]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?))
}

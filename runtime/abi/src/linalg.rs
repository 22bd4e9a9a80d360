//! Factorisations of dense matrices: one algorithm each, which the reference and the runtime both run.
//!
//! Matrices are row-major. Every sum has one order, whatever the threads, the vectors and the blocks:
//! what is subtracted from an element in the factors of Cholesky and of elimination and in triangular systems is one chain of fused
//! multiply-adds in ascending position, which is continued in memory from block to block ([`product`]);
//! sums along a column of reflectors have [`number::LANES`] chains, which are combined by halves ([`vectors`]).
//! Only fused multiply-adds, divisions and square roots occur, which round alike everywhere.

pub mod number;
pub mod workers;
pub mod matrix;
pub mod vectors;
pub mod product;
pub mod triangular;
pub mod cholesky;
pub mod lu;
pub mod rotations;
pub mod qr;
pub mod eigen;
pub mod svd;
pub mod schur;
pub mod batch;

pub use batch::{Factor, Failed};
pub use triangular::Triangle;

//! The interpreter of Core: what a program means, form by form, as slow as that is.
//!
//! Control flow, scalars and containers are what stands here; functions of the host library are those of the runtime; a
//! tensor operation is traced by itself and goes through the reference kernels. There is no host code, no fusion, no
//! kernel: what a compiled program prints is held against what this prints.
//!
//! [`value`]: values. [`machine`]: the state of a run, and calls. [`runtime`]: functions of the runtime. [`region`]: tensor
//! operations. [`expr`], [`scalar`], [`builtin`], [`lvalue`], [`stmt`]: the forms.

mod value;
mod machine;
mod runtime;
mod region;
mod expr;
mod scalar;
mod builtin;
mod lvalue;
mod stmt;

pub use machine::{End, run};

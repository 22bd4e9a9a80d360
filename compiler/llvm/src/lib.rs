//! Tile IR to machine code of the host CPU, and to code for GPUs ([`nvptx`], [`spirv`], [`amdgpu`]).
//!
//! [`compile`] makes object code through LLVM, which is loaded on first use; [`load`] maps
//! object code into the process without LLVM, so that cached kernels start at once.

mod error;
mod lazy;
mod code_memory;
mod elf;
mod dialect;
mod group;
mod instr;
mod program;
mod portable;
mod random_words;
mod matrix_registers;
mod emit;
mod unroll;
mod extremes;
mod masked;
mod memory;
mod mma;
mod threads;
mod block;
mod bf16_pairs;
mod int_pairs;
mod bf16_units;
mod leaves;
mod target;
mod object;
mod launch;
pub mod nvptx;
pub mod spirv;
pub mod amdgpu;

pub use elf::load;
pub use error::LlvmError;
pub use launch::{Header, parameter_bytes};
pub use object::{Emission, again, compile, text};
pub use target::HostTarget;

//! Relocations of the System V ABI's x86-64 supplement that position-independent kernels have.

use super::damaged;
use crate::LlvmError;

pub const MACHINE: u16 = 62;
const R_X86_64_64: u32 = 1;
const R_X86_64_PC32: u32 = 2;
const R_X86_64_PLT32: u32 = 4;
const R_X86_64_32S: u32 = 11;

/// Puts `target`, a place in the image plus the addend, into the word at place `at`.
pub fn relocate(kind: u32, word: &mut [u8; 4], at: i64, target: i64) -> Result<(), LlvmError> {
    match kind {
        R_X86_64_PC32 | R_X86_64_PLT32 => {
            let value = i32::try_from(target.wrapping_sub(at)).map_err(|_| damaged("a relocation does not fit"))?;
            *word = value.to_le_bytes();
            Ok(())
        }
        R_X86_64_64 | R_X86_64_32S => Err(damaged(&format!("it is not position-independent (relocation {kind})"))),
        kind => Err(damaged(&format!("relocation {kind} is not known"))),
    }
}

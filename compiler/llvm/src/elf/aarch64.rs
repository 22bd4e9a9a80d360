//! Relocations of the ELF for the Arm 64-bit Architecture (2023Q3) that position-independent kernels have. The image begins
//! at a multiple of 4 KiB, so that places in it have the pages and offsets of addresses.

use super::damaged;
use crate::LlvmError;

pub const MACHINE: u16 = 183;
const R_AARCH64_ABS64: u32 = 257;
const R_AARCH64_PREL32: u32 = 261;
const R_AARCH64_ADR_PREL_LO21: u32 = 274;
const R_AARCH64_ADR_PREL_PG_HI21: u32 = 275;
const R_AARCH64_ADD_ABS_LO12_NC: u32 = 277;
const R_AARCH64_LDST8_ABS_LO12_NC: u32 = 278;
const R_AARCH64_JUMP26: u32 = 282;
const R_AARCH64_CALL26: u32 = 283;
const R_AARCH64_LDST16_ABS_LO12_NC: u32 = 284;
const R_AARCH64_LDST32_ABS_LO12_NC: u32 = 285;
const R_AARCH64_LDST64_ABS_LO12_NC: u32 = 286;
const R_AARCH64_LDST128_ABS_LO12_NC: u32 = 299;

const PAGE: i64 = 4096;

/// Puts `target`, a place in the image plus the addend, into the word or instruction at place `at`.
pub fn relocate(kind: u32, word: &mut [u8; 4], at: i64, target: i64) -> Result<(), LlvmError> {
    let old = u32::from_le_bytes(*word);
    let distance = target.wrapping_sub(at);
    let within = |value: i64, bits: u32| match (-1i64 << (bits - 1)..1 << (bits - 1)).contains(&value) {
        true => Ok((value as u64 & ((1u64 << bits) - 1)) as u32),
        false => Err(damaged("a relocation does not fit")),
    };
    // The immediate of `adr` and `adrp`: its two low bits stand apart.
    let split = |value: u32| old & 0x9f00_001f | (value & 3) << 29 | (value >> 2) << 5;
    let low = |scale: u32| old & !(0xfff << 10) | ((target & (PAGE - 1)) as u32 >> scale) << 10;
    let new = match kind {
        R_AARCH64_PREL32 => within(distance, 32)?,
        R_AARCH64_ADR_PREL_LO21 => split(within(distance, 21)?),
        R_AARCH64_ADR_PREL_PG_HI21 => split(within(target.div_euclid(PAGE) - at.div_euclid(PAGE), 21)?),
        R_AARCH64_ADD_ABS_LO12_NC | R_AARCH64_LDST8_ABS_LO12_NC => low(0),
        R_AARCH64_LDST16_ABS_LO12_NC => low(1),
        R_AARCH64_LDST32_ABS_LO12_NC => low(2),
        R_AARCH64_LDST64_ABS_LO12_NC => low(3),
        R_AARCH64_LDST128_ABS_LO12_NC => low(4),
        R_AARCH64_JUMP26 | R_AARCH64_CALL26 => old & 0xfc00_0000 | within(distance / 4, 26)?,
        R_AARCH64_ABS64 => return Err(damaged(&format!("it is not position-independent (relocation {kind})"))),
        kind => return Err(damaged(&format!("relocation {kind} is not known"))),
    };
    *word = new.to_le_bytes();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relocated(kind: u32, instruction: u32, at: i64, target: i64) -> Option<u32> {
        let mut word = instruction.to_le_bytes();
        relocate(kind, &mut word, at, target).ok().map(|()| u32::from_le_bytes(word))
    }

    #[test]
    fn instructions_get_their_immediates() {
        // adrp x0, . + 2 pages; add x0, x0, #0x234; ldr q1, [x0, #0x230]; bl . - 8
        assert_eq!(relocated(R_AARCH64_ADR_PREL_PG_HI21, 0x9000_0000, 0x1ffc, 0x3234), Some(0xd000_0000));
        assert_eq!(relocated(R_AARCH64_ADR_PREL_PG_HI21, 0x9000_0000, 0x2000, 0x1fff), Some(0xf0ff_ffe0));
        assert_eq!(relocated(R_AARCH64_ADD_ABS_LO12_NC, 0x9100_0000, 0, 0x3234), Some(0x9108_d000));
        assert_eq!(relocated(R_AARCH64_LDST128_ABS_LO12_NC, 0x3dc0_0001, 0, 0x3230), Some(0x3dc0_8c01));
        assert_eq!(relocated(R_AARCH64_CALL26, 0x9400_0000, 0x40, 0x38), Some(0x97ff_fffe));
        assert_eq!(relocated(R_AARCH64_PREL32, 0, 0x40, 0x38), Some(0xffff_fff8));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(relocated(R_AARCH64_CALL26, 0x9400_0000, 0, 1 << 28), None);
        assert_eq!(relocated(R_AARCH64_ABS64, 0, 0, 8), None);
        assert_eq!(relocated(1, 0, 0, 8), None);
    }
}

//! The registers of the unit for matrices: what each holds of a tile, and how large they are.

use tessera_ir::tile::{Mma, Op};
use tessera_ops::reference::Unit;

/// Pairs of a unit.
pub const PAIRS: i64 = Unit::PAIRS as i64;
/// Rows, and columns of four bytes, of a register for matrices.
pub const SIDE: u32 = 16;
/// Bytes of what says how large each register is (`ldtilecfg`, palette 1).
pub const CONFIGURATION: usize = 64;

/// Registers: four of sums, two by two; two of the left factor, two of the right one.
pub fn sums(i: u32, j: u32) -> u32 {
    2 * i + j
}

pub fn left(i: u32) -> u32 {
    4 + i
}

pub fn right(j: u32) -> u32 {
    6 + j
}

/// What the registers hold of a tile: blocks of rows and of columns, with their sizes.
pub fn blocks(extent: u32) -> Vec<(u32, u32)> {
    (0..extent.div_ceil(SIDE)).map(|i| (i, (extent - i * SIDE).min(SIDE))).collect()
}

/// What says how large the registers are.
pub type Sizes = [u8; CONFIGURATION];

/// The sizes for the largest tile that a kernel computes by the unit.
pub fn sizes(ops: &[Op]) -> Option<Sizes> {
    fn largest(ops: &[Op]) -> Option<&Mma> {
        let tiles = ops.iter().filter_map(|op| match op {
            Op::Mma(m) => Some(m).filter(|m| m.matrix_unit),
            Op::For(f) => largest(&f.body),
            _ => None,
        });
        tiles.max_by_key(|m| m.rows * m.cols)
    }
    largest(ops).map(|m| configuration(m, PAIRS as u32))
}

/// The sizes of the registers for so many pairs at once. Source: Intel SDM, LDTILECFG.
pub fn configuration(m: &Mma, pairs: u32) -> Sizes {
    let mut out = [0; CONFIGURATION];
    out[0] = 1;
    let mut set = |register: u32, rows: u32, bytes: u32| {
        out[16 + 2 * register as usize..][..2].copy_from_slice(&(bytes as u16).to_le_bytes());
        out[48 + register as usize] = rows as u8;
    };
    for (i, rows) in blocks(m.rows) {
        set(left(i), rows, 4 * pairs);
        for (j, columns) in blocks(m.cols) {
            set(sums(i, j), rows, 4 * columns);
        }
    }
    for (j, columns) in blocks(m.cols) {
        set(right(j), pairs, 4 * columns);
    }
    out
}

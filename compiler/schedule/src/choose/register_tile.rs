//! Sizes of register tiles and of blocks, of vectors and of the unit for matrices.

use tessera_ir::schedule::Directive;

/// Vectors per register-tile row, at most; more spills.
const VECTORS_MAX: u32 = 8;
/// Rows of a register tile that is one vector wide, at most.
const ROWS_MAX: u32 = 28;

/// Rows that the unit for matrices takes at once, and as many as vectors are as good for.
pub const UNIT_ROWS: u64 = 32;
pub const UNIT_ROWS_FEW: u64 = 4;
/// Row panels and columns of a block: with 256 steps of both factors they stay in the second-level cache, as does the block.
pub const UNIT_PANELS: u64 = 4;
pub const UNIT_COLUMNS: u64 = 512;
/// Its multiply-adds in a nanosecond, with what memory takes.
pub const UNIT_STEPS_A_NS: f64 = 400.0;
/// f32 numbers in a row of its registers.
pub const UNIT_LANES: u32 = 16;

/// How the steps of a register tile are written. More in a row spare little; nested steps are short runs, and several of them
/// go together.
pub const STEPS: Directive = Directive::Steps { unroll: 4, distance: 32 };
pub const STEPS_NESTED: Directive = Directive::Steps { unroll: 12, distance: 32 };

/// Rows and vectors of the register tile: `rows·vectors` accumulators, `vectors` for the right
/// operand and one broadcast fit the registers.
pub fn registers(m: u64, n: u64, lanes: u32, registers: u32) -> (u32, u32) {
    let best = tiles(m, n, lanes, registers).into_iter().next();
    best.map_or((1, 1), |tile| (tile.rows, tile.vectors))
}

/// A register tile, and what tall products choose it by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    pub rows: u32,
    pub vectors: u32,
    /// Its multiply-adds in the time of its loads, in thousandths of what the processor can do.
    pub multiplied: u32,
}

/// The tiles that were compared, the best first; one where a single one holds all rows.
pub fn tiles(m: u64, n: u64, lanes: u32, registers: u32) -> Vec<Tile> {
    let wide = (n.div_ceil(lanes as u64).max(1)).min(VECTORS_MAX as u64) as u32;
    let fits = |vectors: u32| ((registers - 1).saturating_sub(vectors) / vectors).clamp(1, ROWS_MAX);
    let tile = |vectors: u32| {
        let rows = m.div_ceil(m.div_ceil(fits(vectors) as u64).max(1)).max(1) as u32;
        Tile { rows, vectors, multiplied: multiplied(rows, vectors) }
    };
    // As many vectors as still hold all rows; for tall products the fullest tile of two or three.
    if let Some(vectors) = (2..=wide).rev().find(|v| fits(*v) as u64 >= m) {
        return vec![tile(vectors)];
    }
    let mut tall: Vec<Tile> = (1..=wide.min(3)).rev().map(tile).collect();
    tall.sort_by_key(|t| std::cmp::Reverse((t.multiplied, t.rows * t.vectors, t.vectors == 2)));
    tall
}

/// Of a step of `rows` by `vectors`: multiply-adds in the time that its loads leave them, in thousandths. A processor loads two
/// vectors or broadcasts while it does two multiply-adds: each vector and each row is one.
fn multiplied(rows: u32, vectors: u32) -> u32 {
    let (steps, loads) = (rows * vectors, rows + vectors);
    1000 * steps / steps.max(loads).max(1)
}

/// A block of about `most` that divides `extent` evenly in multiples of `unit`.
pub fn balanced(extent: u64, most: u64, unit: u64) -> u64 {
    let blocks = extent.div_ceil(most.max(1)).max(1);
    extent.div_ceil(blocks).next_multiple_of(unit.max(1)).max(1)
}

//! How the rows of a derivative that is computed by blocks are taken: each turn of a loop has a block of every part of the rows.
//! Parts follow each other, so devices that have some of them exchange nothing before the sums of all parts are added.

use super::expand;
use super::{Build, Id};
use crate::map::MapOp;
use crate::prim::Scalar;
use tessera_base::DType;

/// Parts of the rows.
pub const PARTS: u64 = 4;
/// Rows of a turn, of all parts together: enough for products at full speed.
pub const TURN: u64 = 256;
/// Rows and columns from which on blocks are worth it.
pub const ROWS_MIN: u64 = 8 * TURN;
pub const COLUMNS_MIN: u64 = 4 * TURN;

/// The number of the first row of each block, i64 `[turns, parts]`, of rows that begin with row `first` of all.
pub fn starts(b: &mut dyn Build, turns: u64, first: u64) -> Id {
    let shape = [turns, PARTS];
    let block = TURN / PARTS;
    let times = |b: &mut dyn Build, axis: usize, by: u64| {
        let number = expand::iota(b, &shape, axis);
        let size = expand::full(b, &shape, DType::I64, Scalar::I(by as i64));
        expand::map(b, MapOp::mul, &[number, size])
    };
    let (turn, part) = (times(b, 0, block), times(b, 1, turns * block));
    let first = expand::full(b, &shape, DType::I64, Scalar::I(first as i64));
    let ahead = expand::map(b, MapOp::add, &[turn, part]);
    expand::map(b, MapOp::add, &[first, ahead])
}

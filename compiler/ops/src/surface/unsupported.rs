//! Operators that parse and are refused with a reason.

use super::row::{Row, req};
use super::*;

const X: Param = req("x", ParamKind::Tensor);

const SIZES: &str = "the size of the result depends on data; `op.where(mask, x, 0)` keeps the shape";
pub const NONZERO: Row =
    Row::refused("nonzero", &[X], "Positions of the elements that are not 0.", SIZES).known_as(&["argwhere"]);
pub const UNIQUE: Row = Row::refused("unique", &[X], "The different elements in order.", SIZES);
pub const ALL_REDUCE: Row = Row::refused(
    "all_reduce",
    &[X],
    "Sum over the devices of a mesh axis.",
    "collectives are in the module `dist`: `dist.collective.all_reduce(x, axis=\"tp\")`",
);

//! Operators that parse and are refused with a reason.

use super::row::{Row, req};
use super::*;

const X: Param = req("x", ParamKind::Tensor);

pub const ALL_REDUCE: Row = Row::refused(
    "all_reduce",
    &[X],
    "Sum over the devices of a mesh axis.",
    "collectives are in the module `dist`: `dist.collective.all_reduce(x, axis=\"tp\")`",
);

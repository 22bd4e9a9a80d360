//! Operators that parse and are refused with a reason.

use super::row::{Row, opt, req};
use super::*;

const X: Param = req("x", ParamKind::Tensor);

const MOE: &str = "routing tokens to experts needs results whose sizes depend on data; `op.topk`, `op.take` and `op.scatter_add` route by hand";
const QUANT: &str = "scaled fp8 blocks have no representation yet; `x.to(fp8_e4m3)` converts with saturation";

pub const MOE_DISPATCH: Row = Row::refused(
    "moe_dispatch",
    &[X, req("gates", ParamKind::Tensor), opt("k", ParamKind::Int, Default::Int(2))],
    "Sends each token to its experts.",
    MOE,
);
pub const MOE_COMBINE: Row = Row::refused(
    "moe_combine",
    &[X, req("gates", ParamKind::Tensor)],
    "Adds up what the experts give for each token.",
    MOE,
);
pub const QUANTIZE: Row =
    Row::refused("quantize", &[X, req("dtype", ParamKind::DType)], "Blocks of narrow floats with scales.", QUANT);
pub const DEQUANTIZE: Row =
    Row::refused("dequantize", &[X, req("scale", ParamKind::Tensor)], "The values of quantised blocks.", QUANT);

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

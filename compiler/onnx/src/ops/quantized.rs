//! Numbers as small ints with a scale.

use super::Row;
use crate::node::{No, Node};
use crate::value::{Tensor, Value};
use tessera_base::DType;

pub const ROWS: &[Row] =
    &[("DequantizeLinear", dequantize), ("QuantizeLinear", quantize), ("DynamicQuantizeLinear", dynamic)];

/// A scale or zero point in line with the axis that it belongs to.
fn along(t: &Tensor, x: &Tensor, axis: usize) -> String {
    let after = x.rank.saturating_sub(axis + 1);
    match t.rank {
        1 if after > 0 => format!("{}.reshape(-1{})", t.text, ", 1".repeat(after)),
        _ => t.text.clone(),
    }
}

fn axis_of(n: &Node, x: &Tensor, scale: &Tensor) -> Result<usize, No> {
    if n.int("block_size", 0) != 0 || scale.rank > 1 {
        return Err("scales of blocks are not supported".into());
    }
    if scale.rank == 0 { Ok(0) } else { x.axis(n.int("axis", 1)) }
}

fn dequantize(n: &mut Node) -> Result<(), No> {
    let (x, scale) = (n.tensor(0)?, n.tensor(1)?);
    let axis = axis_of(n, &x, &scale)?;
    let wide = match n.optional(2)? {
        Some(zero) => format!("({}.to(i32) - {}.to(i32))", x.text, along(&zero, &x, axis)),
        None => x.text.clone(),
    };
    n.give(&format!("{wide}.to({}) * {}", scale.dtype, along(&scale, &x, axis)), x.rank, scale.dtype)
}

fn range_of(dtype: DType) -> Result<(i64, i64), No> {
    match dtype {
        DType::U8 => Ok((0, 255)),
        DType::I8 => Ok((-128, 127)),
        DType::I16 => Ok((-32768, 32767)),
        d => Err(format!("numbers of {d} are not supported")),
    }
}

fn quantize(n: &mut Node) -> Result<(), No> {
    let (x, scale) = (n.tensor(0)?, n.tensor(1)?);
    let axis = axis_of(n, &x, &scale)?;
    let zero = n.optional(2)?;
    let dtype = zero.as_ref().map_or(DType::U8, |z| z.dtype);
    let (low, high) = range_of(dtype)?;
    let shift = zero.map_or(String::new(), |z| format!(" + {}.to({})", along(&z, &x, axis), x.dtype));
    let text =
        format!("op.clip(op.round({} / {}){shift}, {low}.0, {high}.0).to({dtype})", x.text, along(&scale, &x, axis));
    n.give(&text, x.rank, dtype)
}

/// Bytes with the scale that suits the values: three results.
fn dynamic(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    let t = &x.text;
    let low = n.bound(&format!("op.minimum(op.min({t}), 0.0)"), 0, x.dtype)?.text;
    let high = n.bound(&format!("op.maximum(op.max({t}), 0.0)"), 0, x.dtype)?.text;
    let scale = n.bound(&format!("({high} - {low}) / 255.0"), 0, x.dtype)?;
    let zero = n.bound(&format!("op.clip(op.round(-{low} / {}), 0.0, 255.0)", scale.text), 0, x.dtype)?.text;
    let y =
        n.bound(&format!("op.clip(op.round({t} / {}) + {zero}, 0.0, 255.0).to(u8)", scale.text), x.rank, DType::U8)?;
    let zero = n.bound(&format!("{zero}.to(u8)"), 0, DType::U8)?;
    n.result(0, Value::Tensor(y));
    n.result(1, Value::Tensor(scale));
    n.result(2, Value::Tensor(zero));
    Ok(())
}

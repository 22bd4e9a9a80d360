//! Numbers as small ints with a scale.

use super::elementwise::narrowed;
use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Tensor, Value};
use tessera_base::DType;
use tessera_runtime::io::onnx::{self, Held};

pub const ROWS: &[Row] = &[
    row("DequantizeLinear", dequantize).honours(&["axis", "block_size", "output_dtype"]),
    row("QuantizeLinear", quantize).honours(&["axis", "block_size", "output_dtype", "precision", "saturate"]),
    row("DynamicQuantizeLinear", dynamic),
    row("QLinearMatMul", |n| {
        let (a, b) = (shifted(n, 0, 2, Rows::First)?, shifted(n, 3, 5, Rows::Last)?);
        let rank = super::product::product_rank(a.rank, b.rank)?;
        let product = n.bound(&format!("({} @ {}).to(i32)", a.text, b.text), rank, DType::I32)?;
        let scales = format!("({} * {})", placed_scale(n, 1, &a, Rows::First)?, placed_scale(n, 4, &b, Rows::Last)?);
        requantized(n, &product, &scales, 6, 7)
    }),
    row("QLinearConv", |n| {
        let (x, w) = (shifted(n, 0, 2, Rows::First)?, shifted(n, 3, 5, Rows::Channels)?);
        let mut sum = super::windows::convolved(n, &x, &w)?;
        if let Some(bias) = n.optional(8)? {
            let ones = ", 1".repeat(x.rank - 2);
            sum.text = format!("({} + {}.reshape(-1{ones}))", sum.text, bias.text);
        }
        let w_scale = n.tensor(4)?;
        let ones = ", 1".repeat(x.rank - 2);
        let w_scale = if w_scale.rank == 0 { w_scale.text } else { format!("{}.reshape(-1{ones})", w_scale.text) };
        let scales = format!("({} * {w_scale})", placed_scale(n, 1, &x, Rows::First)?);
        requantized(n, &sum, &scales, 6, 7)
    })
    .honours(super::windows::CONVOLVED),
    row("ConvInteger", |n| {
        let (x, w) = (shifted(n, 0, 2, Rows::First)?, shifted(n, 1, 3, Rows::Channels)?);
        let sum = super::windows::convolved(n, &x, &w)?;
        n.give(&sum.text, sum.rank, DType::I32)
    })
    .honours(super::windows::CONVOLVED),
];

/// Where zero points or scales belong that are more than one.
#[derive(Clone, Copy)]
pub enum Rows {
    /// One for each row of a matrix.
    First,
    /// One for each column.
    Last,
    /// One for each of the channels that weights of a convolution give.
    Channels,
}

/// In line with a tensor of this rank.
fn in_line(t: &Tensor, rank: usize, rows: Rows) -> String {
    match rows {
        _ if t.rank == 0 || t.known == [1] => t.text.clone(),
        Rows::First if t.rank == 1 && rank > 1 => format!("op.expand_dims({}, -1)", t.text),
        Rows::Channels if t.rank == 1 => format!("{}.reshape(-1{})", t.text, ", 1".repeat(rank - 1)),
        _ => t.text.clone(),
    }
}

/// An argument of narrow ints as wide ones, less its zero point.
pub fn shifted(n: &mut Node, i: usize, zero: usize, rows: Rows) -> Result<Tensor, No> {
    let x = n.tensor(i)?;
    let text = match n.optional(zero)? {
        Some(z) => format!("({}.to(i32) - {}.to(i32))", x.text, in_line(&z, x.rank, rows)),
        None => format!("{}.to(i32)", x.text),
    };
    let y = n.bound(&text, x.rank, DType::I32)?;
    Ok(Tensor { known: x.known, ..y })
}

/// A scale in line with what it belongs to.
pub fn placed_scale(n: &mut Node, i: usize, x: &Tensor, rows: Rows) -> Result<String, No> {
    let scale = n.tensor(i)?;
    Ok(in_line(&scale, x.rank, rows))
}

/// Ints times their scale as narrow ints, by the scale and the zero point that are these arguments.
pub fn requantized(n: &mut Node, x: &Tensor, scale: &str, to: usize, zero: usize) -> Result<(), No> {
    let to = n.tensor(to)?;
    let scaled = format!("{}.to(f32) * ({scale} / {}).to(f32)", x.text, to.text);
    narrow(n, &scaled, x.rank, zero, false)
}

/// Floats as narrow ints by the zero point that is this argument; `late` rounds behind it, which ties can tell.
pub fn narrow(n: &mut Node, scaled: &str, rank: usize, zero: usize, late: bool) -> Result<(), No> {
    let zero = n.optional(zero)?;
    let dtype = zero.as_ref().map_or(DType::U8, |z| z.dtype);
    let (low, high) = range_of(dtype, zero.as_ref().map_or(Held::Own, |z| z.held))?;
    let shift = zero.map_or(String::new(), |z| format!(" + {}.to(f32)", z.text));
    let whole = if late { format!("op.round({scaled}{shift})") } else { format!("op.round({scaled}){shift}") };
    n.give(&format!("op.clip({whole}, {low}.0, {high}.0).to({dtype})"), rank, dtype)
}

/// Where the scales of a node belong.
enum Along {
    /// One for all, or in line already.
    All,
    /// One for each place of a dim, which so many follow.
    Axis(usize),
    /// One for so many neighbours of a dim.
    Blocks { axis: usize, size: i64 },
}

fn along(n: &Node, x: &Tensor, scale: &Tensor) -> Result<Along, No> {
    let size = n.int("block_size", 0);
    let axis = || x.axis(n.int("axis", 1));
    match size {
        0 if scale.rank == 0 || scale.known == [1] => Ok(Along::All),
        0 if scale.rank == 1 && x.rank == 1 => Ok(Along::All),
        0 if scale.rank == 1 => Ok(Along::Axis(x.rank - axis()? - 1)),
        1.. if scale.rank == x.rank => Ok(Along::Blocks { axis: axis()?, size }),
        _ => n.refuses("block_size", &format!("its scales have {} dims, and what they scale {}", scale.rank, x.rank)),
    }
}

/// A scale or zero point in line with what it belongs to.
fn placed(text: &str, x: &Tensor, along: &Along) -> String {
    match along {
        Along::All | Along::Axis(0) => text.to_owned(),
        Along::Axis(after) => format!("{text}.reshape(-1{})", ", 1".repeat(*after)),
        Along::Blocks { axis, size } => {
            // The last block may be shorter.
            let before = ":, ".repeat(*axis);
            format!("op.repeat({text}, {size}, axis={axis})[{before}:{}]", x.dim(*axis).text())
        }
    }
}

/// The dtype that an attribute names; `None` where it names none.
fn asked(n: &Node, name: &str) -> Result<Option<DType>, No> {
    match n.int(name, 0) {
        0 => Ok(None),
        kind => onnx::dtype(kind).map(Some).map_err(|why| format!("its attribute `{name}`: {why}")),
    }
}

/// The dtype that products with a scale are computed in.
fn wide(scale: DType) -> DType {
    if scale == DType::F64 { scale } else { DType::F32 }
}

pub fn dequantize(n: &mut Node) -> Result<(), No> {
    let (x, scale) = (n.tensor(0)?, n.tensor(1)?);
    let along = along(n, &x, &scale)?;
    let to = asked(n, "output_dtype")?.unwrap_or(scale.dtype);
    let inside = wide(scale.dtype);
    let own = match n.optional(2)? {
        Some(zero) if x.dtype.is_int() => {
            let zero = placed(&format!("{}.to(i32)", zero.text), &x, &along);
            format!("({}.to(i32) - {zero})", x.text)
        }
        // The zero of narrow floats is 0.
        _ => x.text.clone(),
    };
    let factor = placed(&format!("{}.to({inside})", scale.text), &x, &along);
    let text = format!("{own}.to({inside}) * {factor}");
    n.give(&if to == inside { text } else { format!("({text}).to({to})") }, x.rank, to)
}

pub fn range_of(dtype: DType, held: Held) -> Result<(i64, i64), No> {
    if let Some(range) = held.range().filter(|_| held != Held::U32) {
        return Ok(range);
    }
    match dtype {
        DType::U8 => Ok((0, 255)),
        DType::I8 => Ok((-128, 127)),
        DType::I16 => Ok((-32768, 32767)),
        d => Err(format!("numbers of {d} are not supported")),
    }
}

pub fn quantize(n: &mut Node) -> Result<(), No> {
    let (x, scale) = (n.tensor(0)?, n.tensor(1)?);
    let along = along(n, &x, &scale)?;
    let zero = n.optional(2)?;
    let to = match n.int("output_dtype", 0) {
        0 => None,
        kind => Some(onnx::storage(kind).map_err(|why| format!("its attribute `output_dtype`: {why}"))?),
    };
    if let (Some(to), Some(zero)) = (to, &zero)
        && to != (zero.dtype, zero.held)
    {
        return n.refuses("output_dtype", &format!("its zero point is {}", zero.dtype));
    }
    let (to, held) = zero.as_ref().map(|z| (z.dtype, z.held)).or(to).unwrap_or((DType::U8, Held::Own));
    // What is divided is rounded to the dtype of the scale, which for ints is that of the result.
    let divided = asked(n, "precision")?.unwrap_or(if scale.dtype.is_float() { scale.dtype } else { DType::F32 });
    let divisor = placed(&format!("{}.to({divided})", scale.text), &x, &along);
    let share = n.bound(&format!("{}.to({divided}) / {divisor}", x.text), x.rank, divided)?.text;
    if to.is_float() {
        let text = narrowed(n, &share, divided, to)?;
        return n.give(&text, x.rank, to);
    }
    let (low, high) = range_of(to, held)?;
    let inside = wide(divided);
    let shift = zero.map_or(String::new(), |z| {
        let zero = placed(&format!("{}.to({inside})", z.text), &x, &along);
        format!(" + {zero}")
    });
    let text = format!("op.clip(op.round({share}).to({inside}){shift}, {low}.0, {high}.0).to({to})");
    let y = n.bound(&text, x.rank, to)?;
    n.result(0, Value::Tensor(Tensor { held, ..y }));
    Ok(())
}

/// Bytes with the scale that suits the values: three results.
fn dynamic(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    for (i, t) in bytes_of(n, &x)?.into_iter().enumerate() {
        n.result(i, Value::Tensor(t));
    }
    Ok(())
}

/// Floats as bytes, their scale and their zero point.
pub fn bytes_of(n: &mut Node, x: &Tensor) -> Result<[Tensor; 3], No> {
    let t = &x.text;
    let low = n.bound(&format!("op.minimum(op.min({t}), 0.0)"), 0, x.dtype)?.text;
    let high = n.bound(&format!("op.maximum(op.max({t}), 0.0)"), 0, x.dtype)?.text;
    // Where all is 0 any scale will do.
    let scale = n.bound(&format!("op.where({high} == {low}, 1.0, ({high} - {low}) / 255.0)"), 0, x.dtype)?;
    let zero = n.bound(&format!("op.clip(op.round(-{low} / {}), 0.0, 255.0)", scale.text), 0, x.dtype)?.text;
    let y =
        n.bound(&format!("op.clip(op.round({t} / {}) + {zero}, 0.0, 255.0).to(u8)", scale.text), x.rank, DType::U8)?;
    let zero = n.bound(&format!("{zero}.to(u8)"), 0, DType::U8)?;
    Ok([y, scale, zero])
}

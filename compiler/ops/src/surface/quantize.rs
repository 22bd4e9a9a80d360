//! `quantize` and `fake_quantize`: numbers of a few bits with scales that blocks of them share.

use super::expand;
use super::row::{Call, Lowered, Row, req};
use super::rule::{self, Inferred, require};
use super::*;
use crate::map::MapOp;
use crate::prim::Reduction;
use tessera_base::Blocks;

const PARAMS: &[Param] = &[
    req("x", ParamKind::Tensor),
    req("format", ParamKind::Str),
    Param { name: "block", kind: ParamKind::Ints, default: Default::None, keyword_only: true },
];

pub const QUANTIZE: Row = Row::new("quantize", PARAMS, infer, lower).known_as(&["quant"]).doc(
    "The numbers of a tensor in a few bits each, with scales that blocks of them share; `op.dequantize` turns them back.\n\n\
     `format=\"fp8_e4m3\"` or `\"fp8_e5m2\"` (or the dtype) gives `(values, scales)`: x is about `values * scales`. One scale is \
     for the whole tensor, or with `block=` for each block of the last dims: `block=(1, 128)`, `block=(128, 128)`, `block=128`; the \
     last blocks of a dim may be smaller. A scale is the least power of two with which the largest element of the block fits, so that \
     scaling does not round: an element is off by at most 1/16 of itself (1/8 in fp8_e5m2), and by at most 2^-10 of \
     the scale (2^-17) where it is much smaller than the largest.\n\n\
     `\"q8_0\"`, `\"q4_0\"`, `\"q4_1\"`, `\"q5_0\"` and `\"q5_1\"` give bytes as GGUF files have them, `u8[…, B, bytes]`: 32 numbers along \
     the last dim share a scale in f16, and each is rounded to the nearest of 255, 16 or 32 steps.\n\n\
     A block with a number that is not finite is NaN as a whole. The results count as constants where derivatives are \
     taken: `op.fake_quantize` is for training.\n\n\
     E0202: 32 does not divide the last size. E0204: no such format.\n\n\
     ```tessera\nvalues, scales = op.quantize(w, fp8_e4m3, block=(128, 128))\n```",
);

pub const FAKE_QUANTIZE: Row = Row::new("fake_quantize", PARAMS, infer_fake, lower_fake).doc(
    "The numbers of a tensor rounded to those that `op.quantize` keeps: `dequantize(quantize(x))`, in the dtype of `x`.\n\n\
     The derivative goes straight through, as if nothing were rounded. So models are trained that will be quantised \
     (Jacob et al., 2018).\n\n```tessera\ny = x @ op.fake_quantize(w, \"q4_0\")\n```",
);

/// What `format` names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Blocks(Blocks),
    Eight(DType),
}

impl Format {
    fn of(args: &[SymArg]) -> Result<Format, OpError> {
        let eights = [DType::F8E4M3, DType::F8E5M2];
        let read = Blocks::ALL.into_iter().filter(|b| !b.writes()).map(Blocks::name);
        let writes = Blocks::ALL.into_iter().filter(|b| b.writes()).map(Blocks::name);
        let words: Vec<&str> = eights.iter().map(|d| d.name()).chain(writes).collect();
        let word = rule::text(args, 1)?;
        if read.into_iter().any(|r| r == word) {
            return Err(OpError::new(
                Code::E0690,
                format!("numbers are not put into blocks of \"{word}\" yet, only read"),
            )
            .arg(1, "here")
            .help("\"q4_0\", \"q5_0\" and \"q8_0\" are written too"));
        }
        if let Some(&d) = eights.iter().find(|d| DType::parse(word) == Some(**d)) {
            return Ok(Format::Eight(d));
        }
        let word = rule::choice(args, 1, &words)?;
        Ok(Format::Blocks(Blocks::parse(word).unwrap_or(Blocks::Q8_0)))
    }
}

/// The sizes of the blocks of the last dims that share a scale; `None`: the whole tensor does.
pub fn block_of(args: &[SymArg], i: usize, x: &TensorType) -> Result<Option<Vec<u64>>, OpError> {
    if rule::absent(args, i) {
        return Ok(None);
    }
    let sizes = rule::ints_const(args, i, "the size of a block")?;
    if sizes.is_empty() || sizes.len() > x.rank() {
        let text = format!("a block of {} sizes does not fit a tensor of rank {}", sizes.len(), x.rank());
        return Err(OpError::new(Code::E0207, text).arg(0, x.to_string()).arg(i, "here"));
    }
    let known = sizes.iter().map(|&n| u64::try_from(n).ok().filter(|n| *n > 0)).collect::<Option<Vec<u64>>>();
    known.map(Some).ok_or_else(|| OpError::new(Code::E0711, "a block has 1 element or more in each dim").arg(i, "here"))
}

/// The shape of the scales.
pub fn scales_shape(shape: &[Size], block: Option<&[u64]>) -> Vec<Size> {
    let Some(block) = block else { return vec![] };
    let lead = shape.len() - block.len();
    let count = |(s, &n): (&Size, &u64)| s.ceil_div(n as i64);
    shape[..lead].iter().cloned().chain(shape[lead..].iter().zip(block).map(count)).collect()
}

/// The operand, its format and the block of its scales.
fn checked(args: &[SymArg]) -> Result<(&TensorType, Format, Option<Vec<u64>>), OpError> {
    let x = rule::tensor(args, 0)?;
    if x.dtype.is_some_and(|d| !d.is_float()) {
        return Err(OpError::new(Code::E0205, "only floats are quantised").arg(0, x.to_string()).help("`{x}.to(f32)`"));
    }
    let (format, block) = (Format::of(args)?, block_of(args, 2, x)?);
    if let Format::Blocks(f) = format {
        rule::at_least_rank(x, 1, 0, "quantize")?;
        if block.is_some() {
            let text = format!("a block of \"{}\" always has 32 numbers of the last dim", f.name());
            return Err(OpError::new(Code::E0105, text).arg(2, "not taken"));
        }
    }
    Ok((x, format, block))
}

/// The blocks along the last dim.
fn count(cx: &mut InferCx, x: &TensorType, format: Blocks) -> Result<Size, OpError> {
    let (last, of) = (&x.shape[x.rank() - 1], Size::constant(format.elems() as i64));
    if let Some(blocks) = last.normal(cx.facts).exact_div(&of) {
        return Ok(blocks);
    }
    let blocks = last.floor_div(&of).unwrap_or_default();
    let text = || format!("a block of \"{}\" has {of} numbers, and {of} does not divide {last}", format.name());
    require(cx, last, &blocks.mul(&of), Code::E0202, text, |e| e.arg(0, x.to_string()))?;
    Ok(blocks)
}

fn infer(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (x, format, block) = checked(args)?;
    match format {
        Format::Eight(dtype) => Ok(OpTypes::Many(vec![
            rule::typed(x.shape.clone(), Some(dtype)),
            rule::typed(scales_shape(&x.shape, block.as_deref()), Some(DType::F32)),
        ])),
        Format::Blocks(f) => {
            let mut shape = x.shape[..x.rank() - 1].to_vec();
            shape.push(count(cx, x, f)?);
            shape.push(Size::constant(f.bytes() as i64));
            rule::one(shape, Some(DType::U8))
        }
    }
}

fn infer_fake(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (x, format, _) = checked(args)?;
    if let Format::Blocks(f) = format {
        count(cx, x, f)?;
    }
    rule::one(x.shape.clone(), x.dtype)
}

fn lower(call: &mut Call) -> Lowered {
    let (_, format, block) = checked(&call.sym)?;
    let x = call.id(0)?;
    let b = &mut *call.b;
    let x = expand::cast(b, x, DType::F32);
    let ids = match format {
        Format::Blocks(f) => vec![packed(b, x, f)],
        Format::Eight(dtype) => {
            let (values, scales, _) = eighths(b, x, dtype, block.as_deref());
            vec![values, scales]
        }
    };
    ids.iter().for_each(|&id| b.hold(id));
    Ok(ids)
}

fn lower_fake(call: &mut Call) -> Lowered {
    let (_, format, block) = checked(&call.sym)?;
    let x = call.id(0)?;
    let b = &mut *call.b;
    let dtype = b.dtype(x);
    let wide = expand::cast(b, x, DType::F32);
    let y = match format {
        Format::Eight(d) => rounded(b, wide, d, block.as_deref()),
        Format::Blocks(f) => {
            let shape = b.shape(x);
            let blocks = packed(b, wide, f);
            b.push(Prim::Dequantize { format: f }, &[blocks], shape, DType::F32)
        }
    };
    let y = expand::cast(b, y, dtype);
    b.derive(Derivative { inputs: vec![x], output: y, saved: vec![], pull: Arc::new(|_, p| vec![Some(p.cotangent)]) });
    Ok(vec![y])
}

fn packed(b: &mut dyn Build, x: Id, format: Blocks) -> Id {
    let mut shape = b.shape(x);
    if let Some(last) = shape.last_mut() {
        *last /= format.elems() as u64;
    }
    shape.push(format.bytes() as u64);
    b.push(Prim::Quantize { format }, &[x], shape, DType::U8)
}

/// The largest number of an fp8 type.
fn largest(dtype: DType) -> f64 {
    if dtype == DType::F8E5M2 { 57344.0 } else { 448.0 }
}

/// An f32 tensor as fp8 values, the scales of its blocks, and these at every element.
pub fn eighths(b: &mut dyn Build, x: Id, dtype: DType, block: Option<&[u64]>) -> (Id, Id, Id) {
    let shape = b.shape(x);
    let sizes = expand::unary(b, MapOp::abs, x);
    let top = match shape.contains(&0) {
        true => {
            let none = scales_of(&shape, block);
            expand::full(b, &none, DType::F32, Scalar::F(0.0))
        }
        false => largest_of(b, sizes, block),
    };
    // The least power of two with which the largest fits; not so small that values would leave
    // the normal numbers of bf16 and f32.
    let relative = expand::binary_const(b, MapOp::mul, top, 1.0 / largest(dtype));
    let exponent = expand::unary(b, MapOp::log2, relative);
    let exponent = expand::unary(b, MapOp::ceil, exponent);
    let exponent = expand::binary_const(b, MapOp::maximum, exponent, -100.0);
    let scales = expand::unary(b, MapOp::exp2, exponent);
    let negative = expand::unary(b, MapOp::neg, exponent);
    let inverse = expand::unary(b, MapOp::exp2, negative);
    let inverse = spread(b, inverse, &shape, block);
    let scaled = expand::map(b, MapOp::mul, &[x, inverse]);
    let values = expand::cast(b, scaled, dtype);
    let everywhere = spread(b, scales, &shape, block);
    (values, scales, everywhere)
}

/// An f32 tensor with every element rounded as `eighths` keeps it.
pub fn rounded(b: &mut dyn Build, x: Id, dtype: DType, block: Option<&[u64]>) -> Id {
    let (values, _, scales) = eighths(b, x, dtype, block);
    let wide = expand::cast(b, values, DType::F32);
    expand::map(b, MapOp::mul, &[wide, scales])
}

fn scales_of(shape: &[u64], block: Option<&[u64]>) -> Vec<u64> {
    let Some(block) = block else { return vec![] };
    let lead = shape.len() - block.len();
    shape[..lead].iter().copied().chain(shape[lead..].iter().zip(block).map(|(&s, &n)| s.div_ceil(n))).collect()
}

/// The sizes of blocks by position; one that is larger than its dim is as large as the dim.
fn within(shape: &[u64], block: &[u64]) -> Vec<(usize, u64)> {
    let sizes = &shape[shape.len() - block.len()..];
    block.iter().zip(sizes).map(|(&n, &size)| n.min(size.max(1))).enumerate().collect()
}

/// The largest of each block.
fn largest_of(b: &mut dyn Build, mut x: Id, block: Option<&[u64]>) -> Id {
    let shape = b.shape(x);
    let Some(block) = block else {
        let axes: Vec<usize> = (0..shape.len()).collect();
        return expand::reduce(b, x, Reduction::Max, &axes, false);
    };
    let lead = shape.len() - block.len();
    let mut parts = shape[..lead].to_vec();
    for (i, n) in within(&shape, block) {
        let count = shape[lead + i].div_ceil(n);
        x = expand::fit(b, x, lead + i, count * n);
        parts.extend([count, n]);
    }
    let x = expand::reshape(b, x, &parts);
    let axes: Vec<usize> = (0..block.len()).map(|i| lead + 2 * i + 1).collect();
    expand::reduce(b, x, Reduction::Max, &axes, false)
}

/// The scales at every element of a tensor.
pub fn spread(b: &mut dyn Build, scales: Id, shape: &[u64], block: Option<&[u64]>) -> Id {
    let Some(block) = block else { return expand::broadcast_to(b, scales, shape) };
    let lead = shape.len() - block.len();
    let (mut parts, mut whole) = (shape[..lead].to_vec(), shape[..lead].to_vec());
    for (i, n) in within(shape, block) {
        let count = shape[lead + i].div_ceil(n);
        parts.extend([count, n]);
        whole.push(count * n);
    }
    let dims = (0..lead).chain((0..block.len()).map(|i| lead + 2 * i)).collect();
    let mut x = expand::broadcast_dims(b, scales, &parts, dims);
    x = expand::reshape(b, x, &whole);
    for (axis, &size) in shape.iter().enumerate() {
        x = expand::slice(b, x, axis, 0, size);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::super::SymArg;
    use super::super::testing::{error_text, tensor_arg, type_text};
    use tessera_base::Size;

    fn args(x: &str, format: &str, block: &[i64]) -> Vec<SymArg> {
        let mut out = vec![tensor_arg(x), SymArg::Str(format.into())];
        if !block.is_empty() {
            out.push(SymArg::Ints(block.iter().map(|&n| Size::constant(n)).collect()));
        }
        out
    }

    #[test]
    fn types() {
        assert_eq!(type_text("quantize", &args("N 32*B f32", "q4_0", &[])), "Tensor[N, B, 18, u8]");
        assert_eq!(type_text("quantize", &args("96 bf16", "q8_0", &[])), "Tensor[3, 34, u8]");
        assert_eq!(
            type_text("quantize", &args("M 300 f32", "fp8_e4m3", &[])),
            "[\"Tensor[M, 300, fp8_e4m3]\", \"Tensor[f32]\"]"
        );
        let blocks = type_text("quantize", &args("M 300 f32", "fp8_e5m2", &[1, 128]));
        assert_eq!(blocks, "[\"Tensor[M, 300, fp8_e5m2]\", \"Tensor[M, 3, f32]\"]");
        assert_eq!(type_text("fake_quantize", &args("N 64 bf16", "q5_1", &[])), "Tensor[N, 64, bf16]");
    }

    #[test]
    fn mistakes() {
        assert!(error_text("quantize", &args("N 48 f32", "q4_0", &[])).contains("32 does not divide 48"));
        assert!(error_text("quantize", &args("N K f32", "q4_0", &[])).starts_with("E0212"));
        assert!(error_text("quantize", &args("N 32 i64", "q4_0", &[])).starts_with("E0205"));
        assert!(error_text("quantize", &args("N 256 f32", "q4_k", &[])).starts_with("E0690"));
        assert!(error_text("quantize", &args("N 32 f32", "q4", &[])).contains("\"q4\" is not one of"));
        assert!(error_text("quantize", &args("N 32 f32", "q8_0", &[1, 32])).starts_with("E0105"));
        assert!(error_text("quantize", &args("32 f32", "fp8_e4m3", &[1, 32])).starts_with("E0207"));
        assert!(error_text("quantize", &args("2 32 f32", "fp8_e4m3", &[0, 32])).starts_with("E0711"));
    }
}

//! `dequantize`: the numbers of quantised tensors.

use super::expand;
use super::quantize::{block_of, scales_shape, spread};
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred, require};
use super::*;
use crate::map::MapOp;
use tessera_base::Blocks;

pub const DEQUANTIZE: Row = Row::new(
    "dequantize",
    &[
        req("blocks", ParamKind::Tensor),
        opt("format", ParamKind::Str, Default::None),
        Param { name: "scales", kind: ParamKind::Tensor, default: Default::None, keyword_only: true },
        Param { name: "block", kind: ParamKind::Ints, default: Default::None, keyword_only: true },
    ],
    |cx, args, _| infer(cx, args),
    lower,
)
.doc(
    "The f32 numbers of a quantised tensor: a few bits for each, with scales that blocks share.\n\n\
     `blocks` is `u8[…, B, bytes]` as `io.read_gguf` gives it, and the result `f32[…, elems*B]`. `format` says what a block \
     is; without it the last size does. There are `\"q4_0\"` (18 bytes for 32 numbers), `\"q4_1\"` (20), `\"q5_0\"` (22), `\"q5_1\"` (24), `\"q8_0\"` (34), or \
     `\"q4_k\"` (144 bytes for 256 numbers), `\"q5_k\"` (176), `\"q6_k\"` (210).\n\n\
     In `x @ op.dequantize(w).T` the numbers never reach memory: the product reads the blocks, so that it moves a \
     fraction of the bytes. Its bits are those of the product with the numbers.\n\n\
     With `scales`, and the `block` that `op.quantize` was given, the operand is an fp8 tensor: `values * scales`.\n\n\
     E0202: the last size is not that of a block. E0205: the blocks are not u8. E0213: without `format`, the last size is not known.\n\n\
     ```tessera\nx @ op.dequantize(w).T    # f32[T, 32*B], u8[N, B, 20] -> f32[T, N]\n```",
);

fn format(args: &[SymArg]) -> Result<Blocks, OpError> {
    if rule::absent(args, 1) {
        return format_by_size(rule::tensor(args, 0)?);
    }
    let words = Blocks::ALL.map(Blocks::name);
    let word = rule::choice(args, 1, &words)?;
    Ok(Blocks::parse(word).unwrap_or(Blocks::Q8_0))
}

/// Every format has blocks of another size.
fn format_by_size(x: &TensorType) -> Result<Blocks, OpError> {
    let last = x.shape.last().and_then(Size::as_const);
    let found = Blocks::ALL.into_iter().find(|b| Some(b.bytes() as i64) == last);
    found.ok_or_else(|| match last {
        Some(n) => OpError::new(Code::E0202, format!("no format has blocks of {n} bytes")).arg(0, x.to_string()).note(
            format!("the formats are {}", Blocks::ALL.map(|b| format!("{} ({})", b.name(), b.bytes())).join(", ")),
        ),
        None => OpError::new(Code::E0213, "the last size, which says the format, is not known")
            .arg(0, x.to_string())
            .help("name it: `op.dequantize({blocks}, \"q8_0\")`"),
    })
}

/// The type of fp8 values with their scales.
fn infer_scaled(cx: &mut InferCx, args: &[SymArg], x: &TensorType, scales: &TensorType) -> Inferred {
    let eight = |d: DType| matches!(d, DType::F8E4M3 | DType::F8E5M2);
    if x.dtype.is_some_and(|d| !eight(d)) || scales.dtype.is_some_and(|d| d != DType::F32) {
        return Err(OpError::new(Code::E0205, "scales in f32 belong to values in fp8")
            .arg(0, x.to_string())
            .arg(2, scales.to_string()));
    }
    let block = block_of(args, 3, x)?;
    let wanted = rule::typed(scales_shape(&x.shape, block.as_deref()), Some(DType::F32));
    let text = || format!("the scales of these blocks are {wanted}");
    if scales.rank() != wanted.rank() {
        let error = OpError::new(Code::E0207, text()).arg(0, x.to_string()).arg(2, scales.to_string());
        return Err(error.help("`block=` is what `op.quantize` was given"));
    }
    for (want, have) in wanted.shape.iter().zip(&scales.shape) {
        require(cx, want, have, Code::E0202, text, |e| e.arg(0, x.to_string()).arg(2, scales.to_string()))?;
    }
    rule::one(x.shape.clone(), Some(DType::F32))
}

fn infer(cx: &mut InferCx, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    if let Some(scales) = rule::optional_tensor(args, 2)? {
        return infer_scaled(cx, args, x, scales);
    }
    if !rule::absent(args, 3) {
        return Err(OpError::new(Code::E0104, "`block` belongs to `scales`").arg(3, "here"));
    }
    rule::at_least_rank(x, 2, 0, "dequantize")?;
    let format = format(args)?;
    if x.dtype.is_some_and(|d| d != DType::U8) {
        return Err(OpError::new(Code::E0205, "blocks are bytes: a tensor of u8").arg(0, x.to_string()));
    }
    let (last, bytes) = (&x.shape[x.rank() - 1], format.bytes());
    let text = || format!("a block of \"{}\" has {bytes} bytes, and the last size is {last}", format.name());
    require(cx, last, &Size::constant(bytes as i64), Code::E0202, text, |e| e.arg(0, x.to_string()))?;
    let mut shape = x.shape.clone();
    shape.pop();
    if let Some(blocks) = shape.last_mut() {
        *blocks = blocks.scale(format.elems() as i64);
    }
    rule::one(shape, Some(DType::F32))
}

fn lower(call: &mut Call) -> Lowered {
    if let Some(scales) = call.optional_id(2) {
        let (x, block) = (call.id(0)?, block_of(&call.sym, 3, &call.ty(0)?)?);
        let b = &mut *call.b;
        let shape = b.shape(x);
        let values = expand::cast(b, x, DType::F32);
        let scales = spread(b, scales, &shape, block.as_deref());
        return Ok(vec![expand::map(b, MapOp::mul, &[values, scales])]);
    }
    let format = format(&call.sym)?;
    let (shape, _) = call.result();
    let x = call.id(0)?;
    Ok(vec![call.b.push(Prim::Dequantize { format }, &[x], shape, DType::F32)])
}

#[cfg(test)]
mod tests {
    use super::super::SymArg;
    use super::super::testing::{error_text, tensor_arg, type_text};

    fn args(blocks: &str, format: &str) -> Vec<SymArg> {
        vec![tensor_arg(blocks), SymArg::Str(format.into())]
    }

    #[test]
    fn types() {
        assert_eq!(type_text("dequantize", &args("N B 20 u8", "q4_1")), "Tensor[N, 32*B, f32]");
        assert_eq!(type_text("dequantize", &[tensor_arg("N B 34 u8")]), "Tensor[N, 32*B, f32]");
        assert_eq!(type_text("dequantize", &args("3 210 u8", "q6_k")), "Tensor[768, f32]");
    }

    #[test]
    fn mistakes() {
        assert_eq!(
            error_text("dequantize", &args("N B 20 u8", "q4_0")),
            "E0202 a block of \"q4_0\" has 18 bytes, and the last size is 20 | 0: Tensor[N, B, 20, u8]"
        );
        assert!(error_text("dequantize", &args("N 18 f32", "q4_0")).starts_with("E0205 blocks are bytes"));
        assert!(error_text("dequantize", &args("N 18 u8", "q4")).contains("\"q4\" is not one of"));
        assert!(error_text("dequantize", &args("18 u8", "q4_0")).starts_with("E0207"));
        assert!(
            error_text("dequantize", &[tensor_arg("N 19 u8")]).starts_with("E0202 no format has blocks of 19 bytes")
        );
        assert!(error_text("dequantize", &[tensor_arg("N B u8")]).starts_with("E0213"));
    }
}

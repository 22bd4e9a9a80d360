//! `array`: a tensor written out.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::prim::Prim;

pub const ARRAY: Row =
    Row::new("array", &[req("values", ParamKind::Nested), opt("dtype", ParamKind::DType, Default::None)], infer, lower)
        .known_as(&["tensor", "asarray", "from_list"])
        .doc(
            "A tensor from nested lists of numbers, which must be rectangular.\n\n\
             Without `dtype` bools give bool, ints i64, and anything with a float f32.\n\n\
             ```tessera\nop.array([[1, 2, 3], [4, 5, 6]])    # Tensor[2, 3, i64]\n```",
        );

fn infer(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let dtype = rule::dtype(args, 1)?;
    match args.first() {
        Some(SymArg::Nested { shape, dtype: natural }) => rule::one(shape.clone(), Some(dtype.unwrap_or(*natural))),
        // A tensor or a number is taken as it is.
        Some(SymArg::Tensor(t)) => rule::one(t.shape.clone(), dtype.or(t.dtype)),
        Some(other) => {
            let value = rule::operand(args, 0).map_err(|_| {
                OpError::new(Code::E0204, "nested lists of numbers are needed here").arg(0, rule::describe(Some(other)))
            })?;
            let natural = match value {
                rule::Operand::Weak(w) => Some(rule::weak_dtype(w)),
                rule::Operand::Tensor(t) => t.dtype,
            };
            rule::one(vec![], dtype.or(natural))
        }
        None => Err(OpError::new(Code::E0104, "`op.array` needs its values")),
    }
}

fn lower(call: &mut Call) -> Lowered {
    let (shape, dtype) = call.result();
    let Some(Arg::Nested { values, .. }) = call.args.first() else {
        return Ok(vec![call.operand(0, &shape, dtype)?]);
    };
    for value in values {
        if let Scalar::I(n) = value {
            expand::in_range(*n, dtype).map_err(|e| e.arg(0, "here"))?;
        }
    }
    let (bytes, held) = encode(values, dtype);
    let literal = call.b.push(Prim::Literal(bytes.into()), &[], shape, held);
    Ok(vec![expand::cast(call.b, literal, dtype)])
}

/// The elements as little-endian bytes, and the type they are written in: narrow floats are
/// written as f64 and converted once.
fn encode(values: &[Scalar], dtype: DType) -> (Vec<u8>, DType) {
    let held = match dtype {
        DType::F32 | DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::U8 | DType::Bool => dtype,
        _ => DType::F64,
    };
    let mut out = Vec::with_capacity(values.len() * held.bytes());
    for &value in values {
        let (int, float) = match value {
            Scalar::I(n) => (n, n as f64),
            Scalar::F(v) => (v as i64, v),
        };
        match held {
            DType::F32 => out.extend((float as f32).to_le_bytes()),
            DType::F64 => out.extend(float.to_le_bytes()),
            DType::Bool => out.push(u8::from(float != 0.0)),
            _ => out.extend(&int.to_le_bytes()[..held.bytes()]),
        }
    }
    (out, held)
}

//! `cast`: another element type.

use super::expand;
use super::row::{Call, Lowered, Row, req};
use super::rule::{self, Inferred};
use super::*;

pub const CAST: Row = Row::new("cast", &[req("x", ParamKind::Operand), req("dtype", ParamKind::DType)], infer, lower)
    .elementwise()
    .method()
    .known_as(&["convert_element_type", "as_type"])
    .doc(
        "The tensor with its elements converted to another dtype. Also the methods `x.to(dtype)` and `x.astype(dtype)`.\n\n\
         To a narrower float: round to nearest, ties to even; fp8 saturates. Float to int truncates and saturates, NaN \
         gives 0. Between ints the low bits are kept. To bool: whether the element is not 0.\n\n\
         ```tessera\nop.array([1.5, -2.5]).to(i32)    # [ 1 -2]\n```",
    );

fn infer(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::operand(args, 0)?;
    let Some(to) = rule::dtype(args, 1)? else {
        return Err(OpError::new(Code::E0204, "a dtype is needed here, not None").arg(1, "None"));
    };
    if let rule::Operand::Tensor(TensorType { dtype: Some(DType::C64), .. }) = x
        && to != DType::C64
    {
        return Err(OpError::new(Code::E0205, format!("a complex number has no value in {to}")).arg(0, x.label()));
    }
    rule::one(x.shape().to_vec(), Some(to))
}

fn lower(call: &mut Call) -> Lowered {
    let shape = call.result().0;
    let to = rule::dtype(&call.sym, 1)?.unwrap_or(DType::F32);
    match call.args.first() {
        Some(Arg::Tensor(x) | Arg::Dynamic(x)) => Ok(vec![expand::cast(call.b, *x, to)]),
        _ => Ok(vec![call.operand(0, &shape, to)?]),
    }
}

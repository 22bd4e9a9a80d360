//! `cumsum` and `cumprod`: running sums and products.

use super::expand;
use super::reduce::{no_complex, stepwise};
use super::row::{Call, Lowered, Row, accumulator, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::prim::{Prim, Reduction};

const PARAMS: &[Param] = &[req("x", ParamKind::Tensor), opt("axis", ParamKind::Axis, Default::None)];

pub const CUMSUM: Row = Row::new("cumsum", PARAMS, |_, a, _| infer("cumsum", a), |c| lower(c, Reduction::Sum))
    .method()
    .known_as(&["cumulative_sum"])
    .signature("a b -> a b")
    .halves()
    .doc(
        "Running sum along an axis; without an axis, of the flattened tensor.\n\n\
         Element `i` is the sum of elements 0 to `i`, added in ascending order. Dtypes as for `sum`.\n\n\
         ```tessera\nop.cumsum(op.arange(4))    # [0 1 3 6]\n```",
    );

pub const CUMPROD: Row = Row::new("cumprod", PARAMS, |_, a, _| infer("cumprod", a), |c| lower(c, Reduction::Prod))
    .method()
    .known_as(&["cumulative_prod"])
    .signature("a b -> a b")
    .halves()
    .doc("Running product along an axis; without an axis, of the flattened tensor. Dtypes as for `sum`.");

fn infer(name: &str, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    no_complex(name, x, 0)?;
    let dtype = x.dtype.map(|d| if d.is_float() { d } else { DType::I64 });
    if rule::absent(args, 1) {
        return rule::one(vec![x.elems()], dtype);
    }
    rule::axis(args, 1, x)?;
    rule::one(x.shape.clone(), dtype)
}

fn lower(call: &mut Call, kind: Reduction) -> Lowered {
    let (t, x) = (call.ty(0)?, call.id(0)?);
    let shape = call.result().0;
    let axis = if rule::absent(&call.sym, 1) { 0 } else { rule::axis(&call.sym, 1, &t)? };
    let dtype = accumulator(call.b.dtype(x), call.hints);
    let x = expand::cast(call.b, x, dtype);
    let x = expand::reshape(call.b, x, &shape);
    let kind = stepwise(kind, dtype);
    Ok(vec![call.b.push(Prim::Cumulate { kind, axis }, &[x], shape, dtype)])
}

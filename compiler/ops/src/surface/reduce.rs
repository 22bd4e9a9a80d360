//! Reductions by one monoid: `sum prod max min any all`.

use super::expand;
use super::row::{Call, Lowered, Row, accumulator, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::prim::Reduction;

pub const PARAMS: &[Param] = &[
    req("x", ParamKind::Tensor),
    opt("axis", ParamKind::Axes, Default::None),
    opt("keepdims", ParamKind::Bool, Default::Bool(false)),
];

pub const SUM: Row = Row::new("sum", PARAMS, |cx, a, h| infer(Reduction::Sum, cx, a, h), |c| lower(Reduction::Sum, c))
    .method()
    .known_as(&["reduce_sum", "nansum"])
    .signature("a b -> a")
    .sum_of(&[0])
    .halves()
    .doc(
        "Sum over an axis, a tuple of axes, or all elements.\n\n\
         Floats keep their dtype: types narrower than f32 accumulate in f32 and the result is rounded once. Ints and bool \
         give i64; `accum_dtype=f16` rounds every addition of f16 numbers to f16. Elements are added in a fixed order that depends on the reduced length alone. `keepdims=True` leaves \
         the axes as dims of size 1.\n\n```tessera\nx.sum(axis=-1, keepdims=True)    # Tensor[B, D, f32] -> Tensor[B, 1, f32]\n```",
    );

pub const PROD: Row = Row::new(
    "prod",
    PARAMS,
    |cx, a, h| infer(Reduction::Prod, cx, a, h),
    |c| lower(Reduction::Prod, c),
)
.method()
.known_as(&["product", "reduce_prod"])
.signature("a b -> a")
.sum_of(&[0])
.halves()
.doc("Product over an axis, a tuple of axes, or all elements. Dtypes as for `sum`.\n\n```tessera\nx.prod(axis=0)\n```");

pub const MAX: Row = Row::new("max", PARAMS, |cx, a, h| infer(Reduction::Max, cx, a, h), |c| lower(Reduction::Max, c))
    .method()
    .known_as(&["amax", "reduce_max"])
    .signature("a b -> a")
    .doc(
        "Largest element over an axis, a tuple of axes, or all elements.\n\n\
         Keeps the dtype; NaN wins. For the larger of two tensors see `maximum`. An axis of size 0 is an error.\n\n\
         ```tessera\nx.max(axis=(0, 1))\n```",
    );

pub const MIN: Row = Row::new("min", PARAMS, |cx, a, h| infer(Reduction::Min, cx, a, h), |c| lower(Reduction::Min, c))
    .method()
    .known_as(&["amin", "reduce_min"])
    .signature("a b -> a")
    .doc("Smallest element over an axis, a tuple of axes, or all elements. As `max`.\n\n```tessera\nx.min()\n```");

pub const ANY: Row = Row::new("any", PARAMS, |cx, a, h| infer(Reduction::Any, cx, a, h), |c| lower(Reduction::Any, c))
    .method()
    .known_as(&["reduce_any"])
    .signature("a b -> a")
    .doc("Whether any element over the axes is not 0. Gives bool; of no elements, False.\n\n```tessera\nop.any(x > 3)\n```");

pub const ALL: Row = Row::new("all", PARAMS, |cx, a, h| infer(Reduction::All, cx, a, h), |c| lower(Reduction::All, c))
    .method()
    .known_as(&["reduce_all"])
    .signature("a b -> a")
    .doc("Whether every element over the axes is not 0. Gives bool; of no elements, True.\n\n```tessera\nop.all(a == b)\n```");

/// The dtype of the result before `out_dtype`.
fn result(kind: Reduction, dtype: DType) -> DType {
    match kind {
        Reduction::Any | Reduction::All => DType::Bool,
        Reduction::Sum | Reduction::Prod if !(dtype.is_float() || dtype.is_complex()) => DType::I64,
        _ => dtype,
    }
}

/// An error for an extremum over an axis that is certainly empty.
pub fn not_empty(name: &str, t: &TensorType, axes: &[usize]) -> Result<(), OpError> {
    match axes.iter().find(|&&a| t.shape[a].is_zero()) {
        Some(a) => {
            Err(OpError::new(Code::E0711, format!("`{name}` over axis {a}, which has no elements"))
                .arg(0, t.to_string()))
        }
        None => Ok(()),
    }
}

/// An error for complex numbers, whose arithmetic is missing, at parameter `i`.
pub fn no_complex(name: &str, t: &TensorType, i: usize) -> Result<(), OpError> {
    if t.dtype == Some(DType::C64) {
        return Err(OpError::new(Code::E0690, format!("`{name}` of complex numbers is not supported yet"))
            .arg(i, t.to_string()));
    }
    Ok(())
}

fn infer(kind: Reduction, _: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let axes = rule::axes(args, 1, x)?;
    if kind != Reduction::Sum {
        no_complex(kind.name(), x, 0)?;
    }
    if matches!(kind, Reduction::Max | Reduction::Min) {
        not_empty(kind.name(), x, &axes)?;
    }
    rule::one(rule::reduced(&x.shape, &axes, rule::flag(args, 2)?), x.dtype.map(|d| result(kind, d)))
}

/// The reduction that rounds every step to the accumulator's type.
pub fn stepwise(kind: Reduction, accum: DType) -> Reduction {
    match kind {
        Reduction::Sum if accum == DType::F16 => Reduction::HalfSum,
        Reduction::Prod if accum == DType::F16 => Reduction::HalfProd,
        _ => kind,
    }
}

fn lower(kind: Reduction, call: &mut Call) -> Lowered {
    let (t, x) = (call.ty(0)?, call.id(0)?);
    let (axes, keep) = (rule::axes(&call.sym, 1, &t)?, rule::flag(&call.sym, 2)?);
    let dtype = call.b.dtype(x);
    let (kind, working) = match kind {
        Reduction::Any | Reduction::All => (kind, DType::Bool),
        Reduction::Sum | Reduction::Prod => (kind, accumulator(dtype, call.hints)),
        Reduction::Max if dtype == DType::Bool => (Reduction::Any, dtype),
        Reduction::Min if dtype == DType::Bool => (Reduction::All, dtype),
        _ => (kind, dtype),
    };
    let x = expand::cast(call.b, x, working);
    let out = expand::reduce(call.b, x, stepwise(kind, working), &axes, keep);
    // `out_dtype` rounds straight from the accumulator.
    if call.hints.out_dtype.is_some() {
        return Ok(vec![out]);
    }
    Ok(vec![expand::cast(call.b, out, result(kind, dtype))])
}

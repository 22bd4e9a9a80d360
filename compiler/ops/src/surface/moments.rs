//! `mean var std`: moments over axes.

use super::expand;
use super::reduce::{PARAMS, no_complex};
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;
use crate::prim::Reduction;

const SPREAD: &[Param] = &[
    req("x", ParamKind::Tensor),
    opt("axis", ParamKind::Axes, Default::None),
    opt("keepdims", ParamKind::Bool, Default::Bool(false)),
    Param { name: "ddof", kind: ParamKind::Int, default: Default::Int(0), keyword_only: true },
];

pub const MEAN: Row = Row::new("mean", PARAMS, |_, a, _| infer("mean", a), lower_mean)
    .method()
    .known_as(&["average", "avg", "reduce_mean"])
    .signature("a b -> a")
    .sum_of(&[0])
    .halves()
    .doc(
        "Arithmetic mean over an axis, a tuple of axes, or all elements.\n\n\
         Floats keep their dtype and accumulate in f32 at least; ints and bool give f32 (computed in f64). Of no elements \
         it is NaN.\n\n```tessera\nx.mean(axis=-1, keepdims=True)\n```",
    );

pub const VAR: Row = Row::new("var", SPREAD, |_, a, _| infer("var", a), |c| lower_spread(c, false))
    .method()
    .known_as(&["variance"])
    .signature("a b -> a")
    .sum_of(&[0])
    .doc(
        "Variance over an axis, a tuple of axes, or all elements.\n\n\
         The population variance, as NumPy's: the mean square distance from the mean, in two passes. `ddof=1` divides by \
         one less (PyTorch's default). Dtypes as for `mean`.\n\n```tessera\nx.var(axis=1)\n```",
    );

pub const STD: Row = Row::new("std", SPREAD, |_, a, _| infer("std", a), |c| lower_spread(c, true))
    .method()
    .known_as(&["stddev"])
    .signature("a b -> a")
    .sum_of(&[0])
    .doc("Standard deviation: the square root of `var`.\n\n```tessera\nx.std(axis=1)\n```");

fn infer(name: &str, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    if name != "mean" {
        no_complex(name, x, 0)?;
    }
    let axes = rule::axes(args, 1, x)?;
    if args.len() > 3 {
        rule::int_const(args, 3, "`ddof`")?;
    }
    let dtype = x.dtype.map(|d| if d.is_float() || d.is_complex() { d } else { DType::F32 });
    rule::one(rule::reduced(&x.shape, &axes, rule::flag(args, 2)?), dtype)
}

/// The operand in the type that the moments are computed in: ints go through f64, which
/// holds their sums.
fn start(call: &mut Call) -> Result<(Id, Vec<usize>, Vec<u64>), OpError> {
    let (t, x) = (call.ty(0)?, call.id(0)?);
    let axes = rule::axes(&call.sym, 1, &t)?;
    let dtype = call.b.dtype(x);
    let wide = if dtype.is_complex() {
        dtype
    } else if !dtype.is_float() || call.hints.accum_dtype == Some(DType::F64) {
        DType::F64
    } else {
        dtype.compute()
    };
    let out = call.result().0;
    Ok((expand::cast(call.b, x, wide), axes, out))
}

fn lower_mean(call: &mut Call) -> Lowered {
    if call.hints.accum_dtype == Some(DType::F16) {
        let (t, x) = (call.ty(0)?, call.id(0)?);
        let (axes, out) = (rule::axes(&call.sym, 1, &t)?, call.result().0);
        let shape = call.b.shape(x);
        let count: f64 = axes.iter().map(|&a| shape[a] as f64).product();
        let sum = expand::reduce(call.b, x, Reduction::HalfSum, &axes, false);
        let sum = expand::cast(call.b, sum, DType::F32);
        let mean = expand::binary_const(call.b, MapOp::div, sum, count);
        return Ok(vec![expand::reshape(call.b, mean, &out)]);
    }
    let (x, axes, shape) = start(call)?;
    if call.b.dtype(x).is_complex() {
        let [re, im] = [expand::real, expand::imag].map(|part| {
            let x = part(call.b, x);
            let mean = expand::mean(call.b, x, &axes);
            expand::reshape(call.b, mean, &shape)
        });
        return Ok(vec![expand::complex(call.b, re, im)]);
    }
    let mean = expand::mean(call.b, x, &axes);
    Ok(vec![expand::reshape(call.b, mean, &shape)])
}

fn lower_spread(call: &mut Call, root: bool) -> Lowered {
    let (x, axes, shape) = start(call)?;
    let ddof = rule::int_const(&call.sym, 3, "`ddof`")?;
    let b = &mut *call.b;
    let sizes = b.shape(x);
    let count: f64 = axes.iter().map(|&a| sizes[a] as f64).product();
    let mean = expand::mean(b, x, &axes);
    let centred = expand::binary(b, MapOp::sub, x, mean);
    let squares = expand::map(b, MapOp::mul, &[centred, centred]);
    let sum = expand::reduce(b, squares, Reduction::Sum, &axes, false);
    let mut out = expand::binary_const(b, MapOp::div, sum, (count - ddof as f64).max(0.0));
    if root {
        out = expand::unary(b, MapOp::sqrt, out);
    }
    Ok(vec![expand::reshape(b, out, &shape)])
}

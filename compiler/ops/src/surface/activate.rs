//! `gelu` with its two forms, `leaky_relu` and `elu`. The other activations are plain
//! elementwise functions.

use super::expand;
use super::row::{Call, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;

pub const GELU: Row = Row::new(
    "gelu",
    &[req("x", ParamKind::Tensor), opt("approximate", ParamKind::Str, Default::Str("none"))],
    |_, args, _| {
        rule::choice(args, 1, &["none", "tanh"])?;
        infer("gelu", args)
    },
    |call| {
        let op = if rule::text(&call.sym, 1)? == "tanh" { MapOp::gelu_tanh } else { MapOp::gelu };
        let (shape, _) = call.result();
        let t = call.ty(0)?;
        let x = call.operand(0, &shape, rule::as_float("gelu", &t, 0)?.unwrap_or(DType::F32))?;
        Ok(vec![expand::unary(call.b, op, x)])
    },
)
.elementwise()
.method()
.doc(
    "Gaussian error linear unit: `x * Φ(x)` with Φ from the error function.\n\n\
     `approximate=\"tanh\"` takes the usual approximation by the hyperbolic tangent. (Hendrycks and Gimpel, 2016.)\n\n\
     ```tessera\nop.gelu(x, approximate=\"tanh\")\n```",
);

pub const LEAKY_RELU: Row = Row::new(
    "leaky_relu",
    &[req("x", ParamKind::Tensor), opt("negative_slope", ParamKind::Float, Default::Float(0.01))],
    |_, args, _| {
        rule::float(args, 1)?;
        infer("leaky_relu", args)
    },
    |call| {
        let (x, zero, slope) = start(call)?;
        let positive = expand::map(call.b, MapOp::gt, &[x, zero]);
        let scaled = expand::map(call.b, MapOp::mul, &[x, slope]);
        Ok(vec![expand::select(call.b, positive, x, scaled)])
    },
)
.elementwise()
.method()
.doc("`x` where it is positive, `negative_slope * x` elsewhere.\n\n```tessera\nop.leaky_relu(x, 0.2)\n```");

pub const ELU: Row = Row::new(
    "elu",
    &[req("x", ParamKind::Tensor), opt("alpha", ParamKind::Float, Default::Float(1.0))],
    |_, args, _| {
        rule::float(args, 1)?;
        infer("elu", args)
    },
    |call| {
        let (x, zero, alpha) = start(call)?;
        let positive = expand::map(call.b, MapOp::gt, &[x, zero]);
        // The branch that is not taken must not overflow: its gradient would be NaN.
        let low = expand::map(call.b, MapOp::minimum, &[x, zero]);
        let exp = expand::unary(call.b, MapOp::expm1, low);
        let scaled = expand::map(call.b, MapOp::mul, &[exp, alpha]);
        Ok(vec![expand::select(call.b, positive, x, scaled)])
    },
)
.elementwise()
.method()
.doc("`x` where it is positive, `alpha * (exp(x) - 1)` elsewhere. (Clevert et al., 2015.)");

fn infer(name: &str, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::one(x.shape.clone(), rule::as_float(name, x, 0)?)
}

/// The operand, zeros and the parameter, in the type the arithmetic is done in.
fn start(call: &mut Call) -> Result<(Id, Id, Id), OpError> {
    let x = call.wide(0)?;
    let (shape, dtype) = (call.b.shape(x), call.b.dtype(x));
    let zero = expand::like(call.b, x, 0.0);
    let parameter = call.operand(1, &shape, dtype)?;
    Ok((x, zero, parameter))
}

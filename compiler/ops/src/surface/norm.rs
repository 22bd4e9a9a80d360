//! `layer_norm rms_norm batch_norm`: normalisation.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req, wide_of};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;

const EPS: Param = opt("eps", ParamKind::Float, Default::Float(1e-5));

pub const LAYER_NORM: Row = Row::new(
    "layer_norm",
    &[
        req("x", ParamKind::Tensor),
        req("normalized_shape", ParamKind::Shape),
        opt("weight", ParamKind::Tensor, Default::None),
        opt("bias", ParamKind::Tensor, Default::None),
        EPS,
    ],
    |cx, a, _| infer("layer_norm", cx, a, &[2, 3]),
    |c| lower(c, true),
)
.known_as(&["layernorm", "LayerNorm"])
.signature("b d, d, d -> b d")
.doc(
    "Zero mean and unit variance over the trailing dims `normalized_shape`, then times `weight` plus `bias`, both of that shape.\n\n\
     `(x - mean) / sqrt(var + eps)` with the population variance, in two passes; f32 inside for narrower types. `x`, \
     `weight` and `bias` meet in one dtype. (Ba et al., 2016.)\n\n\
     ```tessera\nop.layer_norm(x, (D,), weight=w, bias=b)\n```",
);

pub const RMS_NORM: Row = Row::new(
    "rms_norm",
    &[
        req("x", ParamKind::Tensor),
        req("normalized_shape", ParamKind::Shape),
        opt("weight", ParamKind::Tensor, Default::None),
        opt("eps", ParamKind::Float, Default::Float(1e-6)),
    ],
    |cx, a, _| infer("rms_norm", cx, a, &[2]),
    |c| lower(c, false),
)
.known_as(&["rmsnorm", "RMSNorm"])
.signature("b d, d -> b d")
.doc(
    "Divided by the root mean square over the trailing dims `normalized_shape`, then times `weight`.\n\n\
     `x / sqrt(mean(x * x) + eps)`; f32 inside for narrower types. (Zhang and Sennrich, 2019.)\n\n\
     ```tessera\nop.rms_norm(x, (D,), weight=w)\n```",
);

/// `scales` are the positions of weight and bias.
fn infer(name: &str, cx: &mut InferCx, args: &[SymArg], scales: &[usize]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let normal = rule::shape(args, 1)?;
    rule::float(args, scales.len() + 2)?;
    if normal.is_empty() || normal.len() > x.rank() {
        return Err(OpError::new(
            Code::E0207,
            format!("`{name}` over the last {} dims of a tensor of rank {}", normal.len(), x.rank()),
        )
        .arg(0, x.to_string())
        .arg(1, rule::tuple(&normal)));
    }
    let lead = x.rank() - normal.len();
    for (d, (have, want)) in x.shape[lead..].iter().zip(&normal).enumerate() {
        let text = || {
            format!(
                "`normalized_shape` {} differs from the trailing sizes of the tensor: axis {} has size {have}",
                rule::tuple(&normal),
                lead + d
            )
        };
        rule::require(cx, have, want, Code::E0202, text, |e| e.arg(0, x.to_string()).arg(1, rule::tuple(&normal)))?;
    }
    for &i in scales {
        let Some(w) = rule::optional_tensor(args, i)? else { continue };
        let want = rule::typed(normal.clone(), None);
        let blame = |e: OpError| e.arg(i, w.to_string()).arg(1, rule::tuple(&normal));
        if w.rank() != want.rank() {
            return Err(blame(OpError::new(
                Code::E0207,
                format!("a tensor of shape {} is needed, and this one has rank {}", rule::tuple(&normal), w.rank()),
            )));
        }
        for (have, want) in w.shape.iter().zip(&normal) {
            let text = || format!("a tensor of shape {} is needed, and this one has size {have}", rule::tuple(&normal));
            rule::require(cx, have, want, Code::E0202, text, blame)?;
        }
    }
    rule::one(x.shape.clone(), result_dtype(name, args, scales)?)
}

/// The float type in which `x` and the tensors at `others` meet.
fn result_dtype(name: &str, args: &[SymArg], others: &[usize]) -> Result<Option<DType>, OpError> {
    let x = rule::tensor(args, 0)?;
    rule::as_float(name, x, 0)?;
    let mut all = vec![(0, x)];
    for &i in others {
        all.extend(rule::optional_tensor(args, i)?.map(|t| (i, t)));
    }
    Ok(rule::join_tensors(&all)?.map(|d| if d.is_float() { d } else { DType::F32 }))
}

fn lower(call: &mut Call, centre: bool) -> Lowered {
    let shape = call.result().0;
    let count = rule::shape(&call.sym, 1)?.len();
    let axes: Vec<usize> = (shape.len() - count..shape.len()).collect();
    let scales: &[usize] = if centre { &[2, 3] } else { &[2] };
    let dtype = wide_of(result_dtype("layer_norm", &call.sym, scales)?.unwrap_or(DType::F32));
    let x = call.id(0)?;
    let whole = expand::cast(call.b, x, dtype);
    let mut x = whole;
    if centre {
        let mean = expand::mean(call.b, x, &axes);
        x = expand::binary(call.b, MapOp::sub, x, mean);
    }
    let squares = expand::map(call.b, MapOp::mul, &[x, x]);
    let var = expand::mean(call.b, squares, &axes);
    let last = if centre { 4 } else { 3 };
    let column = call.b.shape(var);
    let eps = call.operand(last, &column, dtype)?;
    let sum = expand::map(call.b, MapOp::add, &[var, eps]);
    let scale = expand::unary(call.b, MapOp::rsqrt, sum);
    let y = expand::binary(call.b, MapOp::mul, x, scale);
    let over = axes.clone();
    let pull: Pull = Arc::new(move |b, p| vec![Some(pull_norm(b, p, &over, centre))]);
    call.b.derive(Derivative { inputs: vec![whole], output: y, saved: vec![scale], pull });
    let mut x = y;
    for (&i, op) in scales.iter().zip([MapOp::mul, MapOp::add]) {
        if call.optional_id(i).is_some() {
            let y = call.operand(i, &shape, dtype)?;
            x = expand::map(call.b, op, &[x, y]);
        }
    }
    Ok(vec![x])
}

/// With the result `y` and the factor `r` of its rows: `x̄ = r(c − mean(c) − y·mean(c∘y))`, without
/// the first mean where the rows are not centred.
fn pull_norm(b: &mut dyn Build, p: &Pulled, axes: &[usize], centre: bool) -> Id {
    let products = expand::map(b, MapOp::mul, &[p.cotangent, p.output]);
    let slope = expand::mean(b, products, axes);
    let along = expand::binary(b, MapOp::mul, p.output, slope);
    let mut rest = p.cotangent;
    if centre {
        let mean = expand::mean(b, p.cotangent, axes);
        rest = expand::binary(b, MapOp::sub, rest, mean);
    }
    let rest = expand::map(b, MapOp::sub, &[rest, along]);
    expand::binary(b, MapOp::mul, rest, p.saved[0])
}

pub const BATCH_NORM: Row = Row::new(
    "batch_norm",
    &[
        req("x", ParamKind::Tensor),
        req("mean", ParamKind::Tensor),
        req("var", ParamKind::Tensor),
        opt("weight", ParamKind::Tensor, Default::None),
        opt("bias", ParamKind::Tensor, Default::None),
        EPS,
        opt("axis", ParamKind::Axis, Default::Int(1)),
    ],
    infer_batch,
    lower_batch,
)
.elementwise()
.known_as(&["batchnorm", "BatchNorm"])
.signature("n c s, c, c, c, c -> n c s")
.doc(
    "Normalised with the statistics given, one for each channel: `(x - mean) / sqrt(var + eps) * weight + bias`.\n\n\
     Channels lie along `axis`, 1 as in PyTorch. In training pass the batch's own `x.mean((0, 2, 3))` and \
     `x.var((0, 2, 3))`. (Ioffe and Szegedy, 2015.)\n\n```tessera\nop.batch_norm(x, mean, var, weight=w, bias=b)\n```",
);

fn infer_batch(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let axis = rule::axis(args, 6, x)?;
    rule::float(args, 5)?;
    for i in 1..5 {
        let Some(t) = rule::optional_tensor(args, i)? else {
            if i < 3 {
                rule::tensor(args, i)?;
            }
            continue;
        };
        let channels = &x.shape[axis];
        let blame = |e: OpError| e.arg(0, x.to_string()).arg(i, t.to_string());
        if t.rank() != 1 {
            return Err(blame(OpError::new(
                Code::E0207,
                format!("one number for each channel is needed: a tensor of shape ({channels},)"),
            )));
        }
        let text = || format!("axis {axis} has {channels} channels, and this tensor {} elements", t.shape[0]);
        rule::require(cx, channels, &t.shape[0], Code::E0202, text, blame)?;
    }
    rule::one(x.shape.clone(), result_dtype("batch_norm", args, &[1, 2, 3, 4])?)
}

fn lower_batch(call: &mut Call) -> Lowered {
    let (t, (shape, _)) = (call.ty(0)?, call.result());
    let axis = rule::axis(&call.sym, 6, &t)?;
    let dtype = wide_of(result_dtype("batch_norm", &call.sym, &[1, 2, 3, 4])?.unwrap_or(DType::F32));
    let x = call.id(0)?;
    let mut x = expand::cast(call.b, x, dtype);
    // The statistics are small: the scale is computed once for each channel.
    let channels = [shape[axis]];
    let (mean, var) = (call.operand(1, &channels, dtype)?, call.operand(2, &channels, dtype)?);
    let eps = call.operand(5, &channels, dtype)?;
    let sum = expand::map(call.b, MapOp::add, &[var, eps]);
    let scale = expand::unary(call.b, MapOp::rsqrt, sum);
    for (y, op) in [
        (Some(mean), MapOp::sub),
        (Some(scale), MapOp::mul),
        (call.optional_id(3), MapOp::mul),
        (call.optional_id(4), MapOp::add),
    ] {
        if let Some(y) = y {
            let y = expand::cast(call.b, y, dtype);
            let y = expand::broadcast_dims(call.b, y, &shape, vec![axis]);
            x = expand::map(call.b, op, &[x, y]);
        }
    }
    Ok(vec![x])
}

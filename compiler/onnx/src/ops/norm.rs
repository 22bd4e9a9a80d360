//! Norms and softmax.

use super::{Row, row};
use crate::node::{No, Node, axes_text};
use crate::value::{Int, Tensor, Value, tuple};
use tessera_base::DType;
use tessera_runtime::io::onnx;

/// Before version 14 without the statistics of a batch, which only training has; how they are gathered follows `momentum`.
const BATCH: &[&str] = &["epsilon", "training_mode", "momentum", "is_test", "spatial"];

pub const ROWS: &[Row] = &[
    row("Softmax", |n| softmax(n, "softmax")).honours(&["axis"]),
    row("LogSoftmax", |n| softmax(n, "log_softmax")).honours(&["axis"]),
    row("LayerNormalization", |n| trailing(n, "layer_norm")).honours(&["axis", "epsilon", "stash_type"]),
    row("RMSNormalization", |n| trailing(n, "rms_norm")).honours(&["axis", "epsilon", "stash_type"]),
    row("BatchNormalization", batch).honours(BATCH),
    row("InstanceNormalization", |n| {
        let x = n.tensor(0)?;
        let axes: Vec<usize> = (2..x.rank).collect();
        let y = standard(n, &x, &axes_text(&axes))?;
        scaled(n, y, &x)
    })
    .honours(&["epsilon"]),
    row("GroupNormalization", groups).honours(&["epsilon", "num_groups", "stash_type"]),
    row("Hardmax", |n| {
        let x = n.tensor(0)?;
        let old = n.body.opset < 13;
        let axis = x.axis(n.int("axis", if old { 1 } else { -1 }))?;
        if old && axis + 1 != x.rank {
            return n.refuses("axis", "before version 13 it is the last dim that is supported");
        }
        let size = x.dim(axis).text();
        let hot = format!("op.one_hot(op.argmax({}, axis={axis}), {size}, dtype={})", x.text, x.dtype);
        n.give(&if axis + 1 == x.rank { hot } else { format!("op.moveaxis({hot}, -1, {axis})") }, x.rank, x.dtype)
    })
    .honours(&["axis"]),
    row("MeanVarianceNormalization", |n| {
        let x = n.tensor(0)?;
        let axes = n.list("axes").unwrap_or_else(|| vec![0, 2, 3]);
        let axes = axes_text(&axes.iter().map(|a| x.axis(*a)).collect::<Result<Vec<_>, No>>()?);
        let t = &x.text;
        let from = n.bound(&format!("{t} - op.mean({t}, axis={axes}, keepdims=True)"), x.rank, x.dtype)?;
        let spread = format!("(op.sqrt(op.var({t}, axis={axes}, keepdims=True)) + 1e-9)");
        n.give(&format!("{} / {spread}", from.text), x.rank, x.dtype)
    })
    .honours(&["axes"]),
    row("LRN", |n| {
        let x = n.tensor(0)?;
        let [alpha, beta, bias] =
            [("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)].map(|(name, other)| n.literal(name, other, x.dtype));
        let call = n.library(&format!("lrn({}, {}, {alpha}, {beta}, {bias})", x.text, n.int("size", 1)));
        n.give(&call, x.rank, x.dtype)
    })
    .honours(&["alpha", "beta", "bias", "size"]),
    row("NegativeLogLikelihoodLoss", |n| {
        let x = n.tensor(0)?;
        loss(n, &x)
    })
    .honours(&["ignore_index", "reduction"]),
    row("SoftmaxCrossEntropyLoss", |n| {
        let x = n.tensor(0)?;
        let shares = n.bound(&format!("op.log_softmax({}, axis=1)", x.text), x.rank, x.dtype)?;
        n.result(1, Value::Tensor(shares.clone()));
        loss(n, &shares)
    })
    .honours(&["ignore_index", "reduction"]),
    row("LpNormalization", |n| {
        let x = n.tensor(0)?;
        let axis = x.axis(n.int("axis", -1))?;
        let size = match n.int("p", 2) {
            1 => format!("op.sum(op.abs({}), axis={axis}, keepdims=True)", x.text),
            2 => format!("op.sqrt(op.sum(op.square({}), axis={axis}, keepdims=True))", x.text),
            _ => return n.refuses("p", "it is 1 or 2"),
        };
        let size = n.bound(&size, x.rank, x.dtype)?.text;
        n.give(&format!("op.where({size} == 0.0, 0.0, {} / {size})", x.text), x.rank, x.dtype)
    })
    .honours(&["axis", "p"]),
];

/// What log-probabilities say against classes: of each, or their sum, or their mean by weight.
fn loss(n: &mut Node, x: &Tensor) -> Result<(), No> {
    let target = n.tensor(1)?;
    let mut args = format!("{}, {}", x.text, target.text);
    if let Some(weight) = n.optional(2)? {
        args.push_str(&format!(", weight={}", weight.text));
    }
    if n.attribute("ignore_index").is_some() {
        args.push_str(&format!(", ignore={}", n.int("ignore_index", 0)));
    }
    let call = n.library(&format!("nll({args})"));
    let both = n.bound(&call, 0, x.dtype)?.text;
    match &*n.text("reduction", "mean") {
        "none" => n.give(&format!("{both}[0]"), target.rank, x.dtype),
        "sum" => n.give(&format!("op.sum({both}[0])"), 0, x.dtype),
        _ => n.give(&format!("op.sum({both}[0]) / op.sum({both}[1])"), 0, x.dtype),
    }
}

fn softmax(n: &mut Node, name: &str) -> Result<(), No> {
    let x = n.tensor(0)?;
    // Before version 13 the dims from the axis on are one.
    let old = n.body.opset < 13;
    let axis = x.axis(n.int("axis", if old { 1 } else { -1 }))?;
    if !old || axis + 1 == x.rank {
        return n.give(&format!("op.{name}({}, axis={axis})", x.text), x.rank, x.dtype);
    }
    let dims = x.dims();
    let front = dims.iter().take(axis).try_fold(Int::Known(1), |n, d| n.mul(d)).ok_or("its size is too large")?;
    let flat = format!("op.{name}({}.reshape({}, -1), axis=1)", x.text, front.text());
    n.give(&format!("{flat}.reshape({})", tuple(&dims)), x.rank, x.dtype)
}

/// The dtype that a norm computes in, beside that of its argument.
///
/// Narrow floats are widened to f32 where the standard asks for it; what is asked to be narrower than the
/// argument stays as it is, which is nearer to the truth.
fn stash(n: &Node, x: &Tensor) -> Result<DType, No> {
    match (n.int("stash_type", 1), x.dtype) {
        (1, DType::F16 | DType::Bf16) => Ok(DType::F32),
        (1, d) => Ok(d),
        (other, d) if onnx::dtype(other) == Ok(d) => Ok(d),
        _ => n.refuses("stash_type", &format!("1 (f32) is supported, and the dtype of the argument, {}", x.dtype)),
    }
}

/// A tensor in another dtype.
fn widened(n: &mut Node, t: &Tensor, dtype: DType) -> Result<Tensor, No> {
    if t.dtype == dtype {
        return Ok(t.clone());
    }
    let wide = n.bound(&format!("{}.to({dtype})", t.text), t.rank, dtype)?;
    Ok(Tensor { known: t.known.clone(), ..wide })
}

/// Over the dims from an axis to the last.
pub fn trailing(n: &mut Node, name: &str) -> Result<(), No> {
    let given = n.tensor(0)?;
    let stash = stash(n, &given)?;
    let x = widened(n, &given, stash)?;
    let axis = x.axis(n.int("axis", -1))?;
    let axes = axes_text(&(axis..x.rank).collect::<Vec<_>>());
    let eps = n.literal("epsilon", 1e-5, x.dtype);
    // The statistics are f32 by the standard, in which a wider argument is not computed here.
    let kept = |text: String| if x.dtype == DType::F64 { format!("({text}).to(f32)") } else { text };
    let dtype = if x.dtype == DType::F64 { DType::F32 } else { x.dtype };
    if n.wants(1) {
        let mean = n.bound(&kept(format!("op.mean({}, axis={axes}, keepdims=True)", x.text)), x.rank, dtype)?;
        n.result(1, Value::Tensor(mean));
    }
    if n.wants(2) {
        let text = kept(format!("op.rsqrt(op.var({}, axis={axes}, keepdims=True) + {eps})", x.text));
        let spread = n.bound(&text, x.rank, dtype)?;
        n.result(2, Value::Tensor(spread));
    }
    let dims: Vec<Int> = (axis..x.rank).map(|i| x.dim(i)).collect();
    let (scale, bias) = (n.tensor(1)?, n.optional(2)?);
    let whole = |t: &Tensor| dims.iter().zip(t.dims()).all(|(d, own)| d.equals(&own) != Some(false));
    let fits = |t: &Tensor| t.rank == dims.len() && t.dtype == given.dtype && whole(t);
    if x.dtype == given.dtype && fits(&scale) && bias.as_ref().is_none_or(fits) {
        let bias = bias.map_or(String::new(), |b| format!(", bias={}", b.text));
        let text = format!("op.{name}({}, {}, weight={}{bias}, eps={eps})", x.text, tuple(&dims), scale.text);
        return n.give(&text, x.rank, x.dtype);
    }
    let plain = n.bound(&format!("op.{name}({}, {}, eps={eps})", x.text, tuple(&dims)), x.rank, x.dtype)?;
    // A result has the dtype of the scale, which for the first of both norms is that of the argument.
    let mut text = widened(n, &plain, scale.dtype)?.text;
    text = format!("{text} * {}", scale.text);
    if let Some(bias) = bias {
        text.push_str(&format!(" + {}", bias.text));
    }
    n.give(&text, x.rank, scale.dtype)
}

fn groups(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    let groups = n.int("num_groups", 1);
    let flat = format!("{}.reshape({}, {groups}, -1)", x.text, x.dim(0).text());
    let flat = n.bound(&flat, 3, x.dtype)?;
    let stash = stash(n, &x)?;
    let wide = widened(n, &flat, stash)?;
    let y = standard(n, &wide, "2")?;
    let mut y = widened(n, &y, x.dtype)?.text;
    let whole = tuple(&x.dims());
    // Before version 21 weights are those of groups.
    if n.schema.since < 21 {
        let (scale, bias) = (n.tensor(1)?, n.tensor(2)?);
        y = format!("({y} * {}.reshape(-1, 1) + {}.reshape(-1, 1))", scale.text, bias.text);
        return n.give(&format!("{y}.reshape({whole})"), x.rank, x.dtype);
    }
    let y = n.bound(&format!("{y}.reshape({whole})"), x.rank, x.dtype)?;
    scaled(n, y, &x)
}

fn batch(n: &mut Node) -> Result<(), No> {
    let old = n.schema.attribute("training_mode").is_none();
    if old {
        n.only_one_result()?;
    }
    if n.schema.attribute("is_test").is_some() && n.int("is_test", 0) == 0 {
        return n.refuses("is_test", "statistics are those of a batch, as in training");
    }
    let all = (0..5).map(|i| n.tensor(i)).collect::<Result<Vec<_>, No>>()?;
    let [x, _, _, mean, var] = all.as_slice() else { return Err("it lacks arguments".into()) };
    if n.int("spatial", 1) == 0 && x.rank != 2 {
        return n.refuses("spatial", "one mean for each channel is supported");
    }
    let training = n.int("training_mode", 0) != 0;
    if !training {
        n.only_one_result()?;
    }
    // Mixed dtypes meet in the widest of them.
    let widest = all.iter().map(|t| t.dtype).max_by_key(|d| d.bytes()).unwrap_or(x.dtype);
    let all = all.iter().map(|t| widened(n, t, widest)).collect::<Result<Vec<_>, No>>()?;
    let [wide, scale, bias, old_mean, old_var] = all.as_slice() else { return Err("it lacks arguments".into()) };
    let (mut mean_text, mut var_text) = (old_mean.text.clone(), old_var.text.clone());
    if training {
        let axes = axes_text(&(0..x.rank).filter(|i| *i != 1).collect::<Vec<_>>());
        mean_text = n.bound(&format!("op.mean({}, axis={axes})", wide.text), 1, widest)?.text;
        var_text = n.bound(&format!("op.var({}, axis={axes})", wide.text), 1, widest)?.text;
        let keep = n.literal("momentum", 0.9, widest);
        for (i, (old, now, dtype)) in
            [(old_mean, &mean_text, mean.dtype), (old_var, &var_text, var.dtype)].into_iter().enumerate()
        {
            let text = format!("({} * {keep} + {now} * (1.0 - {keep})).to({dtype})", old.text);
            let running = n.bound(&text, 1, dtype)?;
            n.result(i + 1, Value::Tensor(running));
        }
    }
    let eps = n.literal("epsilon", 1e-5, widest);
    let weights = format!("weight={}, bias={}", scale.text, bias.text);
    let y = format!("op.batch_norm({}, {mean_text}, {var_text}, {weights}, eps={eps})", wide.text);
    let y = if widest == x.dtype { y } else { format!("{y}.to({})", x.dtype) };
    n.give(&y, x.rank, x.dtype)
}

/// With mean 0 and variance 1 over the axes.
fn standard(n: &mut Node, x: &Tensor, axes: &str) -> Result<Tensor, No> {
    let eps = n.literal("epsilon", 1e-5, x.dtype);
    let t = &x.text;
    let from = n.bound(&format!("{t} - op.mean({t}, axis={axes}, keepdims=True)"), x.rank, x.dtype)?;
    n.bound(&format!("{} / op.sqrt(op.var({t}, axis={axes}, keepdims=True) + {eps})", from.text), x.rank, x.dtype)
}

/// With the weights and biases of channels, arguments 1 and 2.
fn scaled(n: &mut Node, y: Tensor, x: &Tensor) -> Result<(), No> {
    let (scale, bias) = (n.tensor(1)?, n.tensor(2)?);
    let ones = ", 1".repeat(x.rank.saturating_sub(2));
    let text = format!("{} * {}.reshape(-1{ones}) + {}.reshape(-1{ones})", y.text, scale.text, bias.text);
    n.give(&text, x.rank, x.dtype)
}

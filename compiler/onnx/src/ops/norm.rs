//! Norms and softmax.

use super::Row;
use crate::node::{No, Node, axes_text};
use crate::value::{Int, Tensor, Value, literal, tuple};
use tessera_base::DType;

pub const ROWS: &[Row] = &[
    ("Softmax", |n| softmax(n, "softmax")),
    ("LogSoftmax", |n| softmax(n, "log_softmax")),
    ("LayerNormalization", |n| trailing(n, "layer_norm")),
    ("RMSNormalization", |n| trailing(n, "rms_norm")),
    ("BatchNormalization", batch),
    ("InstanceNormalization", |n| {
        let x = n.tensor(0)?;
        let axes: Vec<usize> = (2..x.rank).collect();
        let y = standard(n, &x, &axes_text(&axes))?;
        scaled(n, y, &x)
    }),
    ("GroupNormalization", |n| {
        let x = n.tensor(0)?;
        let groups = n.int("num_groups", 1);
        if n.body.opset < 21 {
            return Err("before version 21 it has weights for each group".into());
        }
        let flat = format!("{}.reshape({}, {groups}, -1)", x.text, x.dim(0).text());
        let flat = n.bound(&flat, 3, x.dtype)?;
        let y = standard(n, &flat, "2")?;
        let y = n.bound(&format!("{}.reshape({})", y.text, tuple(&x.dims())), x.rank, x.dtype)?;
        scaled(n, y, &x)
    }),
    ("LpNormalization", |n| {
        let x = n.tensor(0)?;
        let axis = x.axis(n.int("axis", -1))?;
        let size = match n.int("p", 2) {
            1 => format!("op.sum(op.abs({}), axis={axis}, keepdims=True)", x.text),
            _ => format!("op.sqrt(op.sum(op.square({}), axis={axis}, keepdims=True))", x.text),
        };
        let size = n.bound(&size, x.rank, x.dtype)?.text;
        n.give(&format!("op.where({size} == 0.0, 0.0, {} / {size})", x.text), x.rank, x.dtype)
    }),
];

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

/// Over the dims from an axis to the last.
fn trailing(n: &mut Node, name: &str) -> Result<(), No> {
    let x = n.tensor(0)?;
    let axis = x.axis(n.int("axis", -1))?;
    let axes = axes_text(&(axis..x.rank).collect::<Vec<_>>());
    let eps = literal(n.float("epsilon", 1e-5), DType::F32);
    if n.wants(1) {
        let mean = n.bound(&format!("op.mean({}, axis={axes}, keepdims=True)", x.text), x.rank, x.dtype)?;
        n.result(1, Value::Tensor(mean));
    }
    if n.wants(2) {
        let text = format!("op.rsqrt(op.var({}, axis={axes}, keepdims=True) + {eps})", x.text);
        let spread = n.bound(&text, x.rank, x.dtype)?;
        n.result(2, Value::Tensor(spread));
    }
    let dims: Vec<Int> = (axis..x.rank).map(|i| x.dim(i)).collect();
    let mut text = format!("op.{name}({}, {}", x.text, tuple(&dims));
    for (i, param) in [(1, "weight"), (2, "bias")] {
        if let Some(t) = n.optional(i)? {
            text.push_str(&format!(", {param}={}", t.text));
        }
    }
    text.push_str(&format!(", eps={eps})"));
    n.give(&text, x.rank, x.dtype)
}

fn batch(n: &mut Node) -> Result<(), No> {
    n.only_one_result()?;
    let all = (0..5).map(|i| n.tensor(i)).collect::<Result<Vec<_>, No>>()?;
    let [x, scale, bias, mean, var] = all.as_slice() else { return Err("it lacks arguments".into()) };
    let eps = literal(n.float("epsilon", 1e-5), DType::F32);
    let (mean, var, scale, bias) = (&mean.text, &var.text, &scale.text, &bias.text);
    n.give(
        &format!("op.batch_norm({}, {mean}, {var}, weight={scale}, bias={bias}, eps={eps})", x.text),
        x.rank,
        x.dtype,
    )
}

/// With mean 0 and variance 1 over the axes.
fn standard(n: &mut Node, x: &Tensor, axes: &str) -> Result<Tensor, No> {
    let eps = literal(n.float("epsilon", 1e-5), DType::F32);
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

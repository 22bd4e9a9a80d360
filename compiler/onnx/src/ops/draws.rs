//! Random numbers: by the seed of the node, and without one by its place among those that draw. A call draws the same
//! numbers as the one before.

use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Int, tuple};
use tessera_base::DType;
use tessera_runtime::io::onnx;
use tessera_runtime::io::onnx::Attribute;

pub const ROWS: &[Row] = &[
    row("RandomNormal", |n| shaped(n, normal)).honours(&["dtype", "mean", "scale", "seed", "shape"]),
    row("RandomNormalLike", |n| like(n, normal)).honours(&["dtype", "mean", "scale", "seed"]),
    row("RandomUniform", |n| shaped(n, uniform)).honours(&["dtype", "high", "low", "seed", "shape"]),
    row("RandomUniformLike", |n| like(n, uniform)).honours(&["dtype", "high", "low", "seed"]),
    row("Bernoulli", |n| {
        let x = n.tensor(0)?;
        let dtype = asked(n, x.dtype)?;
        let key = key(n)?;
        n.give(&format!("random.bernoulli({key}, {}).to({dtype})", x.text), x.rank, dtype)
    })
    .honours(&["dtype", "seed"]),
    row("Multinomial", |n| {
        let x = n.tensor(0)?;
        if x.rank != 2 {
            return Err(format!("its argument has {} dims and not 2", x.rank));
        }
        let (count, dtype) = (n.int("sample_size", 1), asked(n, DType::I32)?);
        if count < 1 {
            return n.refuses("sample_size", "at least one is drawn");
        }
        let (key, rows) = (key(n)?, x.dim(0).text());
        // A draw for each place of a dim that the logits do not have.
        let text = format!("random.categorical({key}, op.expand_dims({}, 1), shape=({rows}, {count}))", x.text);
        n.give(&format!("{text}.to({dtype})"), 2, dtype)
    })
    .honours(&["dtype", "sample_size", "seed"]),
];

/// The key of a node.
fn key(n: &mut Node) -> Result<String, No> {
    if n.body.loops > 0 {
        return Err("it draws in a loop, whose turns would all draw the same numbers".into());
    }
    n.body.draws += 1;
    Ok(match n.attribute("seed") {
        Some(Attribute::Float(seed)) => format!("random.key({})", seed.to_bits()),
        _ => format!("random.fold_in(random.key(0), {})", n.body.draws),
    })
}

/// The dtype that a node asks for.
fn asked(n: &Node, otherwise: DType) -> Result<DType, No> {
    match n.attribute("dtype") {
        Some(Attribute::Int(kind)) => onnx::dtype(*kind).map_err(|why| format!("its attribute `dtype`: {why}")),
        _ => Ok(otherwise),
    }
}

type Draw = fn(&Node, key: &str, shape: &str, dtype: DType) -> String;

fn normal(n: &Node, key: &str, shape: &str, dtype: DType) -> String {
    let (mean, scale) = (n.literal("mean", 0.0, dtype), n.literal("scale", 1.0, dtype));
    format!("random.normal({key}, {shape}, dtype={dtype}) * {scale} + {mean}")
}

fn uniform(n: &Node, key: &str, shape: &str, dtype: DType) -> String {
    let (low, high) = (n.literal("low", 0.0, dtype), n.literal("high", 1.0, dtype));
    format!("random.uniform({key}, {shape}, low={low}, high={high}, dtype={dtype})")
}

fn shaped(n: &mut Node, draw: Draw) -> Result<(), No> {
    let shape = n.list("shape").ok_or("it has no shape")?;
    if shape.iter().any(|d| *d < 0) {
        return n.refuses("shape", "no size is negative");
    }
    let (dtype, key) = (floats(n, DType::F32)?, key(n)?);
    let dims: Vec<Int> = shape.into_iter().map(Int::Known).collect();
    let text = draw(n, &key, &tuple(&dims), dtype);
    n.give(&text, dims.len(), dtype)
}

fn like(n: &mut Node, draw: Draw) -> Result<(), No> {
    let x = n.tensor(0)?;
    let (dtype, key) = (floats(n, x.dtype)?, key(n)?);
    let text = draw(n, &key, &tuple(&x.dims()), dtype);
    n.give(&text, x.rank, dtype)
}

/// The same of a node that draws floats.
fn floats(n: &Node, otherwise: DType) -> Result<DType, No> {
    let dtype = asked(n, otherwise)?;
    if !dtype.is_float() {
        return n.refuses("dtype", "it draws floats");
    }
    Ok(dtype)
}

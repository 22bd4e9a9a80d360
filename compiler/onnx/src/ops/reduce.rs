//! Over whole dims.

use super::Row;
use super::elementwise::filled;
use crate::node::{No, Node, axes_text};
use crate::value::{Int, Ints, Tensor};
use tessera_base::DType;

pub const ROWS: &[Row] = &[
    ("ReduceSum", |n| reduce(n, "x", "sum", "x")),
    ("ReduceMean", |n| reduce(n, "x", "mean", "x")),
    ("ReduceMax", |n| reduce(n, "x", "max", "x")),
    ("ReduceMin", |n| reduce(n, "x", "min", "x")),
    ("ReduceProd", product),
    ("ReduceL1", |n| reduce(n, "op.abs(x)", "sum", "x")),
    ("ReduceL2", |n| reduce(n, "op.square(x)", "sum", "op.sqrt(x)")),
    ("ReduceSumSquare", |n| reduce(n, "op.square(x)", "sum", "x")),
    ("ReduceLogSum", |n| reduce(n, "x", "sum", "op.log(x)")),
    ("ReduceLogSumExp", |n| reduce(n, "x", "logsumexp", "x")),
    ("GlobalAveragePool", |n| spatial(n, "op.mean")),
    ("GlobalMaxPool", |n| spatial(n, "op.max")),
    ("ArgMax", |n| place(n, "argmax")),
    ("ArgMin", |n| place(n, "argmin")),
    ("CumSum", running),
];

/// The axes that a node reduces; all where it names none.
fn axes(n: &Node, x: &Tensor) -> Result<Vec<usize>, No> {
    match n.list_or("axes", 1)? {
        Some(list) if !list.is_empty() => list.iter().map(|a| x.axis(*a)).collect(),
        _ if n.int("noop_with_empty_axes", 0) != 0 => Ok(vec![]),
        _ => Ok((0..x.rank).collect()),
    }
}

/// What is reduced, the operator that does it, and what is made of the result.
fn reduce(n: &mut Node, of: &str, name: &str, then: &str) -> Result<(), No> {
    let x = n.tensor(0)?;
    let axes = axes(n, &x)?;
    let of = filled(of, &x.text, "");
    if axes.is_empty() && x.rank > 0 {
        return n.give(&filled(then, &of, ""), x.rank, x.dtype);
    }
    let (args, rank) = match (axes.is_empty(), n.int("keepdims", 1) != 0) {
        (true, _) => (String::new(), 0),
        (false, true) => (format!(", axis={}, keepdims=True", axes_text(&axes)), x.rank),
        (false, false) => (format!(", axis={}", axes_text(&axes)), x.rank - axes.len()),
    };
    let text = filled(then, &format!("op.{name}({of}{args})"), "");
    // Sums of narrow ints are wide.
    let narrow = name == "sum" && x.dtype.is_int() && x.dtype != DType::I64;
    let text = if narrow { format!("{text}.to({})", x.dtype) } else { text };
    n.give(&text, rank, x.dtype)
}

fn product(n: &mut Node) -> Result<(), No> {
    if let Some(ints) = n.value(0)?.ints()
        && let Some(all) = ints.elems.iter().try_fold(Int::Known(1), |all, e| all.mul(e))
    {
        let scalar = n.int("keepdims", 1) == 0;
        return n.give_ints(Ints { elems: vec![all], scalar, dtype: ints.dtype });
    }
    let x = n.tensor(0)?;
    let axes = axes(n, &x)?;
    let keep = n.int("keepdims", 1) != 0;
    let mut out = x.clone();
    // From the last one on, so that the others keep their places.
    for axis in axes.iter().rev() {
        let keeps = if keep { ", keepdims=True" } else { "" };
        let rank = if keep { out.rank } else { out.rank - 1 };
        out = n.bound(&format!("op.prod({}, axis={axis}{keeps})", out.text), rank, out.dtype)?;
    }
    n.give(&out.text.clone(), out.rank, out.dtype)
}

fn spatial(n: &mut Node, name: &str) -> Result<(), No> {
    let x = n.tensor(0)?;
    if x.rank < 3 {
        return Err(format!("its argument has {} dims", x.rank));
    }
    let axes: Vec<usize> = (2..x.rank).collect();
    n.give(&format!("{name}({}, axis={}, keepdims=True)", x.text, axes_text(&axes)), x.rank, x.dtype)
}

fn place(n: &mut Node, name: &str) -> Result<(), No> {
    let x = n.tensor(0)?;
    let axis = x.axis(n.int("axis", 0))?;
    let (keep, rank) = if n.int("keepdims", 1) != 0 { ("True", x.rank) } else { ("False", x.rank - 1) };
    let place = |of: &str| format!("op.{name}({of}, axis={axis}, keepdims={keep})");
    // The last of equal elements is the first from the end.
    let text = match n.int("select_last_index", 0) {
        0 => place(&x.text),
        _ => format!("({} - 1) - {}", x.dim(axis).text(), place(&format!("op.flip({}, axis={axis})", x.text))),
    };
    n.give(&text, rank, DType::I64)
}

fn running(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    let axis = n.known(1)?.first().copied().ok_or("it names no axis")?;
    let axis = x.axis(axis)?;
    let flip = |t: String| if n.int("reverse", 0) != 0 { format!("op.flip({t}, axis={axis})") } else { t };
    let mut text = flip(format!("op.cumsum({}, axis={axis})", flip(x.text.clone())));
    if n.int("exclusive", 0) != 0 {
        text = format!("{text} - {}", x.text);
    }
    let text = if x.dtype == DType::I32 { format!("({text}).to(i32)") } else { text };
    n.give(&text, x.rank, x.dtype)
}

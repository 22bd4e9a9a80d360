//! Over whole dims.

use super::elementwise::{filled, same};
use super::{Row, row};
use crate::node::{No, Node, axes_text};
use crate::value::{Int, Ints, Tensor, Value, tuple};
use tessera_base::DType;
use tessera_runtime::io::onnx::Attribute;

const REDUCED: &[&str] = &["axes", "keepdims", "noop_with_empty_axes"];

pub const ROWS: &[Row] = &[
    row("ReduceSum", |n| reduce(n, "x", "sum", "x")).honours(REDUCED),
    row("ReduceMean", mean).honours(REDUCED),
    row("ReduceMax", |n| reduce(n, "x", "max", "x")).honours(REDUCED),
    row("ReduceMin", |n| reduce(n, "x", "min", "x")).honours(REDUCED),
    row("ReduceProd", product).honours(REDUCED),
    row("ReduceL1", |n| reduce(n, "op.abs(x)", "sum", "x")).honours(REDUCED),
    row("ReduceL2", |n| reduce(n, "op.square(x)", "sum", "op.sqrt(x)")).honours(REDUCED),
    row("ReduceSumSquare", |n| reduce(n, "op.square(x)", "sum", "x")).honours(REDUCED),
    row("ReduceLogSum", |n| reduce(n, "x", "sum", "op.log(x)")).honours(REDUCED),
    row("ReduceLogSumExp", |n| reduce(n, "x", "logsumexp", "x")).honours(REDUCED),
    row("GlobalAveragePool", |n| spatial(n, "op.mean")),
    row("GlobalMaxPool", |n| spatial(n, "op.max")),
    row("ArgMax", |n| arg_reduce(n, "argmax")).honours(&["axis", "keepdims", "select_last_index"]),
    row("ArgMin", |n| arg_reduce(n, "argmin")).honours(&["axis", "keepdims", "select_last_index"]),
    row("CumSum", |n| running(n, "cumsum")).honours(&["exclusive", "reverse"]),
    row("CumProd", |n| running(n, "cumprod")).honours(&["exclusive", "reverse"]),
    row("GlobalLpPool", |n| {
        let (x, p) = (n.tensor(0)?, power(n));
        let axes: Vec<usize> = (2..x.rank).collect();
        let sum = format!("op.sum(op.abs({}) ** {p:?}, axis={}, keepdims=True)", x.text, axes_text(&axes));
        n.give(&format!("{sum} ** (1.0 / {p:?})"), x.rank, x.dtype)
    })
    .honours(&["p"]),
];

/// The axes that a node reduces, ascending; all where it names none.
fn axes(n: &Node, x: &Tensor) -> Result<Vec<usize>, No> {
    match n.list_or("axes", 1)? {
        Some(list) if !list.is_empty() => {
            let mut axes = list.iter().map(|a| x.axis(*a)).collect::<Result<Vec<_>, No>>()?;
            axes.sort_unstable();
            match axes.windows(2).any(|w| w[0] == w[1]) {
                true => Err(format!("it names an axis twice: {list:?}")),
                false => Ok(axes),
            }
        }
        _ if n.int("noop_with_empty_axes", 0) != 0 => Ok(vec![]),
        _ => Ok((0..x.rank).collect()),
    }
}

/// The arguments that say what is reduced, and the rank of the result.
fn reduced(n: &Node, x: &Tensor, axes: &[usize]) -> (String, usize) {
    match (axes.is_empty(), n.int("keepdims", 1) != 0) {
        (true, _) => (String::new(), 0),
        (false, true) => (format!(", axis={}, keepdims=True", axes_text(axes)), x.rank),
        (false, false) => (format!(", axis={}", axes_text(axes)), x.rank - axes.len()),
    }
}

/// What is reduced, the operator that does it, and what is made of the result.
fn reduce(n: &mut Node, of: &str, name: &str, then: &str) -> Result<(), No> {
    let x = n.tensor(0)?;
    let axes = axes(n, &x)?;
    // Roots and logarithms of ints are those of f64, without their fraction.
    let real = x.dtype.is_int() && (then != "x" || name == "logsumexp");
    let own = if real { n.bound(&format!("{}.to(f64)", x.text), x.rank, DType::F64)?.text } else { x.text.clone() };
    let of = filled(of, &own, "");
    let (mut text, mut rank) = (of.clone(), x.rank);
    if !axes.is_empty() || x.rank == 0 {
        let args;
        (args, rank) = reduced(n, &x, &axes);
        text = format!("op.{name}({of}{args})");
        if let (Some(nothing), false) = (of_nothing(name, &x), real) {
            text = where_some(n, &x, &axes, &text, &nothing);
        }
    }
    let text = filled(then, &text, "");
    n.give(&if x.dtype.is_int() { format!("({text}).to({})", x.dtype) } else { text }, rank, x.dtype)
}

/// The largest, smallest, or sum of powers of no elements, of which no operator here gives one.
fn of_nothing(name: &str, x: &Tensor) -> Option<String> {
    let least = match name {
        "max" | "logsumexp" => true,
        "min" => false,
        _ => return None,
    };
    let (low, high) = match (x.held.range(), x.dtype) {
        (Some(range), _) => range,
        (None, DType::Bool) => return Some(if least { "False" } else { "True" }.into()),
        (None, DType::U8) => (0, 255),
        (None, DType::I8) => (i8::MIN.into(), i8::MAX.into()),
        (None, DType::I16) => (i16::MIN.into(), i16::MAX.into()),
        (None, DType::I32) => (i32::MIN.into(), i32::MAX.into()),
        (None, DType::I64) => (i64::MIN, i64::MAX),
        _ => return Some(if least { "-math.inf" } else { "math.inf" }.into()),
    };
    Some(if least { low } else { high }.to_string())
}

/// What is reduced where there is something, else this: decided for the sizes of each call.
fn where_some(n: &Node, x: &Tensor, axes: &[usize], text: &str, nothing: &str) -> String {
    let open: Vec<Int> = axes.iter().map(|a| x.dim(*a)).filter(|d| d.known().is_none_or(|n| n == 0)).collect();
    if open.is_empty() {
        return text.into();
    }
    let keeps = n.int("keepdims", 1) != 0;
    let left = |i: usize| match axes.contains(&i) {
        true => keeps.then_some(Int::Known(1)),
        false => Some(x.dim(i)),
    };
    let shape = tuple(&(0..x.rank).filter_map(left).collect::<Vec<_>>());
    let some: Vec<String> = open.iter().map(|d| format!("{} > 0", d.text())).collect();
    format!("{text} if {} else op.full({shape}, {nothing}, dtype={})", some.join(" and "), x.dtype)
}

/// The mean of ints is an int: without its fraction.
fn mean(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    if !x.dtype.is_int() {
        return reduce(n, "x", "mean", "x");
    }
    let axes = axes(n, &x)?;
    if axes.is_empty() && x.rank > 0 {
        return same(n);
    }
    let (args, rank) = reduced(n, &x, &axes);
    let count = axes.iter().try_fold(Int::Known(1), |all, a| all.mul(&x.dim(*a))).ok_or("its size is too large")?;
    let sum = format!("op.sum({}.to(i64){args})", x.text);
    let text = n.library(&format!("divide({sum}, op.full((), {}, dtype=i64))", count.text()));
    n.give(&format!("{text}.to({})", x.dtype), rank, x.dtype)
}

fn product(n: &mut Node) -> Result<(), No> {
    if let Some(ints) = n.value(0)?.ints()
        && let Some(all) = ints.elems.iter().try_fold(Int::Known(1), |all, e| all.mul(e))
        && all.known().is_none_or(|k| ints.dtype == DType::I64 || i32::try_from(k).is_ok())
    {
        let shape = Tensor::new("", usize::from(!ints.scalar), ints.dtype);
        if axes(n, &shape)?.is_empty() && !ints.scalar {
            return same(n);
        }
        let scalar = ints.scalar || n.int("keepdims", 1) == 0;
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
        let text = format!("op.prod({}, axis={axis}{keeps})", out.text);
        // Products of narrow ints are wide.
        let text = if x.dtype.is_int() { format!("{text}.to({})", x.dtype) } else { text };
        out = n.bound(&text, rank, x.dtype)?;
    }
    n.result(0, Value::Tensor(out));
    Ok(())
}

fn spatial(n: &mut Node, name: &str) -> Result<(), No> {
    let x = n.tensor(0)?;
    if x.rank < 3 {
        return Err(format!("its argument has {} dims", x.rank));
    }
    let axes: Vec<usize> = (2..x.rank).collect();
    n.give(&format!("{name}({}, axis={}, keepdims=True)", x.text, axes_text(&axes)), x.rank, x.dtype)
}

fn arg_reduce(n: &mut Node, name: &str) -> Result<(), No> {
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

/// The power of a norm: in the first version it is a float.
pub fn power(n: &Node) -> f64 {
    match n.attribute("p") {
        Some(Attribute::Float(p)) => f64::from(*p),
        _ => n.int("p", 2) as f64,
    }
}

fn running(n: &mut Node, name: &str) -> Result<(), No> {
    let x = n.tensor(0)?;
    let axis = n.known(1)?.first().copied().ok_or("it names no axis")?;
    let axis = x.axis(axis)?;
    let flip = |t: String| if n.int("reverse", 0) != 0 { format!("op.flip({t}, axis={axis})") } else { t };
    let mut text = format!("op.{name}({}, axis={axis})", flip(x.text.clone()));
    if n.int("exclusive", 0) != 0 {
        // Each place has the sum before it: a sum less its last element would be rounded, or infinity less infinity.
        let pads: Vec<&str> = (0..x.rank).map(|i| if i == axis { "(1, 0)" } else { "(0, 0)" }).collect();
        let first = if name == "cumprod" { ", value=1" } else { "" };
        text = format!("op.pad({text}, ({},){first})[{}:-1]", pads.join(", "), ":, ".repeat(axis));
    }
    let text = flip(text);
    n.give(&if x.dtype.is_int() { format!("{text}.to({})", x.dtype) } else { text }, x.rank, x.dtype)
}

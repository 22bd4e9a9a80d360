//! Elements at places that rows of positions name, read and written.

use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Tensor, Value};
use tessera_runtime::io::onnx::Dim;

pub const ROWS: &[Row] = &[
    row("GatherND", gather).honours(&["batch_dims"]),
    row("ScatterND", |n| {
        let how = reduction(n)?;
        let (x, at, src) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
        let named = named(n, &at)?;
        if named == 0 || named > x.rank {
            return Err(format!("its positions name {named} dims of {}", x.rank));
        }
        let call = n.library(&format!("scatter_nd({}, {}, {}, {named}, how=\"{how}\")", x.text, at.text, src.text));
        n.give(&call, x.rank, x.dtype)
    })
    .honours(&["reduction"]),
    row("ScatterElements", elements).honours(&["axis", "reduction"]),
    row("Scatter", elements).honours(&["axis"]),
    row("TensorScatter", |n| {
        let (past, update) = (n.tensor(0)?, n.tensor(1)?);
        let axis = past.axis(n.int("axis", -2))?;
        if axis == 0 {
            return n.refuses("axis", "the first dim is one of sequences");
        }
        let at = match n.optional(2)? {
            Some(t) => t.text,
            None => format!("op.zeros(({},), dtype=i64)", past.dim(0).text()),
        };
        let circular = if n.text("mode", "linear") == "circular" { ", circular=True" } else { "" };
        let call = n.library(&format!("tensor_scatter({}, {}, {at}, {axis}{circular})", past.text, update.text));
        n.give(&call, past.rank, past.dtype)
    })
    .honours(&["axis", "mode"]),
    row("ReverseSequence", |n| {
        let (x, lengths) = (n.tensor(0)?, n.tensor(1)?);
        let (time, batch) = (x.axis(n.int("time_axis", 0))?, x.axis(n.int("batch_axis", 1))?);
        if time + batch != 1 {
            return n.refuses("time_axis", "time and batch are the first two dims");
        }
        let turned = |text: &str| if time == 0 { format!("op.swapaxes({text}, 0, 1)") } else { text.to_owned() };
        let call = n.library(&format!("reverse_sequence({}, {})", turned(&x.text), lengths.text));
        n.give(&turned(&call), x.rank, x.dtype)
    })
    .honours(&["batch_axis", "time_axis"]),
];

/// How many dims a row of positions names: the last size of the positions, which decides the rank of the result.
fn named(n: &mut Node, at: &Tensor) -> Result<usize, No> {
    let last = at.rank.checked_sub(1).ok_or("its positions are a number")?;
    if let Some(size) = at.dim(last).known().and_then(|d| usize::try_from(d).ok()) {
        return Ok(size);
    }
    let told = n.node.inputs.get(1).and_then(|name| n.body.told.get(name)).and_then(|dims| dims.last());
    let Some(Dim::Size(size)) = told else {
        return Err("how many dims its positions name depends on sizes".into());
    };
    let size = usize::try_from(*size).map_err(|_| "its positions have a negative size")?;
    // What the file tells is compared with what is there.
    n.body.lines.push(format!("assert {}.shape[{last}] == {size}, \"the file tells other sizes\"", at.text));
    Ok(size)
}

fn gather(n: &mut Node) -> Result<(), No> {
    let (x, at) = (n.tensor(0)?, n.tensor(1)?);
    let named = named(n, &at)?;
    let batch = usize::try_from(n.int("batch_dims", 0)).map_err(|_| "its `batch_dims` is negative")?;
    if batch + 1 > at.rank || batch + named > x.rank {
        return n.refuses("batch_dims", &format!("its arguments have {} and {} dims", x.rank, at.rank));
    }
    let rank = at.rank - 1 + x.rank - batch - named;
    // The dims of a batch are places of their own, along the dims of the positions.
    let own = (0..batch).map(|i| {
        let ones = ", 1".repeat(at.rank - 2 - i);
        format!("op.arange({}).reshape(-1{ones})", x.dim(i).text())
    });
    let columns = (0..named).map(|i| format!("{}[..., {i}]", at.text));
    let all: Vec<String> = own.chain(columns).collect();
    n.give(&format!("{}[{}]", x.text, all.join(", ")), rank, x.dtype)
}

/// What becomes of an element and what is written to its place.
fn reduction(n: &Node) -> Result<String, No> {
    let how = n.text("reduction", "none");
    match &*how {
        "none" | "add" | "mul" | "max" | "min" => Ok(how),
        _ => n.refuses("reduction", "it is not known"),
    }
}

fn elements(n: &mut Node) -> Result<(), No> {
    let how = reduction(n)?;
    let (x, at, src) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
    let axis = x.axis(n.int("axis", 0))?;
    let args = format!("{}, {axis}, {}, {}", x.text, at.text, src.text);
    let call = n.library(&format!("scatter_elements({args}, how=\"{how}\")"));
    let y = n.bound(&call, x.rank, x.dtype)?;
    n.result(0, Value::Tensor(y));
    Ok(())
}

//! The same elements in another form.

use super::elementwise::same;
use super::{Row, row};
use crate::node::{No, Node, axes_text, axis_in};
use crate::value::{Int, Ints, Tensor, Value, literal, positions, tuple};
use tessera_base::DType;
use tessera_runtime::io::onnx::Dim;

pub const ROWS: &[Row] = &[
    row("Reshape", reshape).honours(&["shape", "allowzero"]),
    row("Flatten", flatten).honours(&["axis"]),
    row("Transpose", transpose).honours(&["perm"]),
    row("Unsqueeze", unsqueeze).honours(&["axes"]),
    row("Squeeze", squeeze).honours(&["axes"]),
    row("Concat", concat).honours(&["axis"]),
    row("Split", split).honours(&["axis", "split", "num_outputs"]),
    row("Slice", slice).honours(&["axes", "ends", "starts"]),
    row("Expand", expand),
    row("Tile", |n| {
        if n.body.opset < 6 {
            return Err("before version 6 it repeats one dim, which is not supported".into());
        }
        let (x, reps) = (n.tensor(0)?, n.sizes(1)?);
        n.give(&format!("op.tile({}, {})", x.text, tuple(&reps)), x.rank, x.dtype)
    }),
    row("Pad", pad).honours(&["mode", "pads", "paddings", "value"]),
    row("DepthToSpace", depth_to_space).honours(&["blocksize", "mode"]),
    row("SpaceToDepth", |n| {
        let (x, b) = (n.tensor(0)?, Int::Known(n.int("blocksize", 1)));
        let [batch, c, h, w] = four(&x)?;
        let order = if n.text("mode", "DCR") == "CRD" { "0, 1, 3, 5, 2, 4" } else { "0, 3, 5, 1, 2, 4" };
        let div = |x: &Int| x.div(&b).ok_or("its block is 0");
        let (h, w) = (div(&h)?, div(&w)?);
        let parts = tuple(&[batch.clone(), c.clone(), h.clone(), b.clone(), w.clone(), b.clone()]);
        let deep = c.mul(&b).and_then(|n| n.mul(&b)).ok_or("its block is too large")?;
        let whole = tuple(&[batch, deep, h, w]);
        n.give(&format!("{}.reshape({parts}).transpose({order}).reshape({whole})", x.text), 4, x.dtype)
    })
    .honours(&["blocksize", "mode"]),
];

fn four(x: &Tensor) -> Result<[Int; 4], No> {
    x.dims().try_into().map_err(|_| format!("its argument has {} dims and not 4", x.rank))
}

fn reshape(n: &mut Node) -> Result<(), No> {
    let shape = match n.list("shape") {
        Some(list) => list.into_iter().map(Int::Known).collect(),
        None if n.schema.attribute("shape").is_some() => return n.refuses("shape", "it is what the node is about"),
        None => n.ints(1).or_else(|_| read_shape(n))?,
    };
    if let Some(ints) = n.value(0)?.ints() {
        // The same vector, or one int with or without its dim.
        let count = ints.elems.len() as i64;
        match shape.as_slice() {
            [] if count == 1 => return n.give_ints(Ints { scalar: true, ..ints }),
            [Int::Known(-1)] => return n.give_ints(Ints { scalar: false, ..ints }),
            [Int::Known(k)] if *k == count => return n.give_ints(Ints { scalar: false, ..ints }),
            _ => {}
        }
    }
    if let Some(done) = reshape_ints(n, &shape)? {
        n.result(0, done);
        return Ok(());
    }
    let x = n.tensor(0)?;
    let kept = n.int("allowzero", 0) == 0;
    let mut out = vec![];
    for (i, size) in shape.iter().enumerate() {
        out.push(match size {
            Int::Known(0) if kept && i < x.rank => x.dim(i),
            size => size.clone(),
        });
    }
    n.give(&format!("{}.reshape({})", x.text, tuple(&out)), out.len(), x.dtype)
}

/// A shape that depends on data: 0 and -1 mean then what they mean in one that is known.
fn read_shape(n: &mut Node) -> Result<Vec<Int>, No> {
    let (x, asked) = (n.tensor(0)?, n.sizes(1)?);
    let keeps = n.int("allowzero", 0) == 0;
    let mut own = vec![];
    for (i, size) in asked.iter().enumerate() {
        own.push(match keeps && i < x.rank {
            true => n.body.line(&format!("{0} if {1} == 0 else {1}", x.dim(i).text(), size.text()))?,
            false => size.text(),
        });
    }
    let count = x.dims().iter().try_fold(Int::Known(1), |all, d| all.mul(d)).ok_or("its size is too large")?;
    let mut out = vec![];
    for (i, size) in own.iter().enumerate() {
        let others: Vec<String> =
            own.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, s)| format!("max({s}, 1)")).collect();
        let others = if others.is_empty() { "1".into() } else { others.join(" * ") };
        out.push(Int::Other(n.body.line(&format!("{} // ({others}) if {size} < 0 else {size}", count.text()))?));
    }
    Ok(out)
}

/// Ints in rows, or rows of ints one after the other.
fn reshape_ints<'m>(n: &Node<'_, 'm>, shape: &[Int]) -> Result<Option<Value<'m>>, No> {
    Ok(match (n.value(0)?, shape) {
        (Value::Matrix(ints, _), [Int::Known(-1)]) => Some(Value::Ints(ints)),
        (Value::Ints(ints), [Int::Known(-1), Int::Known(columns @ 1..)]) => {
            let columns = usize::try_from(*columns).unwrap_or(usize::MAX);
            ints.elems.len().is_multiple_of(columns).then_some(Value::Matrix(ints, columns))
        }
        _ => None,
    })
}

/// The rows and columns of a matrix of ints that are asked for, in this order.
fn parts(ints: &Ints, columns: usize, rows: &[usize], cols: &[usize]) -> Ints {
    let places = rows.iter().flat_map(|r| cols.iter().map(move |c| r * columns + c));
    Ints { elems: places.filter_map(|at| ints.elems.get(at)).cloned().collect(), ..ints.clone() }
}

fn flatten(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    let axis = n.int("axis", 1);
    let at = if axis == x.rank as i64 { x.rank } else { x.axis(axis)? };
    let (front, back) = x.dims().split_at_checked(at).map(|(a, b)| (a.to_vec(), b.to_vec())).unwrap_or_default();
    let count = |dims: &[Int]| dims.iter().try_fold(Int::Known(1), |n, d| n.mul(d)).ok_or("its size is too large");
    let shape = tuple(&[count(&front)?, count(&back)?]);
    n.give(&format!("{}.reshape({shape})", x.text), 2, x.dtype)
}

fn transpose(n: &mut Node) -> Result<(), No> {
    if let Value::Matrix(ints, columns) = n.value(0)?
        && n.list("perm").is_none_or(|p| p == [1, 0])
    {
        let rows = ints.elems.len() / columns.max(1);
        let places = (0..columns).flat_map(|c| (0..rows).map(move |r| r * columns + c));
        let elems = places.filter_map(|at| ints.elems.get(at)).cloned().collect();
        n.result(0, Value::Matrix(Ints { elems, ..ints }, rows));
        return Ok(());
    }
    let x = n.tensor(0)?;
    let order = match n.list("perm") {
        Some(perm) => perm.iter().map(|p| x.axis(*p)).collect::<Result<Vec<_>, _>>()?,
        None => (0..x.rank).rev().collect(),
    };
    if order.len() != x.rank {
        return Err(format!("it orders {} dims of {}", order.len(), x.rank));
    }
    if order.iter().enumerate().all(|(i, o)| i == *o) {
        return same(n);
    }
    n.give(&format!("{}.transpose({})", x.text, axes_text(&order)), x.rank, x.dtype)
}

fn unsqueeze(n: &mut Node) -> Result<(), No> {
    let axes = n.list_or("axes", 1)?.ok_or("it names no axes")?;
    if let Some(ints) = n.value(0)?.ints()
        && ints.scalar
        && axes.len() == 1
    {
        return n.give_ints(Ints { scalar: false, ..ints });
    }
    let x = n.tensor(0)?;
    let rank = x.rank + axes.len();
    let mut axes = axes.iter().map(|a| axis_in(*a, rank)).collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    if axes.is_empty() {
        return same(n);
    }
    n.give(&format!("op.expand_dims({}, {})", x.text, axes_text(&axes)), rank, x.dtype)
}

fn squeeze(n: &mut Node) -> Result<(), No> {
    let axes = n.list_or("axes", 1)?;
    if let Some(ints) = n.value(0)?.ints()
        && ints.elems.len() == 1
    {
        return n.give_ints(Ints { scalar: true, ..ints });
    }
    let x = n.tensor(0)?;
    let axes = match axes {
        Some(axes) => axes,
        None => ones(n, &x).ok_or("it names no axes, and the file does not tell the sizes that decide its rank")?,
    };
    let axes = axes.iter().map(|a| x.axis(*a)).collect::<Result<Vec<_>, _>>()?;
    if axes.is_empty() {
        return same(n);
    }
    let rank = x.rank.saturating_sub(axes.len());
    // What a branch knows of a size is no type: its one element is taken.
    let told = |axis: &usize| n.body.assumed.contains(&format!("({} == 1)", x.dim(*axis).text()));
    if axes.iter().all(told) {
        let places: Vec<&str> = (0..x.rank).map(|i| if axes.contains(&i) { "0" } else { ":" }).collect();
        return n.give(&format!("{}[{}]", x.text, places.join(", ")), rank, x.dtype);
    }
    n.give(&format!("op.squeeze({}, {})", x.text, axes_text(&axes)), rank, x.dtype)
}

/// The dims of size 1 of an argument: by its own sizes, or by those that the file tells. What it tells is compared
/// with the argument by the operator that drops them.
fn ones(n: &Node, x: &Tensor) -> Option<Vec<i64>> {
    let own = (x.known.len() == x.rank && !x.known.contains(&-1)).then(|| x.known.clone());
    let sizes = own.or_else(|| {
        let told = n.body.told.get(n.node.inputs.first()?)?;
        // An open size is more than 1, as exporters mean it; the rank of the result says so once more.
        let size = |d: &Dim| if let Dim::Size(n) = d { *n } else { -1 };
        let sizes: Vec<i64> = told.iter().map(size).collect();
        let rank = n.node.outputs.first().and_then(|name| n.body.told.get(name)).map(|dims| dims.len());
        let left = sizes.iter().filter(|d| **d != 1).count();
        (sizes.len() == x.rank && rank.is_none_or(|r| r == left)).then_some(sizes)
    })?;
    Some((0..).zip(sizes).filter(|(_, d)| *d == 1).map(|(i, _)| i).collect())
}

fn concat(n: &mut Node) -> Result<(), No> {
    let values = (0..n.node.inputs.len()).map(|i| n.value(i)).collect::<Result<Vec<_>, No>>()?;
    // Beside what sizes are made of a constant of a few floats is a list too.
    let made = values.iter().any(|v| matches!(v, Value::Ints(ints) if ints.dtype.is_float()));
    let list = |v: &Value| if made { v.few_numbers() } else { v.ints() };
    let vectors: Option<Vec<Ints>> = values.iter().map(|v| list(v).filter(|v| !v.scalar)).collect();
    if let Some(vectors) = vectors
        && let Some(first) = vectors.first()
    {
        let dtype = first.dtype;
        let elems = vectors.into_iter().flat_map(|v| v.elems).collect();
        return n.give_ints(Ints { elems, scalar: false, dtype });
    }
    let all = (0..values.len()).map(|i| n.tensor(i)).collect::<Result<Vec<_>, No>>()?;
    let Some(first) = all.first() else { return Err("it has no argument".into()) };
    if all.len() == 1 {
        return same(n);
    }
    // The first version joins along dim 1 where it names none.
    let axis = first.axis(n.int("axis", 1))?;
    let texts: Vec<&str> = all.iter().map(|t| &*t.text).collect();
    n.give(&format!("op.concat([{}], axis={axis})", texts.join(", ")), first.rank, first.dtype)
}

fn split(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    if n.schema.since == 1 {
        if n.attribute("axis").is_none() {
            return n.refuses("axis", "the first version does not say which dim is meant");
        }
        if n.has(1) {
            return Err("sizes that are an argument are not supported in the first version".into());
        }
    }
    let axis = x.axis(n.int("axis", 0))?;
    let parts = n.node.outputs.len();
    if n.attribute("num_outputs").is_some() && n.int("num_outputs", 0) != parts as i64 {
        return n.refuses("num_outputs", &format!("it has {parts} results"));
    }
    let sizes: Option<Vec<Int>> = match n.list("split") {
        Some(list) => Some(list.into_iter().map(Int::Known).collect()),
        None if n.has(1) => Some(n.sizes(1)?),
        None => None,
    };
    if let Some(sizes) = &sizes {
        let total = sizes.iter().try_fold(Int::Known(0), |all, s| all.add(s)).ok_or("its parts are too large")?;
        if sizes.len() != parts || total.equals(&x.dim(axis)) == Some(false) {
            let texts: Vec<String> = sizes.iter().map(Int::text).collect();
            let (texts, size) = (texts.join(", "), x.dim(axis).text());
            return Err(format!("its parts are [{texts}], of {parts} results and a dim of {size}"));
        }
    }
    if parts == 1 {
        return same(n);
    }
    if let Some(sizes) = sizes.as_ref().filter(|all| all.iter().any(|s| matches!(s, Int::Other(_)))) {
        return split_by_data(n, &x, axis, sizes);
    }
    let sections = match sizes {
        // The last part may be shorter.
        None if n.attribute("num_outputs").is_some() => {
            let part = match x.dim(axis) {
                Int::Known(size) => size.saturating_add(parts as i64 - 1) / parts as i64,
                _ => 0,
            };
            let size = x.dim(axis).text();
            let part = if part > 0 { part.to_string() } else { n.body.line(&format!("-(-{size} // {parts})"))? };
            let places: Vec<String> = (1..parts).map(|i| format!("{i} * {part}")).collect();
            format!("[{}]", places.join(", "))
        }
        None => parts.to_string(),
        Some(sizes) => {
            let mut at = Int::Known(0);
            let mut places = vec![];
            for size in sizes.iter().take(parts - 1) {
                at = at.add(size).ok_or("its parts are too large")?;
                places.push(at.text());
            }
            format!("[{}]", places.join(", "))
        }
    };
    let whole = n.bound(&format!("op.split({}, {sections}, axis={axis})", x.text), 0, x.dtype)?;
    for i in 0..parts {
        let text = n.body.line(&format!("{}[{i}]", whole.text))?;
        n.result(i, Value::Tensor(Tensor::new(text, x.rank, x.dtype)));
    }
    Ok(())
}

/// Parts whose sizes only data tell.
fn split_by_data(n: &mut Node, x: &Tensor, axis: usize, sizes: &[Int]) -> Result<(), No> {
    let texts: Vec<String> = sizes.iter().map(Int::text).collect();
    n.body.lines.push(format!(
        "assert {} == {}, \"the parts of a Split are not as large as what is divided\"",
        texts.join(" + "),
        x.dim(axis).text()
    ));
    let (before, mut at) = (":, ".repeat(axis), "0".to_owned());
    for (i, size) in texts.iter().enumerate() {
        let end = n.body.line(&format!("{at} + {size}"))?;
        let t = n.bound(&format!("{}[{before}{at}:{end}]", x.text), x.rank, x.dtype)?;
        n.result(i, Value::Tensor(t));
        at = end;
    }
    Ok(())
}

/// Bounds from here on stand for the end of a dim.
const FAR: i64 = i32::MAX as i64;

fn slice(n: &mut Node) -> Result<(), No> {
    let list = |n: &mut Node, name: &str, i: usize| -> Result<Option<Vec<Int>>, No> {
        match n.list(name) {
            Some(list) => Ok(Some(list.into_iter().map(Int::Known).collect())),
            None if n.has(i) => n.sizes(i).map(Some),
            None => Ok(None),
        }
    };
    let starts = list(n, "starts", 1)?.ok_or("it has no starts")?;
    let ends = list(n, "ends", 2)?.ok_or("it has no ends")?;
    let axes = n.list_or("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = list(n, "steps", 4)?.unwrap_or_else(|| vec![Int::Known(1); starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|k| *k != starts.len()) {
        return Err("it has different numbers of starts, ends, axes and steps".into());
    }
    if let ([start], [end], [step]) = (&*starts, &*ends, &*steps)
        && let (Some(start), Some(end), Some(step)) = (start.known(), end.known(), step.known())
    {
        let all = |count| positions(0, i64::MAX, 1, count);
        let value = match (n.value(0)?, &*axes) {
            (Value::Matrix(ints, columns), [0 | -2]) => {
                let rows = positions(start, end, step, ints.elems.len() / columns.max(1));
                Some(Value::Matrix(parts(&ints, columns, &rows, &all(columns)), columns))
            }
            (value, [0 | -1]) => value.ints().filter(|i| !i.scalar).map(|ints| {
                let count = ints.elems.len();
                Value::Ints(parts(&ints, count, &[0], &positions(start, end, step, count)))
            }),
            _ => None,
        };
        if let Some(value) = value {
            n.result(0, value);
            return Ok(());
        }
    }
    let x = n.tensor(0)?;
    let mut ranges = vec![":".to_owned(); x.rank];
    for (((start, end), axis), step) in starts.iter().zip(&ends).zip(axes).zip(&steps) {
        let step = step.known().filter(|s| *s != 0).ok_or("its step depends on sizes")?;
        let open = |at: &Int, first: bool| match at.known() {
            Some(0) if first && step > 0 => true,
            Some(-1) if first && step < 0 => true,
            Some(k) if !first && step > 0 => k >= FAR,
            Some(k) if !first && step < 0 => k <= -FAR,
            Some(k) => first && step < 0 && k >= FAR,
            None => false,
        };
        let part = |at: &Int, first: bool| if open(at, first) { String::new() } else { at.text() };
        let step = if step == 1 { String::new() } else { format!(":{step}") };
        let axis = x.axis(axis)?;
        ranges[axis] = format!("{}:{}{step}", part(start, true), part(end, false));
    }
    if ranges.iter().all(|r| r == ":") {
        return same(n);
    }
    n.give(&format!("{}[{}]", x.text, ranges.join(", ")), x.rank, x.dtype)
}

fn expand(n: &mut Node) -> Result<(), No> {
    let (x, wanted) = (n.tensor(0)?, n.sizes(1)?);
    let rank = x.rank.max(wanted.len());
    let mut out = vec![];
    for i in 0..rank {
        let own = (i + x.rank).checked_sub(rank).map(|axis| x.dim(axis));
        let other = (i + wanted.len()).checked_sub(rank).and_then(|at| wanted.get(at));
        out.push(match (own, other) {
            (Some(own), None | Some(Int::Known(1 | -1))) => own,
            (Some(own), Some(other @ Int::Other(_))) => own.max(other).ok_or("its sizes are too large")?,
            (_, Some(other)) => other.clone(),
            (None, None) => Int::Known(1),
        });
    }
    n.give(&format!("op.broadcast_to({}, {})", x.text, tuple(&out)), rank, x.dtype)
}

fn pad(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    let pads: Vec<Int> = match n.list("pads").or(n.list("paddings")) {
        Some(list) => list.into_iter().map(Int::Known).collect(),
        None => n.sizes(1)?,
    };
    let axes = match n.has(3) {
        true => n.known(3)?.iter().map(|a| x.axis(*a)).collect::<Result<Vec<_>, _>>()?,
        false => (0..x.rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(format!("it has {} paddings for {} dims", pads.len(), axes.len()));
    }
    let (before, after) = pads.split_at(axes.len());
    let mut pairs = vec![(Int::Known(0), Int::Known(0)); x.rank];
    for ((axis, b), a) in axes.iter().zip(before).zip(after) {
        pairs[*axis] = (b.clone(), a.clone());
    }
    let x = cropped(n, x, &mut pairs)?;
    let mode = n.text("mode", "constant");
    if mode == "constant" {
        let value = pad_value(n, x.dtype)?;
        let pairs: Vec<String> = pairs.iter().map(|(b, a)| tuple(&[b.clone(), a.clone()])).collect();
        return n.give(&format!("op.pad({}, ({},), value={value})", x.text, pairs.join(", ")), x.rank, x.dtype);
    }
    let mut out = x;
    for (axis, (b, a)) in pairs.iter().enumerate().filter(|(_, (b, a))| (b, a) != (&Int::Known(0), &Int::Known(0))) {
        let call = n.library(&format!("pad_{mode}({}, {axis}, {}, {})", out.text, b.text(), a.text()));
        out = n.bound(&call, out.rank, out.dtype)?;
    }
    n.result(0, Value::Tensor(out));
    Ok(())
}

/// Negative paddings take away, before others are added.
fn cropped(n: &mut Node, x: Tensor, pairs: &mut [(Int, Int)]) -> Result<Tensor, No> {
    let less = |p: &Int| p.known().filter(|p| *p < 0);
    if !pairs.iter().any(|(b, a)| less(b).or(less(a)).is_some()) {
        return Ok(x);
    }
    let mut ranges = vec![];
    for (b, a) in pairs.iter_mut() {
        let start = less(b).map_or(String::new(), |p| p.unsigned_abs().to_string());
        let end = less(a).map_or(String::new(), |p| p.to_string());
        ranges.push(format!("{start}:{end}"));
        for p in [b, a] {
            if less(p).is_some() {
                *p = Int::Known(0);
            }
        }
    }
    n.bound(&format!("{}[{}]", x.text, ranges.join(", ")), x.rank, x.dtype)
}

/// What constant padding adds, as a literal.
fn pad_value(n: &Node, dtype: DType) -> Result<String, No> {
    if n.schema.attribute("value").is_none()
        && n.has(2)
        && let Some(one) = n.value(2)?.whole()
    {
        return Ok(match dtype {
            DType::Bool => (if one == 0 { "False" } else { "True" }).into(),
            _ => one.to_string(),
        });
    }
    let value = match n.schema.attribute("value") {
        Some(_) => n.float("value", 0.0),
        None => n.number(2)?.unwrap_or(0.0),
    };
    Ok(match dtype {
        d if d.is_float() => literal(value, d),
        DType::Bool => (if value == 0.0 { "False" } else { "True" }).into(),
        _ => format!("{value}"),
    })
}

fn depth_to_space(n: &mut Node) -> Result<(), No> {
    let (x, b) = (n.tensor(0)?, Int::Known(n.int("blocksize", 1)));
    let [batch, c, h, w] = four(&x)?;
    let flat = b.mul(&b).and_then(|bb| c.div(&bb)).ok_or("its block is 0")?;
    let (parts, order) = match &*n.text("mode", "DCR") {
        "CRD" => {
            (tuple(&[batch.clone(), flat.clone(), b.clone(), b.clone(), h.clone(), w.clone()]), "0, 1, 4, 2, 5, 3")
        }
        _ => (tuple(&[batch.clone(), b.clone(), b.clone(), flat.clone(), h.clone(), w.clone()]), "0, 3, 4, 1, 5, 2"),
    };
    let (high, wide) = (h.mul(&b).ok_or("its block is too large")?, w.mul(&b).ok_or("its block is too large")?);
    let whole = tuple(&[batch, flat, high, wide]);
    n.give(&format!("{}.reshape({parts}).transpose({order}).reshape({whole})", x.text), 4, x.dtype)
}

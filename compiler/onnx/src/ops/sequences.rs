//! Lists of tensors, whose length is known while the file is translated.

use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Int, Ints, Tensor, Value};
use tessera_base::DType;

pub const ROWS: &[Row] = &[
    row("SequenceEmpty", |n| {
        n.result(0, Value::List(vec![]));
        Ok(())
    })
    .ignores(&["dtype"]),
    row("SequenceConstruct", |n| {
        let all = (0..n.node.inputs.len()).map(|i| element(n, i)).collect::<Result<Vec<_>, No>>()?;
        give(n, all)
    }),
    row("SequenceInsert", |n| {
        let (mut all, value) = (list(n)?, element(n, 1)?);
        let at = place(n, 2, all.len(), all.len())?;
        all.insert(at, value);
        give(n, all)
    }),
    row("SequenceErase", |n| {
        let mut all = list(n)?;
        let last = all.len().checked_sub(1).ok_or("its sequence is empty")?;
        all.remove(place(n, 1, last, last)?);
        give(n, all)
    }),
    row("SequenceAt", |n| {
        let all = list(n)?;
        let last = all.len().checked_sub(1).ok_or("its sequence is empty")?;
        let value = all[place(n, 1, last, last)?].clone();
        n.result(0, value);
        Ok(())
    }),
    row("SequenceLength", |n| {
        let elems = vec![Int::Known(list(n)?.len() as i64)];
        n.give_ints(Ints { elems, scalar: true, dtype: DType::I64 })
    }),
    row("ConcatFromSequence", |n| {
        let all = list(n)?.iter().map(|v| n.body.as_tensor(v)).collect::<Result<Vec<_>, No>>()?;
        let first = all.first().ok_or("its sequence is empty")?;
        let new = n.int("new_axis", 0) != 0;
        let rank = first.rank + usize::from(new);
        let axis = crate::node::axis_in(n.int("axis", 0), rank)?;
        let texts: Vec<&str> = all.iter().map(|t| &*t.text).collect();
        let name = if new { "stack" } else { "concat" };
        n.give(&format!("op.{name}([{}], axis={axis})", texts.join(", ")), rank, first.dtype)
    })
    .honours(&["axis", "new_axis"]),
    row("SplitToSequence", split).honours(&["axis", "keepdims"]),
    row("Optional", |n| {
        let value = if n.has(0) { n.value(0)? } else { Value::Nothing };
        n.result(0, value);
        Ok(())
    })
    .ignores(&["type"]),
    row("OptionalHasElement", |n| {
        let there = n.has(0) && !matches!(n.value(0)?, Value::Nothing);
        n.give_ints(Ints { elems: vec![Int::Known(i64::from(there))], scalar: true, dtype: DType::Bool })
    }),
    row("OptionalGetElement", |n| match n.value(0)? {
        Value::Nothing => Err("its argument holds nothing".into()),
        value => {
            n.result(0, value);
            Ok(())
        }
    }),
];

fn list<'m>(n: &Node<'_, 'm>) -> Result<Vec<Value<'m>>, No> {
    match n.value(0)? {
        Value::List(all) => Ok(all),
        _ => Err("its argument 0 is no sequence of a known length".into()),
    }
}

/// An element: the standard has sequences of tensors alone.
fn element<'m>(n: &Node<'_, 'm>, i: usize) -> Result<Value<'m>, No> {
    match n.value(i)? {
        Value::List(_) | Value::Nothing => Err(format!("its argument {i} is no tensor, and a sequence holds tensors")),
        value => Ok(value),
    }
}

/// The result is this sequence. Each is held on its own, so what all hold together is bounded.
fn give<'m>(n: &mut Node<'_, 'm>, all: Vec<Value<'m>>) -> Result<(), No> {
    n.body.hold(all.len())?;
    n.result(0, Value::List(all));
    Ok(())
}

/// A place in a sequence, of which `last` is the last one.
fn place(n: &Node, i: usize, last: usize, otherwise: usize) -> Result<usize, No> {
    if !n.has(i) {
        return Ok(otherwise);
    }
    let at = *n.known(i)?.first().ok_or("its position is empty")?;
    let count = last as i64 + i64::from(n.node.op != "SequenceInsert");
    let from_front = if at < 0 { at.saturating_add(count) } else { at };
    let found = usize::try_from(from_front).ok().filter(|at| *at <= last);
    found.ok_or_else(|| format!("its position {at} is none of {count}"))
}

/// Parts of a tensor: so many of one size, or with a size each.
fn split(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    let axis = x.axis(n.int("axis", 0))?;
    let size = || x.dim(axis).known().ok_or("how many parts it gives depends on sizes");
    let whole = if n.has(1) { n.value(1)?.ints() } else { None };
    let sizes: Vec<i64> = match (n.has(1), whole) {
        (true, Some(ints)) if !ints.scalar => n.known(1)?,
        (true, _) => {
            let part = n.known(1)?.first().copied().filter(|p| *p > 0).ok_or("its parts have no size")?;
            let (count, rest) = (size()? / part, size()? % part);
            (0..count).map(|_| part).chain((rest > 0).then_some(rest)).collect()
        }
        (false, _) => vec![1; usize::try_from(size()?).unwrap_or(0)],
    };
    if sizes.len() > 4096 {
        return Err(format!("it gives {} parts", sizes.len()));
    }
    let drops = !n.has(1) && n.int("keepdims", 1) == 0;
    let (mut start, mut all) = (0i64, vec![]);
    for part in sizes {
        let end = start.saturating_add(part);
        let range = if drops { start.to_string() } else { format!("{start}:{end}") };
        let text = n.body.line(&format!("{}[{}{range}]", x.text, ":, ".repeat(axis)))?;
        let t = Tensor::new(text, x.rank - usize::from(drops), x.dtype);
        let known = match (x.known.len() == x.rank, drops) {
            (true, false) => x.known.iter().enumerate().map(|(i, d)| if i == axis { part } else { *d }).collect(),
            _ => vec![],
        };
        all.push(Value::Tensor(Tensor { known, ..t }));
        start = end;
    }
    give(n, all)
}

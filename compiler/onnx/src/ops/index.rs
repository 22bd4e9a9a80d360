//! Elements at positions.

use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Int, Ints, Tensor, Value};
use tessera_base::DType;

pub const ROWS: &[Row] = &[
    row("Gather", gather).honours(&["axis"]),
    row("GatherElements", |n| {
        let (x, at) = (n.tensor(0)?, n.tensor(1)?);
        let axis = x.axis(n.int("axis", 0))?;
        n.give(&format!("op.gather({}, {axis}, {})", x.text, at.text), x.rank, x.dtype)
    })
    .honours(&["axis"]),
    row("OneHot", one_hot).honours(&["axis"]),
    // An order that is not asked for may be there.
    row("TopK", top_k).honours(&["axis", "k", "largest"]).ignores(&["sorted"]),
    row("Trilu", |n| {
        let x = n.tensor(0)?;
        let k = if n.has(1) { n.size(1)? } else { Int::Known(0) };
        let upper = n.int("upper", 1) != 0;
        if let Int::Other(k) = &k {
            let upper = if upper { "True" } else { "False" };
            let call = n.library(&format!("triangle({}, {k}, {upper})", x.text));
            return n.give(&call, x.rank, x.dtype);
        }
        let name = if upper { "triu" } else { "tril" };
        n.give(&format!("op.{name}({}, {})", x.text, k.text()), x.rank, x.dtype)
    })
    .honours(&["upper"]),
];

fn gather(n: &mut Node) -> Result<(), No> {
    let at = n.value(1)?.ints();
    if let (Some(x), Some(at)) = (n.value(0)?.ints().filter(|x| !x.scalar), &at)
        && let Some(known) = at.elems.iter().map(Int::known).collect::<Option<Vec<_>>>()
    {
        let count = x.elems.len() as i64;
        let pick = |p: &i64| {
            let place = if *p < 0 { p.saturating_add(count) } else { *p };
            usize::try_from(place).ok().and_then(|i| x.elems.get(i)).cloned()
        };
        let elems = known.iter().map(pick).collect::<Option<Vec<_>>>().ok_or("its positions lie outside")?;
        return n.give_ints(Ints { elems, scalar: at.scalar, dtype: x.dtype });
    }
    let x = n.tensor(0)?;
    let axis = x.axis(n.int("axis", 0))?;
    if let Some(Ints { elems, scalar: true, .. }) = &at
        && let [one] = elems.as_slice()
    {
        let before = ":, ".repeat(axis);
        return n.give(&format!("{}[{before}{}]", x.text, one.text()), x.rank - 1, x.dtype);
    }
    let at = n.tensor(1)?;
    n.give(&format!("op.take({}, {}, axis={axis})", x.text, at.text), x.rank - 1 + at.rank, x.dtype)
}

fn one_hot(n: &mut Node) -> Result<(), No> {
    let mut ids = n.tensor(0)?;
    let depth = match n.one(1) {
        Ok(size) => size,
        Err(_) => Int::Other(format!("int({})", n.read(1)?)),
    };
    if ids.dtype != DType::I64 {
        ids = n.bound(&format!("{}.to(i64)", ids.text), ids.rank, DType::I64)?;
    }
    let values = n.tensor(2)?;
    let rank = ids.rank + 1;
    let axis = crate::node::axis_in(n.int("axis", -1), rank)?;
    let hot = n.bound(
        &format!("op.one_hot(op.mod({}, {d}), {d}, dtype=bool)", ids.text, d = depth.text()),
        rank,
        DType::Bool,
    )?;
    // What lies outside of -depth to depth - 1 has no place.
    let (id, d) = (&ids.text, depth.text());
    let inside =
        n.bound(&format!("op.expand_dims(op.logical_and({id} >= -{d}, {id} < {d}), -1)"), rank, DType::Bool)?;
    let v = &values.text;
    let text = format!("op.where(op.logical_and({}, {}), {v}[1], {v}[0])", hot.text, inside.text);
    let text = if axis + 1 == rank { text } else { format!("op.moveaxis({text}, -1, {axis})") };
    n.give(&text, rank, values.dtype)
}

fn top_k(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    let k = if n.attribute("k").is_some() { Int::Known(n.int("k", 0)) } else { n.size(1)? };
    let axis = x.axis(n.int("axis", -1))?;
    let largest = if n.int("largest", 1) != 0 { "True" } else { "False" };
    let both = n.bound(&format!("op.topk({}, {}, axis={axis}, largest={largest})", x.text, k.text()), 0, x.dtype)?;
    for (i, dtype) in [(0, x.dtype), (1, DType::I64)] {
        let text = n.body.line(&format!("{}[{i}]", both.text))?;
        n.result(i, Value::Tensor(Tensor::new(text, x.rank, dtype)));
    }
    Ok(())
}

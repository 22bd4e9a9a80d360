//! Elements that others choose: how many there are is told when the model runs, and is a size from then on.

use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Tensor, Value, literal};
use tessera_base::DType;

pub const ROWS: &[Row] = &[
    row("NonZero", |n| {
        let x = n.tensor(0)?;
        if x.rank == 0 {
            // The one element has no place along a dim; where it is 0 there is none.
            return Err("its argument is a number, whose place has no dims".into());
        }
        let y = n.bound(&format!("op.stack(op.nonzero({}))", x.text), 2, DType::I64)?;
        // A row for each dim: turned over, each of its rows names one element.
        let dims = i64::try_from(x.rank).map_err(|_| "its argument has too many dims")?;
        n.result(0, Value::Tensor(Tensor { known: vec![dims, -1], ..y }));
        Ok(())
    }),
    row("Compress", |n| {
        let (x, condition) = (n.tensor(0)?, n.tensor(1)?);
        match n.attribute("axis") {
            Some(_) => {
                let axis = x.axis(n.int("axis", 0))?;
                let call = n.library(&format!("compress({}, {}, axis={axis})", x.text, condition.text));
                n.give(&call, x.rank, x.dtype)
            }
            None => {
                let call = n.library(&format!("compress({}.reshape(-1), {})", x.text, condition.text));
                n.give(&call, 1, x.dtype)
            }
        }
    })
    .honours(&["axis"]),
    row("Unique", unique).honours(&["axis", "sorted"]),
    row("NonMaxSuppression", suppressed).honours(&["center_point_box"]),
];

fn unique(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    let found = if n.int("sorted", 1) != 0 { "" } else { "_as_found" };
    let (call, rank) = match n.attribute("axis") {
        Some(_) => (format!("unique_parts{found}({}, {})", x.text, x.axis(n.int("axis", 0))?), x.rank),
        None => (format!("unique{found}({})", x.text), 1),
    };
    let call = n.library(&call);
    let all = n.bound(&call, 0, x.dtype)?;
    for (i, (rank, dtype)) in
        [(rank, x.dtype), (1, DType::I64), (1, DType::I64), (1, DType::I64)].into_iter().enumerate()
    {
        if n.wants(i) {
            let t = n.bound(&format!("{}[{i}]", all.text), rank, dtype)?;
            n.result(i, Value::Tensor(t));
        }
    }
    Ok(())
}

/// A float that is known, or read when the model runs.
fn float(n: &mut Node, i: usize) -> Result<String, No> {
    match n.number(i) {
        Ok(Some(x)) => Ok(literal(x, DType::F64)),
        Ok(None) => Ok("0.0".into()),
        Err(_) => n.read(i),
    }
}

fn suppressed(n: &mut Node) -> Result<(), No> {
    let (boxes, scores) = (n.tensor(0)?, n.tensor(1)?);
    let boxed = |t: &Tensor| t.rank == 3;
    if !boxed(&boxes) || !boxed(&scores) {
        return Err(format!("its arguments have {} and {} dims and not 3", boxes.rank, scores.rank));
    }
    // Without a number none is chosen.
    let most = if n.has(2) { n.size(2)?.text() } else { "0".into() };
    let overlap = float(n, 3)?;
    let least = if n.has(4) { format!(", least={}", float(n, 4)?) } else { String::new() };
    let centred = if n.int("center_point_box", 0) != 0 { ", centred=True" } else { "" };
    let args = format!("{}, {}, {most}, {overlap}{least}{centred}", boxes.text, scores.text);
    let call = n.library(&format!("non_max_suppression({args})"));
    let y = n.bound(&call, 2, DType::I64)?;
    n.result(0, Value::Tensor(Tensor { known: vec![-1, 3], ..y }));
    Ok(())
}

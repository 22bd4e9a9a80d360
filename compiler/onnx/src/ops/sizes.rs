//! Constants, sizes, and what is made of sizes.

use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Int, Ints, Value, literal, tuple};
use tessera_base::DType;
use tessera_runtime::io::onnx::Attribute;

pub const ROWS: &[Row] =
    &[
        row("Constant", constant)
            .honours(&["value", "value_float", "value_floats", "value_int", "value_ints"])
            .refuses(&["sparse_value", "value_string", "value_strings"]),
        row("ConstantOfShape", filled).honours(&["value"]),
        row("Shape", shape).honours(&["start", "end"]),
        row("Size", |n| {
            if let Some(ints) = n.value(0)?.ints() {
                let elems = vec![Int::Known(ints.elems.len() as i64)];
                return n.give_ints(Ints { elems, scalar: true, dtype: DType::I64 });
            }
            let x = n.tensor(0)?;
            let count = x.dims().iter().try_fold(Int::Known(1), |all, d| all.mul(d));
            let elems = vec![count.ok_or("its size is too large")?];
            n.give_ints(Ints { elems, scalar: true, dtype: DType::I64 })
        }),
        // Elements are computed from their places, without sums that narrow floats would round.
        row("Range", range).ignores(&["stash_type"]),
        row("EyeLike", |n| {
            let x = n.tensor(0)?;
            let (k, dtype) = (n.int("k", 0), n.int("dtype", 0));
            let dtype = if dtype == 0 { x.dtype } else { tessera_runtime::io::onnx::dtype(dtype)? };
            n.give(&format!("op.eye({}, {}, {k}, dtype={dtype})", x.dim(0).text(), x.dim(1).text()), 2, dtype)
        })
        .honours(&["dtype", "k"]),
    ];

fn constant(n: &mut Node) -> Result<(), No> {
    let ints = |elems: &[i64], scalar| Ints {
        elems: elems.iter().copied().map(Int::Known).collect(),
        scalar,
        dtype: DType::I64,
    };
    match n.node.attributes.first().map(|(_, a)| a) {
        Some(Attribute::Tensor(t)) => {
            n.result(0, Value::Constant(t));
            Ok(())
        }
        Some(Attribute::Int(v)) => n.give_ints(ints(&[*v], true)),
        Some(Attribute::Ints(v)) => n.give_ints(ints(v, false)),
        Some(Attribute::Float(x)) => {
            n.give_ints(Ints { elems: vec![Int::Real(f64::from(*x))], scalar: true, dtype: DType::F32 })
        }
        Some(Attribute::Floats(v)) if (1..=8).contains(&v.len()) => {
            let elems = v.iter().map(|x| Int::Real(f64::from(*x))).collect();
            n.give_ints(Ints { elems, scalar: false, dtype: DType::F32 })
        }
        Some(Attribute::Floats(v)) if v.is_empty() => n.give("op.zeros((0,))", 1, DType::F32),
        Some(Attribute::Floats(v)) => {
            let all: Vec<String> = v.iter().map(|x| literal(f64::from(*x), DType::F32)).collect();
            n.give(&format!("op.array([{}], dtype=f32)", all.join(", ")), 1, DType::F32)
        }
        _ => Err("its value is neither a tensor nor numbers".into()),
    }
}

fn filled(n: &mut Node) -> Result<(), No> {
    let shape = n.sizes(0)?;
    let (text, dtype) = match n.attribute("value") {
        None => ("0.0".to_owned(), DType::F32),
        Some(Attribute::Tensor(t)) => {
            let dtype = t.dtype()?;
            if dtype == DType::C64 {
                return Err("its value is complex".into());
            } else if dtype.is_float() {
                (literal(t.first_float()?, dtype), dtype)
            } else {
                let value = *t.ints()?.first().ok_or("its value is empty")?;
                if let ([Int::Known(count @ 0..=64)], DType::I64 | DType::I32 | DType::Bool) = (shape.as_slice(), dtype)
                {
                    let elems = vec![Int::Known(value); *count as usize];
                    return n.give_ints(Ints { elems, scalar: false, dtype });
                }
                let value = if dtype == DType::Bool {
                    if value == 0 { "False" } else { "True" }.into()
                } else {
                    value.to_string()
                };
                (value, dtype)
            }
        }
        Some(_) => return Err("its value is no tensor".into()),
    };
    n.give(&format!("op.full({}, {text}, dtype={dtype})", tuple(&shape)), shape.len(), dtype)
}

fn shape(n: &mut Node) -> Result<(), No> {
    let dims = match n.value(0)? {
        Value::Constant(t) => t.dims.iter().copied().map(Int::Known).collect(),
        Value::Ints(ints) if ints.scalar => vec![],
        Value::Ints(ints) => vec![Int::Known(ints.elems.len() as i64)],
        _ => n.tensor(0)?.dims(),
    };
    let rank = dims.len() as i64;
    let place = |at: i64| if at < 0 { at.saturating_add(rank) } else { at }.clamp(0, rank) as usize;
    let (start, end) = (place(n.int("start", 0)), place(n.int("end", rank)));
    let elems = dims.get(start..end.max(start)).unwrap_or_default().to_vec();
    n.give_ints(Ints { elems, scalar: false, dtype: DType::I64 })
}

fn range(n: &mut Node) -> Result<(), No> {
    let ints = n.value(0)?.ints();
    let own = n.value(0)?.dtype().unwrap_or(DType::I64);
    if ints.is_none() && !matches!(own, DType::I64 | DType::I32) {
        let (mut bounds, mut known) = (vec![], true);
        for i in 0..3 {
            bounds.push(match n.number(i) {
                Ok(bound) if own.is_float() => literal(bound.ok_or("it lacks a bound")?, DType::F64),
                Ok(bound) => bound.ok_or("it lacks a bound")?.to_string(),
                Err(_) => {
                    known = false;
                    n.read(i)?
                }
            });
        }
        let bounds = bounds.join(", ");
        let text = match (known, own.is_float()) {
            (true, _) => format!("op.arange({bounds}, dtype={own})"),
            (false, true) => format!("{}.to({own})", n.library(&format!("range_floats({bounds})"))),
            (false, false) => format!("{}.to({own})", n.library(&format!("range_ints({bounds})"))),
        };
        return n.give(&text, 1, own);
    }
    let (start, end, step) = (n.size(0)?, n.size(1)?, n.size(2)?);
    if step.known().is_none_or(|s| s == 0) {
        let call = n.library(&format!("range_ints({}, {}, {})", start.text(), end.text(), step.text()));
        return n.give(&format!("{call}.to({own})"), 1, own);
    }
    if let (Some(a), Some(b), Some(s @ 1..)) = (start.known(), end.known(), step.known())
        && b.saturating_sub(a) / s <= 64
    {
        let elems = (0..).map_while(|i| s.checked_mul(i)?.checked_add(a).filter(|v| *v < b)).map(Int::Known).collect();
        return n.give_ints(Ints { elems, scalar: false, dtype: own });
    }
    n.give(&format!("op.arange({}, {}, {}, dtype={own})", start.text(), end.text(), step.text()), 1, own)
}

//! Sizes that follow from those of arguments: what is known while a file is translated needs no look at a tensor, and
//! some operators have a rank by it.

use crate::node::{Body, Node, axis_in};
use crate::standard::Schema;
use crate::value::{Int, Value, positions};
use tessera_runtime::io::onnx;

/// A size that is not known.
const OPEN: i64 = -1;

/// Operators whose first result has the sizes of their first argument.
const KEEP: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BatchNormalization",
    "Cast",
    "CastLike",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "CumProd",
    "CumSum",
    "DequantizeLinear",
    "Dropout",
    "DynamicQuantizeLinear",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "InstanceNormalization",
    "IsInf",
    "IsNaN",
    "LRN",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "LpNormalization",
    "Mish",
    "Neg",
    "Not",
    "QuantizeLinear",
    "RMSNormalization",
    "Reciprocal",
    "Relu",
    "RotaryEmbedding",
    "Round",
    "ScatterElements",
    "ScatterND",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Trilu",
];

/// Operators whose arguments broadcast.
const MEET: &[&str] = &[
    "Add",
    "And",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "Pow",
    "Sub",
    "Sum",
    "Where",
    "Xor",
];

/// Notes the sizes of the results of a node that has been translated.
pub fn tell<'m>(body: &mut Body<'m>, node: &'m onnx::Node<'m>, schema: &'static Schema) {
    let sizes = {
        let n = Node { body: &mut *body, node, schema };
        sizes(&n)
    };
    let (Some(sizes), Some(name)) = (sizes, node.outputs.first()) else { return };
    if let Some(Value::Tensor(t)) = body.value(name)
        && t.known.is_empty()
        && t.rank == sizes.len()
        && sizes.iter().any(|n| *n != OPEN)
    {
        let mut t = t.clone();
        t.known = sizes;
        body.set(name, Value::Tensor(t));
    }
}

/// The sizes of an argument, -1 where one is not known.
fn of(n: &Node, i: usize) -> Option<Vec<i64>> {
    Some(match n.value(i).ok()? {
        Value::Tensor(t) if t.known.len() == t.rank => t.known,
        Value::Tensor(t) => vec![OPEN; t.rank],
        Value::Constant(t) => t.dims.clone(),
        Value::Ints(ints) if ints.scalar => vec![],
        Value::Ints(ints) => vec![i64::try_from(ints.elems.len()).ok()?],
        Value::Matrix(..) | Value::List(_) | Value::Nothing | Value::Broken => return None,
    })
}

fn sizes(n: &Node) -> Option<Vec<i64>> {
    let op = n.node.op;
    if KEEP.contains(&op) {
        return of(n, 0);
    }
    if MEET.contains(&op) {
        // Before version 7 the second one stands anywhere.
        if n.schema.attribute("broadcast").is_some() {
            return of(n, 0);
        }
        return (1..n.node.inputs.len()).try_fold(of(n, 0)?, |all, i| Some(met(&all, &of(n, i)?)));
    }
    match op {
        "MatMul" | "MatMulInteger" => product(&of(n, 0)?, &of(n, 1)?),
        "Gemm" => {
            let (a, b) = (of(n, 0)?, of(n, 1)?);
            let (row, column) = (usize::from(n.int("transA", 0) != 0), usize::from(n.int("transB", 0) == 0));
            Some(vec![*a.get(row)?, *b.get(column)?])
        }
        "Transpose" => {
            let x = of(n, 0)?;
            match n.list("perm") {
                Some(perm) => perm.iter().map(|p| x.get(axis_in(*p, x.len()).ok()?).copied()).collect(),
                None => Some(x.into_iter().rev().collect()),
            }
        }
        "Unsqueeze" => {
            let x = of(n, 0)?;
            let axes = n.list_or("axes", 1).ok()??;
            let rank = x.len() + axes.len();
            let axes = axes.iter().map(|a| axis_in(*a, rank).ok()).collect::<Option<Vec<_>>>()?;
            let mut own = x.into_iter();
            (0..rank).map(|i| if axes.contains(&i) { Some(1) } else { own.next() }).collect()
        }
        "Squeeze" => {
            let x = of(n, 0)?;
            let axes = n.list_or("axes", 1).ok()??;
            let axes = axes.iter().map(|a| axis_in(*a, x.len()).ok()).collect::<Option<Vec<_>>>()?;
            Some(x.into_iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| d).collect())
        }
        "Concat" => joined(n),
        "Reshape" => reshaped(n),
        "ConstantOfShape" => Some(n.ints(0).ok()?.iter().map(size).collect()),
        "Expand" => {
            let wanted: Vec<i64> = n.ints(1).ok()?.iter().map(size).collect();
            Some(met(&of(n, 0)?, &wanted))
        }
        "Gather" => {
            let (x, at) = (of(n, 0)?, of(n, 1)?);
            let axis = axis_in(n.int("axis", 0), x.len()).ok()?;
            Some([x.get(..axis)?, &at, x.get(axis + 1..)?].concat())
        }
        "GatherElements" => of(n, 1),
        "Slice" => sliced(n),
        "Conv" | "ConvTranspose" | "ConvInteger" | "MaxPool" | "AveragePool" | "LpPool" => {
            let x = of(n, 0)?;
            let channels = match op {
                "Conv" | "ConvInteger" => *of(n, 1)?.first()?,
                "ConvTranspose" => of(n, 1)?.get(1)?.checked_mul(n.int("group", 1)).filter(|c| *c > 0).unwrap_or(OPEN),
                _ => *x.get(1)?,
            };
            Some([&[*x.first()?, channels], &*vec![OPEN; x.len().checked_sub(2)?]].concat())
        }
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => {
            let x = of(n, 0)?;
            Some([x.get(..2)?, &*vec![1; x.len() - 2]].concat())
        }
        name if name.starts_with("Reduce") => {
            let x = of(n, 0)?;
            let axes = n.list_or("axes", 1).ok()?.filter(|list| !list.is_empty())?;
            dropped(x, &axes, n.int("keepdims", 1) != 0)
        }
        "ArgMax" | "ArgMin" => dropped(of(n, 0)?, &[n.int("axis", 0)], n.int("keepdims", 1) != 0),
        _ => None,
    }
}

fn size(n: &Int) -> i64 {
    n.known().filter(|n| *n >= 0).unwrap_or(OPEN)
}

/// The sizes of what two broadcast to.
fn met(a: &[i64], b: &[i64]) -> Vec<i64> {
    let rank = a.len().max(b.len());
    let at = |v: &[i64], i: usize| (i + v.len()).checked_sub(rank).and_then(|i| v.get(i)).copied().unwrap_or(1);
    let join = |i| match (at(a, i), at(b, i)) {
        (1, n) | (n, 1) => n,
        // One that is not known is 1, or the other.
        (OPEN, n) | (n, _) => n,
    };
    (0..rank).map(join).collect()
}

fn product(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    match (a, b) {
        ([batch_a @ .., m, _], [batch_b @ .., _, n]) => Some([&*met(batch_a, batch_b), &[*m, *n]].concat()),
        ([_], [batch @ .., _, n]) => Some([batch, &[*n]].concat()),
        ([batch @ .., m, _], [_]) => Some([batch, &[*m]].concat()),
        _ => None,
    }
}

fn dropped(x: Vec<i64>, axes: &[i64], keep: bool) -> Option<Vec<i64>> {
    let axes = axes.iter().map(|a| axis_in(*a, x.len()).ok()).collect::<Option<Vec<_>>>()?;
    let left = |(i, d): (usize, i64)| match axes.contains(&i) {
        true => keep.then_some(1),
        false => Some(d),
    };
    Some(x.into_iter().enumerate().filter_map(left).collect())
}

fn joined(n: &Node) -> Option<Vec<i64>> {
    let parts = (0..n.node.inputs.len()).map(|i| of(n, i)).collect::<Option<Vec<_>>>()?;
    let (first, rest) = parts.split_first()?;
    let axis = axis_in(n.int("axis", 1), first.len()).ok()?;
    let mut out = first.clone();
    for part in rest.iter().filter(|p| p.len() == first.len()) {
        for (i, (all, own)) in out.iter_mut().zip(part).enumerate() {
            *all = match (i == axis, *all, *own) {
                (true, OPEN, _) | (true, _, OPEN) => OPEN,
                (true, a, b) => a.checked_add(b)?,
                (false, OPEN, b) => b,
                (false, a, _) => a,
            };
        }
    }
    Some(out)
}

fn reshaped(n: &Node) -> Option<Vec<i64>> {
    let x = of(n, 0)?;
    let wanted = match n.list("shape") {
        Some(list) => list.into_iter().map(Int::Known).collect(),
        None => n.ints(1).ok()?,
    };
    let keeps = n.int("allowzero", 0) == 0;
    let mut out: Vec<i64> = vec![];
    for (i, w) in wanted.iter().enumerate() {
        out.push(match w.known() {
            Some(0) if keeps => x.get(i).copied().unwrap_or(OPEN),
            Some(k @ 0..) => k,
            _ => OPEN,
        });
    }
    // The one that is left open, where all else is known.
    let (count, open) = (
        x.iter().try_fold(1i64, |n, d| n.checked_mul(*d).filter(|n| *n > 0)),
        wanted.iter().position(|w| w.known() == Some(-1)),
    );
    if let (Some(count), Some(at)) = (count.filter(|_| !x.contains(&OPEN)), open)
        && out.iter().filter(|d| **d == OPEN).count() == 1
    {
        let rest = out.iter().filter(|d| **d != OPEN).try_fold(1i64, |n, d| n.checked_mul(*d))?;
        if rest > 0 && count % rest == 0 {
            out[at] = count / rest;
        }
    }
    Some(out)
}

fn sliced(n: &Node) -> Option<Vec<i64>> {
    let mut out = of(n, 0)?;
    let ints = |name: &str, i: usize| n.list_or(name, i).ok().flatten();
    let count = match n.list("starts") {
        Some(list) => list.len(),
        None => n.ints(1).ok()?.len(),
    };
    let axes = ints("axes", 3).unwrap_or_else(|| (0..).take(count).collect());
    let (starts, ends, steps) = (ints("starts", 1), ints("ends", 2), ints("steps", 4));
    for (k, axis) in axes.iter().enumerate() {
        let axis = axis_in(*axis, out.len()).ok()?;
        let step = if n.has(4) { steps.as_ref().and_then(|s| s.get(k)).copied() } else { Some(1) };
        let bound = |list: &Option<Vec<i64>>| list.as_ref().and_then(|l| l.get(k)).copied();
        out[axis] = match (bound(&starts), bound(&ends), step, out[axis]) {
            (Some(start), Some(end), Some(step), size @ 0..=65536) => {
                i64::try_from(positions(start, end, step, usize::try_from(size).ok()?).len()).ok()?
            }
            _ => OPEN,
        };
    }
    Some(out)
}

//! Pooling.

use super::windows::{Windows, ints, windows};
use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Int, Tensor, Value, tuple};
use tessera_base::DType;

const POOLED: &[&str] = &["auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"];

pub const ROWS: &[Row] = &[
    row("MaxPool", |n| pool(n, true)).honours(&[
        "auto_pad",
        "ceil_mode",
        "dilations",
        "kernel_shape",
        "pads",
        "storage_order",
        "strides",
    ]),
    row("AveragePool", |n| pool(n, false)).honours(POOLED),
    row("LpPool", |n| {
        if n.schema.since < 2 {
            return Err("before version 2 its power may have a fraction, which is not supported".into());
        }
        lp_pool(n)
    })
    .honours(&["auto_pad", "ceil_mode", "dilations", "kernel_shape", "p", "pads", "strides"]),
    row("MaxUnpool", unpool).honours(&["kernel_shape", "pads", "strides"]),
];

fn pool(n: &mut Node, largest: bool) -> Result<(), No> {
    let x = n.tensor(0)?;
    let kernel = n.list("kernel_shape").ok_or("it has no `kernel_shape`")?;
    let at = windows(n, &x, kernel.into_iter().map(Int::Known).collect())?;
    let none = Int::Known(0);
    let args = |pads: &[(Int, Int)]| {
        let mut args = format!(", {}, stride={}", tuple(&at.kernel), ints(&at.stride));
        if pads.iter().any(|(b, a)| (b, a) != (&none, &none)) {
            let pairs: Vec<String> = pads.iter().map(|(b, a)| tuple(&[b.clone(), a.clone()])).collect();
            args.push_str(&format!(", padding=({},)", pairs.join(", ")));
        }
        args
    };
    let reach: Option<Vec<_>> =
        at.pads.iter().zip(&at.beyond).map(|((b, a), more)| Some((b.clone(), a.add(more)?))).collect();
    let reach = reach.ok_or("its window is too large")?;
    let gaps = at.dilation.iter().any(|d| *d != 1);
    if largest && (gaps || n.wants(1)) {
        return largest_of(n, &x, &at, &reach);
    }
    if largest {
        return n.give(&format!("op.max_pool({}{})", x.text, args(&reach)), x.rank, x.dtype);
    }
    // Means are of the elements; those of padding count where that is asked for, what lies behind it never does.
    let counted = n.int("count_include_pad", 0) != 0;
    let (mut of, mut pads) = (x.text.clone(), reach);
    if counted {
        pads = at.beyond.iter().map(|more| (none.clone(), more.clone())).collect();
        if at.pads.iter().any(|(b, a)| (b, a) != (&none, &none)) {
            let pairs: Vec<String> = at.pads.iter().map(|(b, a)| tuple(&[b.clone(), a.clone()])).collect();
            of = n.bound(&format!("op.pad({of}, ((0, 0), (0, 0), {},))", pairs.join(", ")), x.rank, x.dtype)?.text;
        }
    }
    if gaps {
        let x = Tensor::new(of, x.rank, x.dtype);
        let mean = |n: &mut Node, x: &Tensor| -> Result<String, No> {
            Ok(format!("op.mean({}, axis=-1)", gathered(n, x, &at, &pads, "0")?.text))
        };
        let text = mean(n, &x)?;
        let ones = n.bound(&format!("op.ones_like({})", x.text), x.rank, x.dtype)?;
        let share = mean(n, &ones)?;
        return n.give(&format!("{text} / {share}"), x.rank, x.dtype);
    }
    let args_text = args(&pads);
    let text = match pads.iter().all(|(b, a)| (b, a) == (&none, &none)) {
        true => format!("op.avg_pool({of}{args_text})"),
        false => format!("op.avg_pool({of}{args_text}) / op.avg_pool(op.ones_like({of}){args_text})"),
    };
    n.give(&text, x.rank, x.dtype)
}

/// The elements of every window along a last dim of their own: for windows with gaps, and where places are asked for.
fn gathered(n: &mut Node, x: &Tensor, at: &Windows, pads: &[(Int, Int)], value: &str) -> Result<Tensor, No> {
    let (dims, large) = (at.kernel.len(), "its window is too large");
    let pairs: Vec<String> = pads.iter().map(|(b, a)| tuple(&[b.clone(), a.clone()])).collect();
    let padded = format!("op.pad({}, ((0, 0), (0, 0), {},), value={value})", x.text, pairs.join(", "));
    let mut t = n.bound(&padded, x.rank, x.dtype)?.text;
    let mut sizes = vec![x.dim(0), x.dim(1)];
    for (i, (before, after)) in pads.iter().enumerate() {
        let (kernel, stride, dilation) = (&at.kernel[i], at.stride[i], at.dilation[i]);
        let span = kernel.sub(&Int::Known(1)).and_then(|k| k.mul(&Int::Known(dilation))).ok_or(large)?;
        let whole = x.dim(i + 2).add(before).and_then(|w| w.add(after)).ok_or(large)?;
        let steps = whole.sub(&span).and_then(|w| w.sub(&Int::Known(1))).ok_or(large)?;
        let count =
            Int::Size(steps.text()).div(&Int::Known(stride)).and_then(|c| c.add(&Int::Known(1))).ok_or(large)?;
        let places = format!(
            "op.arange({}).reshape(-1, 1) * {stride} + op.arange({}) * {dilation}",
            count.text(),
            kernel.text()
        );
        t = n.bound(&format!("op.take({t}, {places}, axis={})", 2 + 2 * i), x.rank + i + 1, x.dtype)?.text;
        sizes.push(count);
    }
    let order: Vec<usize> = (0..2).chain((0..dims).map(|i| 2 + 2 * i)).chain((0..dims).map(|i| 3 + 2 * i)).collect();
    let order: Vec<String> = order.iter().map(usize::to_string).collect();
    let count = at.kernel.iter().try_fold(Int::Known(1), |all, k| all.mul(k)).ok_or(large)?;
    sizes.push(count);
    n.bound(&format!("{t}.transpose({}).reshape({})", order.join(", "), tuple(&sizes)), x.rank + 1, x.dtype)
}

/// The largest elements of windows, and their places in the flattened argument.
fn largest_of(n: &mut Node, x: &Tensor, at: &Windows, pads: &[(Int, Int)]) -> Result<(), No> {
    let least = match x.dtype {
        DType::U8 => "0",
        DType::I8 => "-128",
        _ => "-math.inf",
    };
    let all = gathered(n, x, at, pads, least)?;
    if n.wants(1) {
        let first = n.bound(&format!("op.argmax({}, axis=-1)", all.text), x.rank, DType::I64)?.text;
        // Each of two dims names the same place; with `storage_order` the first one runs fastest.
        let dims = at.kernel.len();
        let turned = n.int("storage_order", 0) != 0;
        let order: Vec<usize> = if turned { (0..dims).rev().collect() } else { (0..dims).collect() };
        let mut place = format!(
            "(op.arange({0} * {1}).reshape({0}, {1}{2}))",
            x.dim(0).text(),
            x.dim(1).text(),
            ", 1".repeat(dims)
        );
        for i in order {
            let behind = at.kernel.iter().skip(i + 1).try_fold(Int::Known(1), |all, k| all.mul(k));
            let behind = behind.ok_or("its window is too large")?;
            let own = format!("({first} // {} % {})", behind.text(), at.kernel[i].text());
            let ones = ", 1".repeat(dims - 1 - i);
            let start = format!(
                "(op.arange({first}.shape[{}]).reshape(-1{ones}) * {} - {})",
                i + 2,
                at.stride[i],
                pads[i].0.text()
            );
            let text = format!("{place} * {} + {start} + {own} * {}", x.dim(i + 2).text(), at.dilation[i]);
            place = n.bound(&text, x.rank, DType::I64)?.text;
        }
        let places = Tensor::new(place, x.rank, DType::I64);
        n.result(1, Value::Tensor(places));
    }
    n.give(&format!("op.max({}, axis=-1)", all.text), x.rank, x.dtype)
}

/// Elements at the places that `MaxPool` gave, in zeros.
fn unpool(n: &mut Node) -> Result<(), No> {
    let (x, at) = (n.tensor(0)?, n.tensor(1)?);
    let kernel = n.list("kernel_shape").ok_or("it has no `kernel_shape`")?;
    let dims = kernel.len();
    if x.rank != dims + 2 {
        return Err(format!("its window has {dims} dims and its argument {}", x.rank));
    }
    let (strides, pads) =
        (n.list("strides").unwrap_or_else(|| vec![1; dims]), n.list("pads").unwrap_or_else(|| vec![0; 2 * dims]));
    if strides.len() != dims || pads.len() != 2 * dims {
        return Err(format!("its strides and paddings are not those of {dims} dims"));
    }
    let mut sizes = vec![x.dim(0), x.dim(1)];
    for i in 0..dims {
        let less = pads[i].saturating_add(pads[dims + i]).saturating_sub(kernel[i]);
        let steps = x.dim(i + 2).sub(&Int::Known(1)).and_then(|d| d.mul(&Int::Known(strides[i])));
        sizes.push(steps.and_then(|d| d.sub(&Int::Known(less))).ok_or("its size is too large")?);
    }
    let count = sizes.iter().try_fold(Int::Known(1), |all, d| all.mul(d)).ok_or("its size is too large")?;
    let rows = format!("op.zeros(({}, 1), dtype={})", count.text(), x.dtype);
    let call = format!("scatter_rows({rows}, {}.reshape(-1), {}.reshape(-1, 1))", at.text, x.text);
    let call = n.library(&call);
    let y = n.bound(&format!("{call}.reshape({})", tuple(&sizes)), x.rank, x.dtype)?;
    if !n.has(2) {
        n.result(0, Value::Tensor(y));
        return Ok(());
    }
    // A larger shape has zeros behind what there would be without it.
    let wanted = n.ints(2)?;
    let more = wanted.iter().zip(&sizes).map(|(w, own)| Some(format!("(0, {})", w.sub(own)?.text())));
    let more = more.collect::<Option<Vec<_>>>().ok_or("its size is too large")?;
    n.give(&format!("op.pad({}, ({},))", y.text, more.join(", ")), x.rank, x.dtype)
}

/// Roots of sums of powers: a mean over windows in which padding counts as 0, times their size.
fn lp_pool(n: &mut Node) -> Result<(), No> {
    let (x, p) = (n.tensor(0)?, super::reduce::power(n));
    let kernel = n.list("kernel_shape").ok_or("it has no `kernel_shape`")?;
    let count = kernel.iter().try_fold(1i64, |all, k| all.checked_mul(*k)).ok_or("its window is too large")?;
    let at = windows(n, &x, kernel.into_iter().map(Int::Known).collect())?;
    let pads = at.pads.iter().zip(&at.beyond).map(|((b, a), more)| Some((b.clone(), a.add(more)?)));
    let pads_of = pads.collect::<Option<Vec<_>>>().ok_or("its window is too large")?;
    let pairs: Vec<String> = pads_of.iter().map(|(b, a)| tuple(&[b.clone(), a.clone()])).collect();
    let (kernel, stride, pads) = (tuple(&at.kernel), ints(&at.stride), pairs.join(", "));
    if at.dilation.iter().any(|d| *d != 1) {
        let powers = n.bound(&format!("op.abs({}) ** {p:?}", x.text), x.rank, x.dtype)?;
        let all = gathered(n, &powers, &at, &pads_of, "0")?;
        return n.give(&format!("op.sum({}, axis=-1) ** (1.0 / {p:?})", all.text), x.rank, x.dtype);
    }
    let powers = format!("op.abs({}) ** {p:?}", x.text);
    let mean = format!("op.avg_pool({powers}, {kernel}, stride={stride}, padding=({pads},))");
    n.give(&format!("({mean} * {count}.0) ** (1.0 / {p:?})"), x.rank, x.dtype)
}

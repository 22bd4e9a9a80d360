//! Convolutions, pooling, resizing.

use super::Row;
use crate::node::{No, Node};
use crate::value::{Int, Tensor, Value, tuple};

pub const ROWS: &[Row] = &[
    ("Conv", conv),
    ("ConvTranspose", conv_transpose),
    ("MaxPool", |n| pool(n, true)),
    ("AveragePool", |n| pool(n, false)),
    ("Resize", resize),
    ("Upsample", resize),
];

/// How windows lie: one number for each spatial dim.
struct Windows {
    kernel: Vec<Int>,
    stride: Vec<i64>,
    dilation: Vec<i64>,
    pads: Vec<(Int, Int)>,
}

fn list_of(n: &Node, name: &str, dims: usize) -> Result<Vec<i64>, No> {
    let list = n.list(name).unwrap_or_else(|| vec![1; dims]);
    if list.len() == dims && list.iter().all(|k| *k > 0) {
        Ok(list)
    } else {
        Err(format!("`{name}` is {list:?} for {dims} dims"))
    }
}

fn windows(n: &Node, x: &Tensor, kernel: Vec<Int>) -> Result<Windows, No> {
    let dims = kernel.len();
    if x.rank < 3 || dims != x.rank - 2 {
        return Err(format!("its window has {dims} dims and its argument {}", x.rank));
    }
    let (stride, dilation) = (list_of(n, "strides", dims)?, list_of(n, "dilations", dims)?);
    let large = "its window is too large";
    // What a window covers from its first to its last element.
    let span = |i: usize| {
        let steps = kernel[i].sub(&Int::Known(1))?;
        steps.mul(&Int::Known(dilation[i]))?.add(&Int::Known(1))
    };
    let mut pads = vec![];
    let mode = n.text("auto_pad", "NOTSET");
    match &*mode {
        "NOTSET" | "" => {
            let list = n.list("pads").unwrap_or_else(|| vec![0; 2 * dims]);
            if list.len() != 2 * dims || list.iter().any(|p| *p < 0) {
                return Err(format!("its paddings are {list:?}"));
            }
            pads.extend((0..dims).map(|i| (Int::Known(list[i]), Int::Known(list[dims + i]))));
        }
        "VALID" => pads.extend((0..dims).map(|_| (Int::Known(0), Int::Known(0)))),
        "SAME_UPPER" | "SAME_LOWER" => {
            for (i, stride) in stride.iter().enumerate() {
                let span = span(i).ok_or(large)?;
                let total = if *stride == 1 {
                    span.sub(&Int::Known(1)).ok_or(large)?
                } else {
                    let (size, span) = (x.dim(i + 2).text(), span.text());
                    Int::Size(format!("max((({size} - 1) // {stride}) * {stride} + {span} - {size}, 0)"))
                };
                let less = total.div(&Int::Known(2)).ok_or(large)?;
                let more = match total.known() {
                    Some(_) => total.sub(&less).ok_or(large)?,
                    None => Int::Size(format!("({} - {})", total.text(), less.text())),
                };
                pads.push(if mode == "SAME_UPPER" { (less, more) } else { (more, less) });
            }
        }
        other => return Err(format!("`auto_pad` is `{other}`")),
    }
    if n.int("ceil_mode", 0) != 0 {
        for (i, (before, after)) in pads.iter_mut().enumerate() {
            let (size, span) = (x.dim(i + 2), span(i).ok_or(large)?);
            let whole = size.add(before).and_then(|t| t.add(after)).ok_or(large)?.text();
            let stride = stride[i];
            // As much more as the last window lacks, unless it begins behind the elements.
            let (size, before, span) = (size.text(), before.text(), span.text());
            let last = format!("(-(-({whole} - {span}) // {stride}) * {stride})");
            let more = format!("{} + {last} + {span} - {whole}", after.text());
            let less = format!("({stride} if {last} >= {size} + {before} else 0)");
            *after = Int::Size(format!("max({more} - {less}, 0)"));
        }
    }
    Ok(Windows { kernel, stride, dilation, pads })
}

fn ints(list: &[i64]) -> String {
    tuple(&list.iter().copied().map(Int::Known).collect::<Vec<_>>())
}

/// Paddings as an argument: a pair for each dim, or the pair alone.
fn pads_text(pads: &[(Int, Int)]) -> String {
    let pairs: Vec<String> = pads.iter().map(|(b, a)| tuple(&[b.clone(), a.clone()])).collect();
    match pairs.as_slice() {
        [one] => one.clone(),
        all => format!("({})", all.join(", ")),
    }
}

fn conv(n: &mut Node) -> Result<(), No> {
    let (x, w) = (n.tensor(0)?, n.tensor(1)?);
    if w.rank != x.rank || !(3..=5).contains(&x.rank) {
        return Err(format!("its arguments have {} and {} dims", x.rank, w.rank));
    }
    let kernel = match n.list("kernel_shape") {
        Some(list) => list.into_iter().map(Int::Known).collect(),
        None => (2..w.rank).map(|i| w.dim(i)).collect(),
    };
    let at = windows(n, &x, kernel)?;
    let mut text = format!("op.conv{}d({}, {}", x.rank - 2, x.text, w.text);
    if let Some(bias) = n.optional(2)? {
        text.push_str(&format!(", bias={}", bias.text));
    }
    if at.stride.iter().any(|s| *s != 1) {
        text.push_str(&format!(", stride={}", ints(&at.stride)));
    }
    if at.pads.iter().any(|p| *p != (Int::Known(0), Int::Known(0))) {
        text.push_str(&format!(", padding={}", pads_text(&at.pads)));
    }
    if at.dilation.iter().any(|d| *d != 1) {
        text.push_str(&format!(", dilation={}", ints(&at.dilation)));
    }
    let groups = n.int("group", 1);
    if groups != 1 {
        text.push_str(&format!(", groups={groups}"));
    }
    n.give(&format!("{text})"), x.rank, x.dtype)
}

fn conv_transpose(n: &mut Node) -> Result<(), No> {
    let (mut x, mut w) = (n.tensor(0)?, n.tensor(1)?);
    if w.rank != x.rank || !(3..=4).contains(&x.rank) {
        return Err(format!("its arguments have {} and {} dims", x.rank, w.rank));
    }
    if n.attribute("output_shape").is_some() || !matches!(&*n.text("auto_pad", "NOTSET"), "NOTSET" | "VALID" | "") {
        return Err("sizes of the result that are asked for are not supported".into());
    }
    let dims = x.rank - 2;
    let kernel = (2..w.rank).map(|i| w.dim(i)).collect();
    let mut at = windows(n, &x, kernel)?;
    let mut more = n.list("output_padding").unwrap_or_else(|| vec![0; dims]);
    let (rank, dtype) = (x.rank, x.dtype);
    if rank == 3 {
        // One dim is two of which the first has one element.
        x = n.bound(&format!("op.expand_dims({}, 2)", x.text), 4, dtype)?;
        w = n.bound(&format!("op.expand_dims({}, 2)", w.text), 4, dtype)?;
        at.stride.insert(0, 1);
        at.dilation.insert(0, 1);
        at.pads.insert(0, (Int::Known(0), Int::Known(0)));
        more.insert(0, 0);
    }
    let bias = n.optional(2)?.map_or(String::new(), |b| format!(", bias={}", b.text));
    let text = format!(
        "op.conv_transpose2d({}, {}{bias}, stride={}, padding={}, output_padding={}, groups={}, dilation={})",
        x.text,
        w.text,
        ints(&at.stride),
        pads_text(&at.pads),
        ints(&more),
        n.int("group", 1),
        ints(&at.dilation)
    );
    n.give(&if rank == 3 { format!("op.squeeze({text}, 2)") } else { text }, rank, dtype)
}

fn pool(n: &mut Node, largest: bool) -> Result<(), No> {
    n.only_one_result()?;
    let x = n.tensor(0)?;
    let kernel = n.list("kernel_shape").ok_or("it has no `kernel_shape`")?;
    let at = windows(n, &x, kernel.into_iter().map(Int::Known).collect())?;
    if at.dilation.iter().any(|d| *d != 1) {
        return Err("windows with gaps (`dilations`) are not supported".into());
    }
    let padded = at.pads.iter().any(|p| *p != (Int::Known(0), Int::Known(0)));
    let mut args = format!(", {}, stride={}", tuple(&at.kernel), ints(&at.stride));
    if padded {
        let pairs: Vec<String> = at.pads.iter().map(|(b, a)| tuple(&[b.clone(), a.clone()])).collect();
        args.push_str(&format!(", padding=({},)", pairs.join(", ")));
    }
    let text = match largest {
        true => format!("op.max_pool({}{args})", x.text),
        // What is padded does not count.
        false if padded && n.int("count_include_pad", 0) == 0 => {
            format!("op.avg_pool({0}{args}) / op.avg_pool(op.ones_like({0}){args})", x.text)
        }
        false => format!("op.avg_pool({}{args})", x.text),
    };
    n.give(&text, x.rank, x.dtype)
}

/// Another size along some dims: elements at computed places, or between them.
fn resize(n: &mut Node) -> Result<(), No> {
    let mut x = n.tensor(0)?;
    let old = n.node.op == "Upsample" || n.body.opset < 11;
    let axes = match n.list("axes") {
        Some(list) => list.iter().map(|a| x.axis(*a)).collect::<Result<Vec<_>, _>>()?,
        None => (0..x.rank).collect(),
    };
    let scales = match n.value(if old { 1 } else { 2 }) {
        Ok(Value::Constant(t)) if t.elems() != Some(0) => Some(t.floats()?),
        Ok(Value::Constant(_)) | Err(_) => None,
        Ok(_) => return Err("its scales are not known".into()),
    };
    let sizes = if scales.is_none() { Some(n.ints(3)?) } else { None };
    if scales.as_ref().map(Vec::len).or(sizes.as_ref().map(Vec::len)) != Some(axes.len()) {
        return Err(format!("it has another number of scales than of its {} dims", axes.len()));
    }
    let mode = n.text("mode", "nearest");
    if !matches!(&*mode, "nearest" | "linear") || n.int("antialias", 0) != 0 {
        return Err(format!("the mode `{mode}` is not supported; `nearest` and `linear` are"));
    }
    if n.text("keep_aspect_ratio_policy", "stretch") != "stretch" {
        return Err("`keep_aspect_ratio_policy` is not supported".into());
    }
    let places = n.text("coordinate_transformation_mode", if old { "asymmetric" } else { "half_pixel" });
    let known = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"];
    if !known.contains(&&*places) {
        return Err(format!("positions by `{places}` are not supported"));
    }
    let rounding = n.text("nearest_mode", if old { "floor" } else { "round_prefer_floor" });
    let nearest = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"];
    let how = if mode == "linear" { "linear" } else { &*rounding };
    if mode == "nearest" && !nearest.contains(&how) {
        return Err(format!("rounding by `{rounding}` is not supported"));
    }
    for (i, axis) in axes.into_iter().enumerate() {
        let own = x.dim(axis);
        let (size, scale) = match (&scales, &sizes) {
            (Some(scales), _) => match scales[i] {
                1.0 => continue,
                scale => (scaled(&own, scale)?, format!("{scale:?}")),
            },
            (_, Some(sizes)) if sizes[i] == own => continue,
            (_, Some(sizes)) => (sizes[i].clone(), format!("{} / {}", sizes[i].text(), own.text())),
            _ => continue,
        };
        let call = format!("resize({}, {axis}, {}, {scale}, \"{places}\", \"{how}\")", x.text, size.text());
        let call = n.library(&call);
        x = n.bound(&call, x.rank, x.dtype)?;
    }
    n.result(0, Value::Tensor(x));
    Ok(())
}

/// A size times a scale, rounded down, where the scale is a ratio of small numbers.
fn scaled(size: &Int, scale: f64) -> Result<Int, No> {
    if let Int::Known(size) = size {
        return Ok(Int::Known((*size as f64 * scale) as i64));
    }
    let ratio = (1..=64).find(|b| (scale * f64::from(*b) - (scale * f64::from(*b)).round()).abs() < 1e-5);
    let ratio = ratio.filter(|_| scale > 0.0 && scale < 1e6).ok_or(format!("its scale is {scale}"))?;
    let times = size.mul(&Int::Known((scale * f64::from(ratio)).round() as i64));
    times.and_then(|t| t.div(&Int::Known(ratio.into()))).ok_or_else(|| "its size is too large".into())
}

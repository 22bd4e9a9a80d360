//! Convolutions, pooling, resizing.

use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Int, Tensor, Value, literal, tuple};
use tessera_base::DType;

/// What convolutions of every kind follow.
pub const CONVOLVED: &[&str] = &["auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"];

/// The same with a function behind it.
pub const CONVOLVED_AND_ACTIVATED: &[&str] =
    &["activation", "activation_params", "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"];

pub const ROWS: &[Row] = &[
    row("Conv", conv).honours(CONVOLVED),
    row("ConvTranspose", conv_transpose).honours(&[
        "auto_pad",
        "dilations",
        "group",
        "kernel_shape",
        "output_padding",
        "output_shape",
        "pads",
        "strides",
    ]),
    row("Resize", resize)
        .honours(&[
            "antialias",
            "axes",
            "coordinate_transformation_mode",
            "cubic_coeff_a",
            "exclude_outside",
            "keep_aspect_ratio_policy",
            "mode",
            "nearest_mode",
        ])
        // For places outside by `tf_crop_and_resize`, which is refused.
        .ignores(&["extrapolation_value"]),
    row("Upsample", resize).honours(&["mode", "scales", "height_scale", "width_scale"]),
];

/// How windows lie: one number for each spatial dim.
pub struct Windows {
    pub kernel: Vec<Int>,
    pub stride: Vec<i64>,
    pub dilation: Vec<i64>,
    pub pads: Vec<(Int, Int)>,
    /// How far the last windows of `ceil_mode` reach behind the padding.
    pub beyond: Vec<Int>,
}

fn list_of(n: &Node, name: &str, dims: usize) -> Result<Vec<i64>, No> {
    let list = n.list(name).unwrap_or_else(|| vec![1; dims]);
    match list.len() == dims && list.iter().all(|k| *k > 0) {
        true => Ok(list),
        false => n.refuses(name, &format!("it has {dims} dims, and no step is 0 or negative")),
    }
}

pub fn windows(n: &Node, x: &Tensor, kernel: Vec<Int>) -> Result<Windows, No> {
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
        "NOTSET" => {
            let list = n.list("pads").unwrap_or_else(|| vec![0; 2 * dims]);
            if list.len() != 2 * dims || list.iter().any(|p| *p < 0) {
                return n.refuses("pads", &format!("it has {dims} dims, and paddings are not negative"));
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
        _ => return n.refuses("auto_pad", "it is not known"),
    }
    let mut beyond = vec![Int::Known(0); dims];
    if n.int("ceil_mode", 0) != 0 {
        for (i, (before, after)) in pads.iter().enumerate() {
            let (size, span, stride) = (x.dim(i + 2), span(i).ok_or(large)?, stride[i]);
            let whole = size.add(before).and_then(|t| t.add(after)).ok_or(large)?;
            beyond[i] = match (size.known(), before.known(), span.known(), whole.known()) {
                (Some(size), Some(before), Some(span), Some(whole)) => {
                    Int::Known(overhang(size.saturating_add(before), span, whole, stride))
                }
                // The same, for sizes that are known when it runs.
                _ => {
                    let (size, before, span, whole) = (size.text(), before.text(), span.text(), whole.text());
                    let last = format!("(-(-({whole} - {span}) // {stride}) * {stride})");
                    let less = format!("({stride} if {last} >= {size} + {before} else 0)");
                    Int::Size(format!("max({last} + {span} - {whole} - {less}, 0)"))
                }
            };
        }
    }
    Ok(Windows { kernel, stride, dilation, pads, beyond })
}

/// How far the last window reaches behind `whole`, the padded dim: it begins before `end`, where the padding behind
/// the elements begins.
fn overhang(end: i64, span: i64, whole: i64, stride: i64) -> i64 {
    let steps = (whole.saturating_sub(span)).max(0);
    let mut last = (steps + stride - 1) / stride * stride;
    if last >= end {
        last -= stride;
    }
    (last + span - whole).max(0)
}

pub fn ints(list: &[i64]) -> String {
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

/// The kernel of a convolution is its weights'; an attribute may say so once more.
fn kernel(n: &Node, w: &Tensor) -> Result<Vec<Int>, No> {
    let own: Vec<Int> = (2..w.rank).map(|i| w.dim(i)).collect();
    let Some(list) = n.list("kernel_shape") else { return Ok(own) };
    let named: Vec<Int> = list.into_iter().map(Int::Known).collect();
    if named.len() != own.len() || named.iter().zip(&own).any(|(a, b)| a.equals(b) == Some(false)) {
        return n.refuses("kernel_shape", &format!("its weights have {}", tuple(&own)));
    }
    Ok(named)
}

fn conv(n: &mut Node) -> Result<(), No> {
    let (x, w) = (n.tensor(0)?, n.tensor(1)?);
    let bias = n.optional(2)?.map_or(String::new(), |b| format!(", bias={}", b.text));
    let text = convolution(n, &x, &w, &bias)?;
    n.give(&text, x.rank, x.dtype)
}

/// A convolution of ints, whose sums are i32.
pub fn convolved(n: &mut Node, x: &Tensor, w: &Tensor) -> Result<Tensor, No> {
    let text = convolution(n, x, w, "")?;
    n.bound(&format!("{text}.to(i32)"), x.rank, DType::I32)
}

pub fn convolution(n: &mut Node, x: &Tensor, w: &Tensor, bias: &str) -> Result<String, No> {
    if w.rank != x.rank || !(3..=5).contains(&x.rank) {
        return Err(format!("its arguments have {} and {} dims", x.rank, w.rank));
    }
    let kernel = kernel(n, w)?;
    let at = windows(n, x, kernel)?;
    let mut text = format!("op.conv{}d({}, {}{bias}", x.rank - 2, x.text, w.text);
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
    Ok(format!("{text})"))
}

fn conv_transpose(n: &mut Node) -> Result<(), No> {
    let (mut x, mut w) = (n.tensor(0)?, n.tensor(1)?);
    if w.rank != x.rank || !(3..=5).contains(&x.rank) {
        return Err(format!("its arguments have {} and {} dims", x.rank, w.rank));
    }
    let dims = x.rank - 2;
    let kernel = kernel(n, &w)?;
    let mut at = windows(n, &x, kernel)?;
    let more = n.list("output_padding").unwrap_or_else(|| vec![0; dims]);
    if more.len() != dims || more.iter().any(|m| *m < 0) {
        return n.refuses("output_padding", &format!("it has {dims} dims, and paddings are not negative"));
    }
    let mut more: Vec<Int> = more.into_iter().map(Int::Known).collect();
    at.pads = transposed_pads(n, &x, &at, &mut more)?;
    let (rank, dtype) = (x.rank, x.dtype);
    if rank == 5 {
        return stretched(n, &x, &w, &at, &more);
    }
    if rank == 3 {
        // One dim is two of which the first has one element.
        x = n.bound(&format!("op.expand_dims({}, 2)", x.text), 4, dtype)?;
        w = n.bound(&format!("op.expand_dims({}, 2)", w.text), 4, dtype)?;
        at.stride.insert(0, 1);
        at.dilation.insert(0, 1);
        at.pads.insert(0, (Int::Known(0), Int::Known(0)));
        more.insert(0, Int::Known(0));
    }
    let bias = n.optional(2)?.map_or(String::new(), |b| format!(", bias={}", b.text));
    let text = format!(
        "op.conv_transpose2d({}, {}{bias}, stride={}, padding={}, output_padding={}, groups={}, dilation={})",
        x.text,
        w.text,
        ints(&at.stride),
        pads_text(&at.pads),
        tuple(&more),
        n.int("group", 1),
        ints(&at.dilation)
    );
    n.give(&if rank == 3 { format!("op.squeeze({text}, 2)") } else { text }, rank, dtype)
}

/// The paddings of a transposed convolution: as they are told, or those that give a size that is asked for.
fn transposed_pads(n: &Node, x: &Tensor, at: &Windows, more: &mut [Int]) -> Result<Vec<(Int, Int)>, No> {
    let mode = n.text("auto_pad", "NOTSET");
    let wanted = n.list("output_shape");
    if wanted.is_none() && !mode.starts_with("SAME") {
        return Ok(at.pads.clone());
    }
    // Older files name the first two sizes too.
    let wanted = wanted.map(|list| list[list.len().saturating_sub(more.len())..].to_vec());
    if wanted.as_ref().is_some_and(|w| w.len() != more.len()) {
        return n.refuses("output_shape", &format!("it has {} dims", more.len()));
    }
    let mut out = vec![];
    for (i, more) in more.iter_mut().enumerate() {
        let total = || {
            let span = at.kernel[i].sub(&Int::Known(1))?.mul(&Int::Known(at.dilation[i]))?.add(&Int::Known(1))?;
            let reach = span.add(more)?;
            match &wanted {
                Some(sizes) => {
                    let steps = x.dim(i + 2).sub(&Int::Known(1))?.mul(&Int::Known(at.stride[i]))?;
                    steps.add(&reach)?.sub(&Int::Known(sizes[i]))
                }
                None => reach.sub(&Int::Known(at.stride[i])),
            }
        };
        let (total, none) = (total().ok_or("its window is too large")?, Int::Known(0));
        // What the windows do not reach is there all the same.
        let beyond = none.sub(&total).and_then(|t| t.max(&none)).ok_or("its window is too large")?;
        let total = total.max(&none).ok_or("its window is too large")?;
        *more = more.add(&beyond).ok_or("its window is too large")?;
        let less = total.div(&Int::Known(2)).ok_or("its window is too large")?;
        let rest = match total.known() {
            Some(_) => total.sub(&less).ok_or("its window is too large")?,
            None => Int::Size(format!("({} - {})", total.text(), less.text())),
        };
        out.push(if mode == "SAME_UPPER" { (less, rest) } else { (rest, less) });
    }
    Ok(out)
}

/// A transposed convolution as one of the argument with zeros between its elements, by the flipped window.
fn stretched(n: &mut Node, x: &Tensor, w: &Tensor, at: &Windows, more: &[Int]) -> Result<(), No> {
    let (dims, large) = (at.kernel.len(), "its window is too large");
    let mut t = x.text.clone();
    let mut sizes = x.dims();
    for i in 0..dims {
        let stride = at.stride[i];
        if stride == 1 {
            continue;
        }
        let pads: Vec<String> =
            (0..=x.rank).map(|k| if k == i + 3 { format!("(0, {})", stride - 1) } else { "(0, 0)".into() }).collect();
        sizes[i + 2] = sizes[i + 2].mul(&Int::Known(stride)).ok_or(large)?;
        let wide = format!("op.pad(op.expand_dims({t}, {}), ({},)).reshape({})", i + 3, pads.join(", "), tuple(&sizes));
        let cut = format!("{wide}[{}:{}]", ":, ".repeat(i + 2), 1 - stride);
        t = n.bound(&cut, x.rank, x.dtype)?.text;
        sizes[i + 2] = sizes[i + 2].sub(&Int::Known(stride - 1)).ok_or(large)?;
    }
    let groups = n.int("group", 1);
    let axes: Vec<String> = (2..x.rank).map(|i| i.to_string()).collect();
    let kernel: Vec<String> = at.kernel.iter().map(Int::text).collect();
    let (inputs, outputs) = (w.dim(0).text(), w.dim(1).text());
    let order: Vec<String> = (3..x.rank + 1).map(|i| i.to_string()).collect();
    let flipped = format!(
        "op.flip({}, axis=({})).reshape({groups}, {inputs} // {groups}, {outputs}, {k}).transpose(0, 2, 1, {}).reshape({groups} * {outputs}, {inputs} // {groups}, {k})",
        w.text,
        axes.join(", "),
        order.join(", "),
        k = kernel.join(", ")
    );
    let w = n.bound(&flipped, w.rank, w.dtype)?.text;
    let mut sides = vec![];
    for (i, more) in more.iter().enumerate() {
        let reach = at.kernel[i].sub(&Int::Known(1)).and_then(|k| k.mul(&Int::Known(at.dilation[i]))).ok_or(large)?;
        let before = reach.sub(&at.pads[i].0).ok_or(large)?;
        let after = reach.sub(&at.pads[i].1).and_then(|a| a.add(more)).ok_or(large)?;
        if before.known().is_some_and(|b| b < 0) || after.known().is_some_and(|a| a < 0) {
            return n.refuses("pads", "they reach further than the windows");
        }
        sides.push((before, after));
    }
    let bias = n.optional(2)?.map_or(String::new(), |b| format!(", bias={}", b.text));
    let (pads, dilation) = (pads_text(&sides), ints(&at.dilation));
    let text = format!("op.conv3d({t}, {w}{bias}, padding={pads}, dilation={dilation}, groups={groups})");
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
    let scales = scales(n, if old { 1 } else { 2 })?;
    let sizes = if scales.is_none() { Some(n.sizes(3)?) } else { None };
    if scales.as_ref().map(Vec::len).or(sizes.as_ref().map(Vec::len)) != Some(axes.len()) {
        return Err(format!("it has another number of scales than of its {} dims", axes.len()));
    }
    // The first version names two dims.
    let mode = n.text("mode", "nearest").replace("bilinear", "linear");
    if mode != "nearest" && !x.dtype.is_float() {
        return n.refuses("mode", &format!("what lies between elements of {} is none of them", x.dtype));
    }
    let places = n.text("coordinate_transformation_mode", if old { "asymmetric" } else { "half_pixel" });
    let known = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"];
    if !known.contains(&&*places) {
        return n.refuses("coordinate_transformation_mode", &format!("`{}` are supported", known.join("`, `")));
    }
    let rounding = n.text("nearest_mode", if old { "floor" } else { "round_prefer_floor" });
    let nearest = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"];
    if mode == "nearest" && !nearest.contains(&&*rounding) {
        return n.refuses("nearest_mode", "it is not known");
    }
    // Sums of more than two elements, or over what a smaller picture leaves out.
    let (inside, wide) = (n.int("exclude_outside", 0) != 0, n.int("antialias", 0) != 0);
    let smooth = mode == "cubic" || (mode == "linear" && wide);
    let mut sizes = sizes;
    let mut scales = scales;
    let policy = n.text("keep_aspect_ratio_policy", "stretch");
    if let (Some(wanted), true) = (&sizes, policy != "stretch") {
        let larger = policy == "not_smaller";
        let scale = one_scale(n, &x, &axes, wanted, larger)?;
        let size = |axis: &usize| Some(Int::Known((x.dim(*axis).known()? as f64 * scale + 0.5).floor() as i64));
        sizes = axes.iter().map(size).collect();
        scales = Some(vec![Int::Real(scale); axes.len()]);
    }
    for (i, axis) in axes.into_iter().enumerate() {
        let own = x.dim(axis);
        let (size, scale) = match (&scales, &sizes) {
            (Some(scales), Some(sizes)) => (sizes[i].clone(), literal(scales[i].real().unwrap_or(1.0), DType::F64)),
            (Some(scales), _) => match &scales[i] {
                Int::Real(1.0) | Int::Known(1) => continue,
                // The number that was written down: f32 rounded it, and places at borders would follow that.
                Int::Real(scale) => (scaled(&own, *scale)?, literal(*scale, DType::F32)),
                scale => {
                    let text = scale.text();
                    (Int::Size(format!("int(math.floor({} * {text}))", own.text())), text)
                }
            },
            (_, Some(sizes)) if sizes[i] == own => continue,
            (_, Some(sizes)) => (sizes[i].clone(), format!("{} / {}", sizes[i].text(), own.text())),
            _ => continue,
        };
        // Version 10 takes the next element above where there are fewer than before.
        let fewer = n.node.op == "Resize"
            && n.body.opset < 11
            && scales.as_ref().is_some_and(|s| s[i].real().is_some_and(|s| s < 1.0));
        let rounding = if fewer { "ceil" } else { &*rounding };
        let at = format!("{}, {axis}, {}, {scale}, \"{places}\"", x.text, size.text());
        let call = match &*mode {
            _ if smooth => {
                let a = n.literal("cubic_coeff_a", -0.75, DType::F32);
                let mut more = format!(", \"{mode}\", {a}");
                if inside {
                    more.push_str(", inside=True");
                }
                if wide {
                    more.push_str(", wide=True");
                }
                n.library(&format!("resize_smooth({at}{more})"))
            }
            "linear" => n.library(&format!("resize_linear({at})")),
            _ => n.library(&format!("resize({at}, \"{rounding}\")")),
        };
        x = n.bound(&call, x.rank, x.dtype)?;
    }
    n.result(0, Value::Tensor(x));
    Ok(())
}

/// One scale for all dims: the largest with which none is larger than asked for, or the smallest with which none is
/// smaller.
fn one_scale(n: &Node, x: &Tensor, axes: &[usize], wanted: &[Int], larger: bool) -> Result<f64, No> {
    let ratios = axes.iter().zip(wanted).map(|(axis, size)| Some(size.known()? as f64 / x.dim(*axis).known()? as f64));
    let Some(ratios) = ratios.collect::<Option<Vec<_>>>() else {
        return n.refuses("keep_aspect_ratio_policy", "its sizes depend on sizes of inputs");
    };
    let pick = if larger { f64::max } else { f64::min };
    ratios.into_iter().reduce(pick).ok_or_else(|| "it names no dims".into())
}

/// The scales of a node, an argument or (before version 9) attributes; `None` where there are sizes instead.
fn scales(n: &Node, i: usize) -> Result<Option<Vec<Int>>, No> {
    if n.attribute("height_scale").is_some() {
        let [high, wide] = ["height_scale", "width_scale"].map(|name| n.float(name, 1.0));
        return Ok(Some([1.0, 1.0, high, wide].map(Int::Real).to_vec()));
    }
    if n.attribute("scales").is_some() {
        return Ok(Some(n.floats("scales").into_iter().map(|x| Int::Real(f64::from(x))).collect()));
    }
    if !n.has(i) {
        return Ok(None);
    }
    match n.value(i)? {
        Value::Constant(t) if t.elems() == Some(0) => Ok(None),
        Value::Constant(t) => Ok(Some(t.floats()?.into_iter().map(Int::Real).collect())),
        Value::Ints(numbers) if numbers.elems.is_empty() => Ok(None),
        Value::Ints(numbers) => Ok(Some(numbers.elems)),
        _ => Err("its scales are not known".into()),
    }
}

/// A size times a scale, rounded down, where the scale is a ratio of small numbers.
fn scaled(size: &Int, scale: f64) -> Result<Int, No> {
    if let Int::Known(size) = size {
        // In f32, as the standard has it.
        return Ok(Int::Known((*size as f32 * scale as f32).floor() as i64));
    }
    let ratio = (1..=64).find(|b| (scale * f64::from(*b) - (scale * f64::from(*b)).round()).abs() < 1e-5);
    let ratio = ratio.filter(|_| scale > 0.0 && scale < 1e6).ok_or(format!("its scale is {scale}"))?;
    let times = size.mul(&Int::Known((scale * f64::from(ratio)).round() as i64));
    times.and_then(|t| t.div(&Int::Known(ratio.into()))).ok_or_else(|| "its size is too large".into())
}

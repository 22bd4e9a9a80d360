//! Fourier transforms and windows, and elements at places of a grid: their functions are in `std.onnx`.

use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Int, Tensor, literal, tuple};
use tessera_base::DType;
use tessera_runtime::io::onnx;

const WINDOW: &[&str] = &["output_datatype", "periodic"];

pub const ROWS: &[Row] = &[
    row("DFT", dft).honours(&["axis", "inverse", "onesided"]),
    row("STFT", stft).honours(&["onesided"]),
    row("HannWindow", |n| window(n, "(0.5, 0.5, 0.0)")).honours(WINDOW),
    row("HammingWindow", |n| window(n, "(25.0 / 46.0, 21.0 / 46.0, 0.0)")).honours(WINDOW),
    row("BlackmanWindow", |n| window(n, "(0.42, 0.5, 0.08)")).honours(WINDOW),
    row("GridSample", |n| {
        let (x, grid) = (n.tensor(0)?, n.tensor(1)?);
        // The first version names two dims.
        let how = n.text("mode", "linear");
        let how = how.strip_prefix("bi").unwrap_or(&how);
        let corners = if n.int("align_corners", 0) != 0 { "True" } else { "False" };
        let padding = n.text("padding_mode", "zeros");
        let args = format!("{}, {}, how=\"{how}\", padding=\"{padding}\", corners={corners}", x.text, grid.text);
        let call = n.library(&format!("grid_sample({args})"));
        n.give(&call, x.rank, x.dtype)
    })
    .honours(&["align_corners", "mode", "padding_mode"]),
    row("AffineGrid", |n| {
        let (theta, sizes) = (n.tensor(0)?, n.sizes(1)?);
        let Some(dims) = sizes.get(2..) else { return Err("its sizes are fewer than 3".into()) };
        let corners = if n.int("align_corners", 0) != 0 { ", corners=True" } else { "" };
        let call = n.library(&format!("affine_grid({}, {}{corners})", theta.text, tuple(dims)));
        n.give(&call, dims.len() + 2, theta.dtype)
    })
    .honours(&["align_corners"]),
    row("MelWeightMatrix", mel).honours(&["output_datatype"]),
    row("CenterCropPad", centered).honours(&["axes"]),
];

fn dft(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    let axis = match n.schema.since {
        ..20 => n.int("axis", 1),
        _ if n.has(2) => n.one(2)?.known().ok_or("its axis depends on sizes")?,
        _ => -2,
    };
    let axis = x.axis(axis)?;
    if axis + 1 == x.rank {
        return Err("its axis is the one of the parts of complex numbers".into());
    }
    let length = if n.has(1) { format!(", n={}", n.size(1)?.text()) } else { String::new() };
    let args = format!("{}{length}, axis={axis}", x.text);
    let call = match (n.int("onesided", 0) != 0, n.int("inverse", 0) != 0) {
        (true, false) => format!("rdft({args})"),
        (true, true) => format!("irdft({args})"),
        (false, false) => format!("dft({args})"),
        (false, true) => format!("dft({args}, inverse=True)"),
    };
    let call = n.library(&call);
    n.give(&call, x.rank, x.dtype)
}

fn stft(n: &mut Node) -> Result<(), No> {
    let (mut x, step) = (n.tensor(0)?, n.size(1)?);
    if x.rank == 2 {
        x = n.bound(&format!("op.expand_dims({}, -1)", x.text), 3, x.dtype)?;
    }
    let window = n.optional(2)?;
    let length = match (n.has(3), &window) {
        (true, _) => n.size(3)?,
        (false, Some(window)) => window.dim(0),
        (false, None) => return Err("it has neither a window nor a length".into()),
    };
    let window = window.map_or(String::new(), |w| format!(", window={}", w.text));
    let call = n.library(&format!("frames({}, {}, {}{window})", x.text, step.text(), length.text()));
    let parts = n.bound(&call, 4, x.dtype)?;
    let name = if n.int("onesided", 1) != 0 { "rdft" } else { "dft" };
    let call = n.library(&format!("{name}({}, axis=2)", parts.text));
    n.give(&call, 4, x.dtype)
}

fn window(n: &mut Node, parts: &str) -> Result<(), No> {
    let size = n.size(0)?;
    let dtype =
        onnx::dtype(n.int("output_datatype", 1)).map_err(|why| format!("its attribute `output_datatype`: {why}"))?;
    let periodic = if n.int("periodic", 1) != 0 { "True" } else { "False" };
    let call = n.library(&format!("cosine_window({}, {parts}, {periodic})", size.text()));
    n.give(&format!("{call}.to({dtype})"), 1, dtype)
}

/// Shares of a spectrum in bins of the mel scale.
fn mel(n: &mut Node) -> Result<(), No> {
    let (bins, length, rate) = (n.size(0)?.text(), n.size(1)?.text(), n.size(2)?.text());
    let mut ends = vec![];
    for i in [3, 4] {
        ends.push(match n.number(i) {
            Ok(x) => literal(x.ok_or("it lacks a frequency")?, DType::F64),
            Err(_) => n.read(i)?,
        });
    }
    let dtype =
        onnx::dtype(n.int("output_datatype", 1)).map_err(|why| format!("its attribute `output_datatype`: {why}"))?;
    let call = n.library(&format!("mel_weights({bins}, {length}, {rate}, {})", ends.join(", ")));
    n.give(&format!("{call}.to({dtype})"), 2, dtype)
}

/// The middle of a tensor, or the tensor in the middle of zeros.
fn centered(n: &mut Node) -> Result<(), No> {
    let (x, wanted) = (n.tensor(0)?, n.sizes(1)?);
    let axes = match n.list("axes") {
        Some(list) => list.iter().map(|a| x.axis(*a)).collect::<Result<Vec<_>, No>>()?,
        None => (0..x.rank).collect(),
    };
    if axes.len() != wanted.len() {
        return Err(format!("it has {} sizes for {} dims", wanted.len(), axes.len()));
    }
    let zero = Int::Known(0);
    let mut ranges = vec![":".to_owned(); x.rank];
    let mut pads = vec!["(0, 0)".to_owned(); x.rank];
    for (axis, size) in axes.into_iter().zip(&wanted) {
        let parts = || {
            let own = x.dim(axis);
            let (less, more) = (own.sub(size)?.max(&zero)?, size.sub(&own)?.max(&zero)?);
            let (start, before) = (less.div(&Int::Known(2))?, more.div(&Int::Known(2))?);
            Some((start.add(&own.min(size)?)?, start, more.sub(&before)?, before))
        };
        let (end, start, after, before) = parts().ok_or("its sizes are too large")?;
        ranges[axis] = format!("{}:{}", start.text(), end.text());
        pads[axis] = tuple(&[before, after]);
    }
    let cut = Tensor::new(format!("{}[{}]", x.text, ranges.join(", ")), x.rank, x.dtype);
    let value = if x.dtype == DType::Bool { ", value=False" } else { "" };
    n.give(&format!("op.pad({}, ({},){value})", cut.text, pads.join(", ")), x.rank, x.dtype)
}

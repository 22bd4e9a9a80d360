//! Regions of images: aligned, moved, and put together from blocks. Their functions are in `std.onnx_images`.

use super::windows::{ints, windows};
use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Int, Tensor, tuple};

pub const ROWS: &[Row] = &[
    row("RoiAlign", |n| {
        let (x, rois, pictures) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
        let (high, wide) = (n.int("output_height", 1), n.int("output_width", 1));
        let samples = n.int("sampling_ratio", 0);
        for (name, value) in [("output_height", high), ("output_width", wide)] {
            if value < 1 {
                return n.refuses(name, "a region has places");
            }
        }
        if !(0..=1024).contains(&samples) {
            return n.refuses("sampling_ratio", "0 to 1024 are supported");
        }
        let scale = n.literal("spatial_scale", 1.0, tessera_base::DType::F32);
        // The first version has no half pixel.
        let half = n.text("coordinate_transformation_mode", "output_half_pixel") == "half_pixel";
        let (half, largest) = (python(half), python(n.text("mode", "avg") == "max"));
        let args = format!(
            "{}, {}, {}, {high}, {wide}, {samples}, {scale}, half={half}, largest={largest}",
            x.text, rois.text, pictures.text
        );
        let call = n.library(&format!("roi_align({args})"));
        n.give(&call, 4, x.dtype)
    })
    .honours(&[
        "coordinate_transformation_mode",
        "mode",
        "output_height",
        "output_width",
        "sampling_ratio",
        "spatial_scale",
    ]),
    row("DeformConv", deformed).honours(&["dilations", "group", "kernel_shape", "offset_group", "pads", "strides"]),
    row("Col2Im", from_columns).honours(&["dilations", "pads", "strides"]),
];

fn python(yes: bool) -> &'static str {
    if yes { "True" } else { "False" }
}

fn deformed(n: &mut Node) -> Result<(), No> {
    let (x, w, offset) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
    if [x.rank, w.rank, offset.rank] != [4; 3] {
        return Err("it is supported for pictures, whose tensors have 4 dims".into());
    }
    let own: Vec<Int> = (2..4).map(|i| w.dim(i)).collect();
    if let Some(list) = n.list("kernel_shape")
        && (list.len() != 2 || own.iter().zip(&list).any(|(a, b)| a.equals(&Int::Known(*b)) == Some(false)))
    {
        return n.refuses("kernel_shape", &format!("its weights have {}", tuple(&own)));
    }
    let at = windows(n, &x, own)?;
    let mut extra = |i: usize| -> Result<String, No> { Ok(n.optional(i)?.map_or("None".into(), |t| t.text)) };
    let (bias, mask) = (extra(3)?, extra(4)?);
    let (groups, offsets) = (n.int("group", 1), n.int("offset_group", 1));
    if groups < 1 || offsets < 1 {
        return Err("it has no groups".into());
    }
    let before: Vec<Int> = at.pads.iter().map(|(b, _)| b.clone()).collect();
    let args = format!(
        "{}, {}, {}, {mask}, {bias}, {}, {}, {}, {groups}, {offsets}",
        x.text,
        w.text,
        offset.text,
        ints(&at.stride),
        tuple(&before),
        ints(&at.dilation)
    );
    let call = n.library(&format!("deform_conv({args})"));
    n.give(&call, 4, x.dtype)
}

fn from_columns(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    let (sizes, block) = (n.ints(1)?, n.known(2)?);
    let dims = sizes.len();
    if x.rank != 3 || block.len() != dims || dims == 0 || block.iter().any(|b| *b < 1) {
        return Err(format!("its blocks have {} dims, its image {dims}, and its argument {}", block.len(), x.rank));
    }
    let list = |n: &Node, name: &str, otherwise: i64, count: usize| -> Result<Vec<i64>, No> {
        let list = n.list(name).unwrap_or_else(|| vec![otherwise; count]);
        match list.len() == count && list.iter().all(|k| *k >= otherwise) {
            true => Ok(list),
            false => n.refuses(name, &format!("it has {dims} dims, and none is less than {otherwise}")),
        }
    };
    let (dilations, strides) = (list(n, "dilations", 1, dims)?, list(n, "strides", 1, dims)?);
    let pads = list(n, "pads", 0, 2 * dims)?;
    let mut padded = vec![];
    let mut ranges = String::new();
    for (i, size) in sizes.iter().enumerate() {
        let (before, after) = (pads[i], pads[dims + i]);
        let whole = size.add(&Int::Known(before)).and_then(|s| s.add(&Int::Known(after)));
        padded.push(whole.ok_or("its image is too large")?);
        let end = size.add(&Int::Known(before)).ok_or("its image is too large")?;
        ranges.push_str(&format!(", {before}:{}", end.text()));
    }
    let args = format!("{}, {}, {}, {}, {}", x.text, tuple(&padded), ints(&block), ints(&dilations), ints(&strides));
    let call = n.library(&format!("col2im({args})"));
    let y: Tensor = n.bound(&call, dims + 2, x.dtype)?;
    n.give(&format!("{}[:, :{ranges}]", y.text), dims + 2, x.dtype)
}

//! `conv_transpose2d`: the transposed convolution, as convolutions between the input's elements.
//!
//! With stride `s` the positions of the result fall into `s` phases along each dim. Position
//! `q * s + f` meets only the kernel elements `k` with `k * dilation ≡ f + padding (mod s)`, and
//! these walk over neighbouring input elements: each phase is a convolution of stride 1 with
//! part of the kernel. Nothing is multiplied with zeros that the stride would put in between.

use super::conv::{add_bias, bias, groups, matrix, meeting, product, ranks, sum_type};
use super::expand;
use super::row::{Call, Lowered, Row, accumulator, opt, req};
use super::rule::{self, Inferred};
use super::windows::{self, Dim, Known};
use super::*;
use std::collections::BTreeSet;

/// Dims of the kernel.
const N: usize = 2;

pub const CONV_TRANSPOSE2D: Row = Row::new(
    "conv_transpose2d",
    &[
        req("x", ParamKind::Tensor),
        req("weight", ParamKind::Tensor),
        opt("bias", ParamKind::Tensor, Default::None),
        opt("stride", ParamKind::Ints, Default::Int(1)),
        opt("padding", ParamKind::Pairs, Default::Int(0)),
        opt("output_padding", ParamKind::Ints, Default::Int(0)),
        opt("groups", ParamKind::Int, Default::Int(1)),
        opt("dilation", ParamKind::Ints, Default::Int(1)),
    ],
    infer,
    lower,
)
.known_as(&["ConvTranspose2d", "deconv", "deconv2d"])
.signature("n c h w, c o kh kw -> n o p q")
.product_of(&[0, 1])
.halves()
.doc(
    "Transposed convolution over two dims: `x` is [N, C, H, W] (or [C, H, W]), `weight` [C, O/groups, KH, KW], as in PyTorch.\n\n\
     The transpose of `conv2d` with the same stride, padding and dilation as a map of its input: a dim of size D gives \
     (D - 1) * stride - before - after + dilation * (K - 1) + 1 + output_padding positions. `padding` is one int, one for \
     each dim, or a pair (before, after) for each dim. Each element is summed in the order of a \
     product over (channel, input row, input column).\n\n\
     E0202: the channels differ. E0711: the result would be empty, or the groups do not divide the channels.\n\n\
     ```tessera\nop.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)\n```",
);

fn geometry(args: &[SymArg]) -> Result<Vec<Dim>, OpError> {
    let w = rule::tensor(args, 1)?;
    if let Some(SymArg::Str(_)) = args.get(4) {
        return Err(OpError::new(Code::E0204, "the padding of a transposed convolution is given in numbers")
            .arg(4, "one for each dim, or a pair (before, after)"));
    }
    let strides = windows::each(args, 3, N, "a stride", 1)?;
    let dilations = windows::each(args, 7, N, "a dilation", 1)?;
    let zero = || Size::constant(0);
    let dims = (0..N).map(|d| Dim {
        kernel: w.shape[2 + d].clone(),
        stride: strides[d].clone(),
        dilation: dilations[d].clone(),
        low: zero(),
        high: zero(),
    });
    windows::padding(args, 4, dims.collect())
}

fn infer(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    ranks("conv_transpose2d", N, args, "[C, O, KH, KW]")?;
    let (x, w) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    let dtype = meeting("conv_transpose2d", args)?;
    let lead = x.rank() - N - 1;
    let channels = &x.shape[lead];
    let groups = groups(args, 6, channels, 0, "input")?;
    let text = || format!("the input has {channels} channels, and the weights are for {}", w.shape[0]);
    rule::require(cx, channels, &w.shape[0], Code::E0202, text, |e| {
        let e = e.arg(0, format!("{x}: {channels} channels")).arg(1, format!("{w}: {} channels", w.shape[0]));
        if *channels == w.shape[1] { e.help("the input channels go first: `{weight}.swapaxes(0, 1)`") } else { e }
    })?;
    let outputs = w.shape[1].mul(&groups);
    bias(cx, args, 2, &outputs)?;
    let mut shape = x.shape[..lead].to_vec();
    shape.push(outputs);
    let (one, extra) = (Size::constant(1), windows::each(args, 5, N, "output padding", 0)?);
    for (d, dim) in geometry(args)?.iter().enumerate() {
        windows::steps_forward(cx, dim);
        if let (Some(e), Some(s), Some(l)) = (extra[d].as_const(), dim.stride.as_const(), dim.dilation.as_const())
            && e >= s.max(l)
        {
            let text = format!("output padding of {e} is not less than the stride or the dilation");
            return Err(OpError::new(Code::E0711, text).arg(5, format!("the stride is {s}, the dilation {l}")));
        }
        if dim.kernel.is_zero() {
            return Err(
                OpError::new(Code::E0711, "a kernel has at least one element in each dim").arg(1, w.to_string())
            );
        }
        let reach = windows::reach(dim, |e| e.arg(1, w.to_string()))?;
        let padding = windows::padded(&Size::constant(0), dim, |e| e.arg(0, x.to_string()))?;
        let size = x.shape[lead + 1 + d].sub(&one).mul(&dim.stride).add(&reach).add(&extra[d]).sub(&padding);
        if size.as_const().is_some_and(|n| n < 1) {
            let text = format!("the padding leaves {size} elements along axis {}", lead + 1 + d);
            return Err(OpError::new(Code::E0711, text).arg(0, x.to_string()).arg(1, w.to_string()));
        }
        shape.push(size);
    }
    rule::one(shape, sum_type(args, dtype)?)
}

/// The kernel elements that one phase of a dim meets, and where it reads the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Phase {
    /// Kernel elements `first + j * step` for `j` below `taps`.
    first: u64,
    step: u64,
    taps: u64,
    /// Input elements between neighbouring taps.
    dilation: u64,
    /// The input element that position 0 meets with the last tap; may lie outside.
    start: i64,
}

/// Neighbouring phases that meet no element of the kernel, or one that meets some.
struct Run {
    phase: Option<u64>,
    count: u64,
}

/// Phases that the result has positions of.
fn phases(dim: &Known) -> u64 {
    dim.stride.min(dim.count)
}

/// The phases of a dim in order: a few that are computed, and zeros between them, however large the stride is.
fn runs(dim: &Known) -> Vec<Run> {
    let (s, low) = (i128::from(dim.stride), i128::from(dim.low));
    let met = |k: u64| (i128::from(k) * i128::from(dim.dilation) - low).rem_euclid(s) as u64;
    let met: BTreeSet<u64> = (0..dim.kernel).map(met).filter(|f| *f < phases(dim)).collect();
    let (mut out, mut next) = (vec![], 0);
    for f in met {
        if f > next {
            out.push(Run { phase: None, count: f - next });
        }
        out.push(Run { phase: Some(f), count: 1 });
        next = f + 1;
    }
    if next < phases(dim) || out.is_empty() {
        out.push(Run { phase: None, count: phases(dim) - next });
    }
    out
}

/// Phase `f` of a dim.
fn phase(dim: &Known, f: u64) -> Phase {
    let (s, d) = (dim.stride, dim.dilation);
    let rest = (f + dim.low) % s;
    let whole = ((f + dim.low) / s) as i64;
    let step = s / gcd(s, d);
    let first = (0..step.min(dim.kernel)).find(|k| k * d % s == rest);
    let Some(first) = first else { return Phase { first: 0, step, taps: 0, dilation: 1, start: 0 } };
    let taps = (dim.kernel - first).div_ceil(step);
    let dilation = d * step / s;
    let start = whole - ((first * d - rest) / s) as i64 - ((taps - 1) * dilation) as i64;
    Phase { first, step, taps, dilation, start }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn lower(call: &mut Call) -> Lowered {
    let (out, _) = call.result();
    let dtype = meeting("conv_transpose2d", &call.sym)?.unwrap_or(DType::F32);
    let accum = accumulator(dtype, call.hints);
    let counts = &out[out.len() - N..];
    let dims = windows::known(&geometry(&call.sym)?, counts)?;
    let groups = rule::int_const(&call.sym, 6, "the number of groups")? as u64;
    let (x, w) = (call.id(0)?, call.id(1)?);
    let b = &mut *call.b;
    let (x, w) = (expand::cast(b, x, dtype), expand::cast(b, w, dtype));
    let (sx, sw) = (b.shape(x), b.shape(w));
    let batch = sx[..sx.len() - N - 1].iter().product();
    let inside = sw[0] / groups;
    let x = expand::reshape(b, x, &[&[batch, groups, inside], &sx[sx.len() - N..]].concat());
    let w = expand::reshape(b, w, &[groups, inside, sw[1], sw[2], sw[3]]);
    // Positions of every phase, the last of which may lie beyond the result.
    let places: Vec<u64> = dims.iter().map(|d| d.count.div_ceil(d.stride)).collect();
    let [rows, columns] = [runs(&dims[0]), runs(&dims[1])];
    let channels = groups * sw[1];
    let zeros = |b: &mut dyn Build, rows: u64, columns: u64| {
        let shape = [batch, channels, places[0], rows, places[1], columns];
        expand::full(b, &shape, accum, Scalar::F(0.0))
    };
    let mut parts = vec![];
    for row in &rows {
        let Some(f) = row.phase else {
            parts.push(zeros(b, row.count, phases(&dims[1])));
            continue;
        };
        let mut row = vec![];
        for column in &columns {
            row.push(match column.phase {
                Some(g) => {
                    let y = one_phase(b, x, w, &[phase(&dims[0], f), phase(&dims[1], g)], &places, accum);
                    expand::reshape(b, y, &[batch, channels, places[0], 1, places[1], 1])
                }
                None => zeros(b, 1, column.count),
            });
        }
        parts.push(expand::concat(b, &row, 5));
    }
    let y = expand::concat(b, &parts, 3);
    let full: Vec<u64> = dims.iter().zip(&places).map(|(d, p)| phases(d) * p).collect();
    let mut y = expand::reshape(b, y, &[batch, groups * sw[1], full[0], full[1]]);
    for (d, &count) in counts.iter().enumerate() {
        y = expand::slice(b, y, 2 + d, 0, count);
    }
    let y = add_bias(call, 2, y)?;
    Ok(vec![expand::reshape(call.b, y, &out)])
}

/// The positions of one phase: `[n, groups, o, places…]` with the last two dims joined.
fn one_phase(b: &mut dyn Build, x: Id, w: Id, phases: &[Phase; N], places: &[u64], accum: DType) -> Id {
    let (sx, sw) = (b.shape(x), b.shape(w));
    let count = places.iter().product();
    if phases.iter().any(|p| p.taps == 0) {
        return expand::full(b, &[sx[0], sx[1], sw[2], count], accum, Scalar::F(0.0));
    }
    let (mut x, mut w) = (x, w);
    let mut dims = vec![];
    for (d, (p, &places)) in phases.iter().zip(places).enumerate() {
        x = region(b, x, 3 + d, p.start, places + (p.taps - 1) * p.dilation);
        w = taps(b, w, 3 + d, p);
        dims.push(Known { kernel: p.taps, stride: 1, dilation: p.dilation, low: 0, high: 0, count: places });
    }
    let view = windows::slide(b, x, &dims);
    let right = matrix(b, view, N);
    // [groups, c, o, k…] -> [groups, o, c·k…]
    let w = expand::transpose(b, w, &[0, 2, 1, 3, 4]);
    let depth = b.shape(right)[2];
    let left = expand::reshape(b, w, &[sw[0], sw[2], depth]);
    product(b, left, right, phases.iter().map(|p| p.taps).product(), accum)
}

/// `length` elements along `axis` from `start` on, zeros outside.
fn region(b: &mut dyn Build, x: Id, axis: usize, start: i64, length: u64) -> Id {
    let size = b.shape(x)[axis] as i64;
    let end = start + length as i64;
    let (from, to) = (start.clamp(0, size), end.clamp(0, size));
    let x = expand::slice(b, x, axis, from as u64, (to - from).max(0) as u64);
    let (before, after) = (from - start, end - to);
    let (mut shape, dtype) = (b.shape(x), b.dtype(x));
    // Regions beside the input hold zeros only.
    let (before, after) = if to <= from { (0, length as i64) } else { (before, after) };
    if before == 0 && after == 0 {
        return x;
    }
    let (mut low, mut high) = (vec![0; shape.len()], vec![0; shape.len()]);
    (low[axis], high[axis]) = (before as u64, after as u64);
    shape[axis] = length;
    let zero = expand::full(b, &[], dtype, Scalar::F(0.0));
    b.push(Prim::Pad { low, high }, &[x, zero], shape, dtype)
}

/// The kernel elements of a phase along `axis`, the last one first: in ascending order of the input.
fn taps(b: &mut dyn Build, w: Id, axis: usize, p: &Phase) -> Id {
    let (mut shape, dtype) = (b.shape(w), b.dtype(w));
    if p.taps == shape[axis] && p.taps == 1 {
        return w;
    }
    let (mut start, mut step) = (vec![0; shape.len()], vec![1; shape.len()]);
    start[axis] = (p.first + (p.taps - 1) * p.step) as i64;
    step[axis] = -(p.step as i64);
    shape[axis] = p.taps;
    b.push(Prim::Slice { start, step }, &[w], shape, dtype)
}

//! Sliding windows as convolution and pooling share them: kernel sizes, strides, dilations and
//! padding of each dim, with the number of windows.

use super::expand;
use super::rule;
use super::*;

/// The windows along one dim.
#[derive(Clone, PartialEq, Debug)]
pub struct Dim {
    pub kernel: Size,
    pub stride: Size,
    pub dilation: Size,
    /// Elements added before and after.
    pub low: Size,
    pub high: Size,
}

/// One int for all of `n` dims, or one for each; each at least `least`.
pub fn each(args: &[SymArg], i: usize, n: usize, what: &str, least: i64) -> Result<Vec<Size>, OpError> {
    let given = rule::ints(args, i)?;
    if let Some(s) = given.iter().find(|s| s.as_const().is_some_and(|v| v < least)) {
        return Err(OpError::new(Code::E0711, format!("{what} is at least {least}, and this one is {s}"))
            .arg(i, rule::tuple(&given)));
    }
    match given.len() {
        1 => Ok(vec![given[0].clone(); n]),
        m if m == n => Ok(given),
        m => Err(OpError::new(
            Code::E0207,
            format!("{m} numbers for {n} dims: one for each, or one for all, are needed"),
        )
        .arg(i, rule::tuple(&given))),
    }
}

/// Padding: one int for all sides, one for each dim, a pair (before, after) for each dim,
/// `"valid"` (none) or `"same"` (as many windows as elements, which needs stride 1).
pub fn padding(args: &[SymArg], i: usize, mut dims: Vec<Dim>) -> Result<Vec<Dim>, OpError> {
    if let Some(SymArg::Str(_)) = args.get(i) {
        if rule::choice(args, i, &["same", "valid"])? == "same" {
            for dim in &mut dims {
                if dim.stride.as_const().is_some_and(|s| s != 1) {
                    return Err(OpError::new(Code::E0711, "`padding=\"same\"` keeps the size, which needs stride 1")
                        .arg(i, format!("the stride is {}", dim.stride))
                        .help("give the padding in numbers: one for each dim, or a pair (before, after)"));
                }
                let all = dim.dilation.mul(&dim.kernel.sub(&Size::constant(1)));
                dim.low = all.floor_div(&Size::constant(2)).unwrap_or_default();
                dim.high = all.sub(&dim.low);
            }
        }
        return Ok(dims);
    }
    let given = rule::ints(args, i)?;
    if let Some(s) = given.iter().find(|s| s.as_const().is_some_and(|v| v < 0)) {
        return Err(OpError::new(Code::E0711, format!("padding is not negative, and this one is {s}"))
            .arg(i, rule::tuple(&given))
            .help("to leave elements out, slice the input"));
    }
    let n = dims.len();
    let pair = |d: usize| match given.len() {
        1 => Some((0, 0)),
        m if m == n && n != 1 => Some((d, d)),
        m if m == 2 * n => Some((2 * d, 2 * d + 1)),
        _ => None,
    };
    for (d, dim) in dims.iter_mut().enumerate() {
        let Some((low, high)) = pair(d) else {
            let what = format!(
                "{} numbers of padding for {n} dims: one for each, or a pair (before, after) for each, are needed",
                given.len()
            );
            return Err(OpError::new(Code::E0207, what).arg(i, rule::tuple(&given)));
        };
        (dim.low, dim.high) = (given[low].clone(), given[high].clone());
    }
    Ok(dims)
}

/// The number of windows along dim `axis` of `x`, which is the argument 0. A dim without elements that padding makes one
/// element shorter than the kernel has none.
///
/// # Errors
/// E0711 where the kernel is larger than the padded dim, E0212 where it may be for a rigid variable.
pub fn count(cx: &mut InferCx, x: &TensorType, axis: usize, dim: &Dim, kernel_at: usize) -> Result<Size, OpError> {
    let one = Size::constant(1);
    let text = || "a kernel has at least one element in each dim".into();
    let blame = |e: OpError| e.arg(kernel_at, format!("size {} for axis {axis}", dim.kernel));
    rule::require_reach(cx, &dim.kernel, &one, Code::E0711, text, blame)?;
    steps_forward(cx, dim);
    let reach = reach(dim, blame)?;
    let padded = padded(&x.shape[axis], dim, |e| e.arg(0, x.to_string()))?;
    let span = padded.sub(&reach);
    if !fits(cx.facts, &x.shape[axis], &span) {
        let with = if dim.low.is_zero() && dim.high.is_zero() { "" } else { " with padding" };
        let spread = if dim.dilation.as_const() == Some(1) { "" } else { " with dilation" };
        let text = || {
            format!(
                "the kernel is larger than the input: {reach} elements{spread} along axis {axis}, which has {padded}{with}"
            )
        };
        let blame = |e: OpError| e.arg(0, x.to_string()).arg(kernel_at, format!("size {}", dim.kernel));
        rule::require_reach(cx, &padded, &reach, Code::E0711, text, blame)?;
    }
    let steps = span.floor_div(&dim.stride).ok_or_else(|| OpError::new(Code::E0711, "a stride is at least 1"))?;
    Ok(steps.add(&one))
}

/// Strides and dilations are at least 1, which the expansion compares where only a run knows them.
pub fn steps_forward(cx: &mut InferCx, dim: &Dim) {
    let one = Size::constant(1);
    for step in [&dim.stride, &dim.dilation] {
        if step.as_const().is_none() && !cx.at_least(step, 1) {
            cx.reaches.push((step.clone(), one.clone()));
        }
    }
}

/// The elements from the first to the last that a window reads.
///
/// # Errors
/// E0711 where 64 bits do not count them.
pub fn reach(dim: &Dim, blame: impl FnOnce(OpError) -> OpError) -> Result<Size, OpError> {
    let one = Size::constant(1);
    let size = dim.dilation.mul(&dim.kernel.sub(&one)).add(&one);
    rule::counted(
        size,
        || format!("a kernel of {} with a dilation of {} spreads over", dim.kernel, dim.dilation),
        blame,
    )
}

/// A dim with its padding, or the padding alone where the dim has no elements.
///
/// # Errors
/// E0711 where 64 bits do not count it.
pub fn padded(size: &Size, dim: &Dim, blame: impl FnOnce(OpError) -> OpError) -> Result<Size, OpError> {
    let text = || format!("a padding of {} before and {} after makes", dim.low, dim.high);
    rule::counted(size.add(&dim.low).add(&dim.high), text, blame)
}

/// Whether a dim of `size` elements has room for a window; `span` is what the first one leaves of the padded dim.
fn fits(facts: &Facts, size: &Size, span: &Size) -> bool {
    let one = Size::constant(1);
    let mut some = facts.clone();
    some.assume_at_least(size, &one);
    facts.at_least(span, 0) || facts.at_least(span, -1) && (size.is_zero() || some.at_least(span, 0))
}

/// The windows along one dim, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    pub kernel: u64,
    pub stride: u64,
    pub dilation: u64,
    pub low: u64,
    pub high: u64,
    /// Number of windows.
    pub count: u64,
}

/// The numbers of dims whose sizes are constants; `count` as the typing rule gave it.
pub fn known(dims: &[Dim], counts: &[u64]) -> Result<Vec<Known>, OpError> {
    let of = |s: &Size| rule::constant(s, 0, "a window").map(|n| n.max(0) as u64);
    dims.iter()
        .zip(counts)
        .map(|(d, &count)| {
            Ok(Known {
                kernel: of(&d.kernel)?,
                stride: of(&d.stride)?,
                dilation: of(&d.dilation)?,
                low: of(&d.low)?,
                high: of(&d.high)?,
                count,
            })
        })
        .collect()
}

/// `x` with `value` before and after its last dims, as the windows say.
pub fn pad(b: &mut dyn Build, x: Id, dims: &[Known], value: Scalar) -> Id {
    if dims.iter().all(|d| d.low == 0 && d.high == 0) {
        return x;
    }
    let (mut shape, dtype) = (b.shape(x), b.dtype(x));
    let lead = shape.len() - dims.len();
    let (mut low, mut high) = (vec![0; lead], vec![0; lead]);
    for (d, size) in dims.iter().zip(&mut shape[lead..]) {
        low.push(d.low);
        high.push(d.high);
        *size += d.low + d.high;
    }
    let value = expand::full(b, &[], dtype, value);
    b.push(Prim::Pad { low, high }, &[x, value], shape, dtype)
}

/// The windows over the last dims of `x`: `[…, d…] -> […, count…, kernel…]`.
pub fn slide(b: &mut dyn Build, x: Id, dims: &[Known]) -> Id {
    let (shape, dtype) = (b.shape(x), b.dtype(x));
    let mut to = shape[..shape.len() - dims.len()].to_vec();
    to.extend(dims.iter().map(|d| d.count));
    to.extend(dims.iter().map(|d| d.kernel));
    // Windows of one element, each next to the other, are the elements.
    if dims.iter().all(|d| d.kernel == 1 && d.stride == 1) {
        return expand::reshape(b, x, &to);
    }
    let stride = dims.iter().map(|d| d.stride).collect();
    let dilation = dims.iter().map(|d| d.dilation).collect();
    b.push(Prim::Windows { stride, dilation }, &[x], to, dtype)
}

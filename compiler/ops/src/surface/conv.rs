//! `conv1d conv2d conv3d`: convolution as an implicit product.
//!
//! The windows of the padded input are a view `[n, groups, c·k…, o…]`; the weights times that
//! view is the result. Nothing is copied on the level of the graph.

mod by_fft;

use super::expand;
use super::matmul::{product_dtype, product_result};
use super::row::{Call, Lowered, Row, accumulator, opt, req};
use super::rule::{self, Inferred};
use super::windows::{self, Dim};
use super::*;
use crate::map::MapOp;

const PARAMS: &[Param] = &[
    req("x", ParamKind::Tensor),
    req("weight", ParamKind::Tensor),
    opt("bias", ParamKind::Tensor, Default::None),
    opt("stride", ParamKind::Ints, Default::Int(1)),
    opt("padding", ParamKind::Pairs, Default::Int(0)),
    opt("dilation", ParamKind::Ints, Default::Int(1)),
    opt("groups", ParamKind::Int, Default::Int(1)),
];

pub const CONV1D: Row = Row::new("conv1d", PARAMS, |cx, a, _| infer("conv1d", 1, cx, a), |c| lower("conv1d", 1, c))
    .known_as(&["Conv1d"])
    .signature("n c l, o c k -> n o m")
    .product_of(&[0, 1, 2])
    .halves()
    .doc(
        "Convolution over one dim: `x` is [N, C, L], `weight` [O, C/groups, K], as in PyTorch.\n\n\
         As `conv2d`. Two numbers of `padding` are the elements before and after.\n\n\
         ```tessera\nop.conv1d(x, w, padding=(2, 0))    # causal for kernels of 3\n```",
    );

pub const CONV2D: Row = Row::new("conv2d", PARAMS, |cx, a, _| infer("conv2d", 2, cx, a), |c| lower("conv2d", 2, c))
    .known_as(&["Conv2d", "convolution", "conv"])
    .signature("n c h w, o c kh kw -> n o p q")
    .product_of(&[0, 1, 2])
    .halves()
    .doc(
        "Convolution over two dims: `x` is [N, C, H, W] (or [C, H, W]), `weight` [O, C/groups, KH, KW], as in PyTorch.\n\n\
         The kernel is not flipped (cross-correlation). `stride` and `dilation` are one int or one for each dim. `padding` \
         adds zeros: one int for all sides, one for each dim, a pair (before, after) for each dim, `\"valid\"` (none) or \
         `\"same\"` (the output has the size of the input; stride 1). With `groups`, each group of C/groups input channels \
         gives O/groups output channels. `bias` is [O].\n\n\
         A dim of size D gives (D + before + after - dilation * (K - 1) - 1) // stride + 1 positions. Each element is \
         summed in the order of a product over (channel, kernel row, kernel column); dtypes as for `matmul`, \
         and the bias is added before the one rounding to the result's dtype. Under `numerics.policy(\"fast\")` large \
         kernels of f32 are computed by Fourier transforms where that is less work.\n\n\
         E0202: the channels differ. E0711: the kernel is larger than the input, or the groups do not divide the channels.\n\n\
         ```tessera\nop.conv2d(x, w, bias=b, stride=2, padding=1)\n```",
    );

pub const CONV3D: Row = Row::new("conv3d", PARAMS, |cx, a, _| infer("conv3d", 3, cx, a), |c| lower("conv3d", 3, c))
    .known_as(&["Conv3d"])
    .signature("n c d h w, o c kd kh kw -> n o e p q")
    .product_of(&[0, 1, 2])
    .halves()
    .doc(
        "Convolution over three dims: `x` is [N, C, D, H, W], `weight` [O, C/groups, KD, KH, KW].\n\nAs `conv2d`.\n\n\
         ```tessera\nop.conv3d(x, w, padding=1)\n```",
    );

/// Ranks of the operands: input and weights have a dim for channels and one before it, which the input may leave out.
pub fn ranks(name: &str, n: usize, args: &[SymArg], layout: &str) -> Result<(), OpError> {
    let (x, w) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    let dims = ["L", "H, W", "D, H, W"][n - 1];
    if x.rank() != n + 1 && x.rank() != n + 2 {
        let text = format!("`{name}` takes [N, C, {dims}] or [C, {dims}], and this tensor has rank {}", x.rank());
        return Err(OpError::new(Code::E0207, text).arg(0, x.to_string()));
    }
    if w.rank() != n + 2 {
        let text = format!("the weights of `{name}` are {layout}, and this tensor has rank {}", w.rank());
        return Err(OpError::new(Code::E0207, text).arg(1, w.to_string()));
    }
    Ok(())
}

/// The number of groups, which has to divide `channels` (those of argument `at`).
pub fn groups(args: &[SymArg], i: usize, channels: &Size, at: usize, which: &str) -> Result<Size, OpError> {
    let groups = rule::int(args, i)?.clone();
    if groups.as_const().is_some_and(|g| g < 1) {
        let text = format!("the number of groups is at least 1, and this one is {groups}");
        return Err(OpError::new(Code::E0711, text).arg(i, groups.to_string()));
    }
    if let (Some(g), Some(c)) = (groups.as_const(), channels.as_const())
        && c % g != 0
    {
        let text = format!("{g} groups do not divide the {c} {which} channels");
        return Err(OpError::new(Code::E0711, text)
            .arg(at, rule::tensor(args, at)?.to_string())
            .arg(i, "has to divide the channels"));
    }
    Ok(groups)
}

/// A bias of one element for each of `channels`.
pub fn bias(cx: &mut InferCx, args: &[SymArg], i: usize, channels: &Size) -> Result<(), OpError> {
    let Some(bias) = rule::optional_tensor(args, i)? else { return Ok(()) };
    let blame = |e: OpError| e.arg(i, bias.to_string());
    if bias.rank() != 1 {
        let text = format!(
            "the bias has one element for each of the {channels} output channels, and this tensor has rank {}",
            bias.rank()
        );
        return Err(blame(OpError::new(Code::E0207, text)));
    }
    let text = || format!("the bias has {} elements for {channels} output channels", bias.shape[0]);
    rule::require(cx, &bias.shape[0], channels, Code::E0202, text, |e| blame(e).arg(1, channels.to_string()))
}

/// The type in which input and weights meet, with the bias where it is a float.
pub fn meeting(name: &str, args: &[SymArg]) -> Result<Option<DType>, OpError> {
    let mut all = vec![(0, rule::tensor(args, 0)?), (1, rule::tensor(args, 1)?)];
    let ints = all.iter().all(|(_, t)| t.dtype.is_some_and(DType::is_int));
    let bias = rule::optional_tensor(args, 2)?;
    let apart = |t: &&TensorType| ints && t.dtype.is_some_and(DType::is_int);
    all.extend(bias.filter(|t| !apart(t)).map(|t| (2, t)));
    product_dtype(name, &all)
}

/// The dtype of the result: that of the product, and of a bias of wider ints.
pub fn sum_type(args: &[SymArg], factors: Option<DType>) -> Result<Option<DType>, OpError> {
    let bias = rule::optional_tensor(args, 2)?.and_then(|t| t.dtype).filter(|d| d.is_int());
    Ok(factors.map(product_result).map(|d| match bias {
        Some(bias) if d.is_int() && bias.bytes() > d.bytes() => bias,
        _ => d,
    }))
}

/// Kernel, stride, dilation and padding of each dim.
fn geometry(n: usize, args: &[SymArg]) -> Result<Vec<Dim>, OpError> {
    let w = rule::tensor(args, 1)?;
    let strides = windows::each(args, 3, n, "a stride", 1)?;
    let dilations = windows::each(args, 5, n, "a dilation", 1)?;
    let zero = || Size::constant(0);
    let dims = (0..n).map(|d| Dim {
        kernel: w.shape[2 + d].clone(),
        stride: strides[d].clone(),
        dilation: dilations[d].clone(),
        low: zero(),
        high: zero(),
    });
    windows::padding(args, 4, dims.collect())
}

fn infer(name: &str, n: usize, cx: &mut InferCx, args: &[SymArg]) -> Inferred {
    ranks(name, n, args, ["[O, C, K]", "[O, C, KH, KW]", "[O, C, KD, KH, KW]"][n - 1])?;
    let (x, w) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    let dtype = meeting(name, args)?;
    let lead = x.rank() - n - 1;
    let channels = &x.shape[lead];
    let groups = groups(args, 6, &w.shape[0], 1, "output")?;
    let taken = w.shape[1].mul(&groups);
    let text = || match groups.as_const() {
        Some(1) => format!("the input has {channels} channels, and the weights are for {taken}"),
        _ => format!("the input has {channels} channels, and the weights are for {groups} groups of {}", w.shape[1]),
    };
    rule::require(cx, channels, &taken, Code::E0202, text, |e| {
        let e = e.arg(0, format!("{x}: {channels} channels")).arg(1, format!("{w}: {} channels", w.shape[1]));
        match (x.shape.last(), lead) {
            (Some(last), 1) if *last == taken => e.help("channels go before the dims: `{x}.moveaxis(-1, 1)`"),
            _ => e,
        }
    })?;
    bias(cx, args, 2, &w.shape[0])?;
    let mut shape = x.shape[..lead].to_vec();
    shape.push(w.shape[0].clone());
    for (d, dim) in geometry(n, args)?.iter().enumerate() {
        shape.push(windows::count(cx, x, lead + 1 + d, dim, 1)?);
    }
    rule::one(shape, sum_type(args, dtype)?)
}

fn lower(name: &str, n: usize, call: &mut Call) -> Lowered {
    let (out, _) = call.result();
    let dtype = meeting(name, &call.sym)?.unwrap_or(DType::F32);
    if out.contains(&0) {
        return Ok(vec![expand::full(call.b, &out, dtype, Scalar::F(0.0))]);
    }
    let accum = accumulator(dtype, call.hints);
    let counts = &out[out.len() - n..];
    let dims = windows::known(&geometry(n, &call.sym)?, counts)?;
    let groups = rule::int_const(&call.sym, 6, "the number of groups")? as u64;
    let (x, w) = (call.id(0)?, call.id(1)?);
    let b = &mut *call.b;
    let (x, w) = (expand::cast(b, x, dtype), expand::cast(b, w, dtype));
    let sizes = b.shape(w);
    let (outputs, inside) = (sizes[0] / groups, sizes[1]);
    let batch = b.shape(x)[..b.shape(x).len() - n - 1].iter().product();
    let split = [&[batch, groups, inside], &b.shape(x)[b.shape(x).len() - n..]].concat();
    let x = expand::reshape(b, x, &split);
    let x = windows::pad(b, x, &dims, Scalar::F(0.0));
    let of = by_fft::Sizes { batch, groups, inside, outputs };
    let single = dtype == DType::F32 && accum == DType::F32;
    let product = if call.hints.reassociate && single && by_fft::wins(of, &b.shape(x)[3..], &dims) {
        let w = expand::reshape(b, w, &[&[groups, outputs], &sizes[1..]].concat());
        by_fft::conv(b, x, w, of, &dims)
    } else {
        let view = windows::slide(b, x, &dims);
        let right = matrix(b, view, n);
        let depth = b.shape(right)[2];
        let left = expand::reshape(b, w, &[groups, outputs, depth]);
        product(b, left, right, depth / inside.max(1), accum)
    };
    let whole = [&[batch, sizes[0]], counts].concat();
    let y = expand::reshape(b, product, &whole);
    let y = add_bias(call, 2, y)?;
    Ok(vec![expand::reshape(call.b, y, &out)])
}

/// Windows `[n, groups, c, o…, k…]` as `[n, groups, c·k…, o…]` with one dim for each side.
pub fn matrix(b: &mut dyn Build, view: Id, n: usize) -> Id {
    let shape = b.shape(view);
    let (counts, kernel) = shape[3..].split_at(n);
    let depth = shape[2] * kernel.iter().product::<u64>();
    let places = counts.iter().product();
    let perm: Vec<usize> = (0..3).chain(3 + n..3 + 2 * n).chain(3..3 + n).collect();
    let turned = expand::transpose(b, view, &perm);
    expand::reshape(b, turned, &[shape[0], shape[1], depth, places])
}

/// Weights `[groups, o, k]` times `[n, groups, k, places]`, in the accumulator's type. Of `k` so many positions make a channel.
pub fn product(b: &mut dyn Build, left: Id, right: Id, kernel: u64, accum: DType) -> Id {
    let (w, x) = (b.shape(left), b.shape(right));
    let left = expand::broadcast_to(b, left, &[x[0], w[0], w[1], w[2]]);
    expand::dot_over(b, [left, right], kernel, accum, accum)
}

/// Adds the bias at argument `i` to `y` of shape `[n, channels, …]`, in the type of `y`.
pub fn add_bias(call: &mut Call, i: usize, y: Id) -> Result<Id, OpError> {
    let Some(bias) = call.optional_id(i) else { return Ok(y) };
    let (shape, dtype) = (call.b.shape(y), call.b.dtype(y));
    let bias = expand::cast(call.b, bias, dtype);
    let bias = expand::broadcast_dims(call.b, bias, &shape, vec![1]);
    Ok(expand::map(call.b, MapOp::add, &[y, bias]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error_text, n, tensor_arg, type_text};
    use super::*;

    fn with(x: &str, w: &str, rest: &[SymArg]) -> Vec<SymArg> {
        [&[tensor_arg(x), tensor_arg(w), SymArg::None], rest].concat()
    }

    #[test]
    fn sizes_are_polynomials() {
        let int = |v: i64| SymArg::Int(n(v));
        let t = |x: &str, w: &str, rest: &[SymArg]| type_text("conv2d", &with(x, w, rest));
        let error = t("N 3 H 8 f32", "O 3 3 3 f32", &[]);
        assert!(error.starts_with("E0212 the kernel is larger") && error.ends_with("`assert H >= 3`"), "{error}");
        assert_eq!(t("N 3 ?h ?w f32", "O 3 3 3 f32", &[]), "Tensor[N, O, ?h - 2, ?w - 2, f32]".replace('?', ""));
        assert_eq!(t("N 3 H W f32", "O 3 3 3 f32", &[int(1), int(1)]), "Tensor[N, O, H, W, f32]");
        assert_eq!(t("N C H W f32", "O C 5 5 f32", &[int(1), SymArg::Str("same".into())]), "Tensor[N, O, H, W, f32]");
        assert_eq!(t("N 3 H 5 f32", "O 3 3 3 f32", &[int(2), int(1)]), "Tensor[N, O, (H + 1)//2, 3, f32]");
        assert_eq!(t("8 6 6 bf16", "4 4 3 3 bf16", &[int(1), int(0), int(2), int(2)]), "Tensor[4, 2, 2, bf16]");
    }

    #[test]
    fn channels_groups_and_kernels() {
        let int = |v: i64| SymArg::Int(n(v));
        assert_eq!(
            error_text("conv2d", &with("N H W 3 f32", "8 3 3 3 f32", &[])),
            "E0212 the input has H channels, and the weights are for 3 | 0: Tensor[N, H, W, 3, f32]: H channels \
             | 1: Tensor[8, 3, 3, 3, f32]: 3 channels | for example H=1 gives 1 and 3 \
             | note: the sizes of a signature stand for all values, and nothing says that H equals 3 \
             | help: if H and 3 are equal, say so before: `assert H == 3` \
             | help: channels go before the dims: `{x}.moveaxis(-1, 1)`"
        );
        assert_eq!(
            error_text("conv2d", &with("1 4 5 5 f32", "8 4 3 3 f32", &[int(1), int(0), int(1), int(2)])),
            "E0202 the input has 4 channels, and the weights are for 2 groups of 4 | 0: Tensor[1, 4, 5, 5, f32]: 4 channels \
             | 1: Tensor[8, 4, 3, 3, f32]: 4 channels"
        );
        assert_eq!(
            error_text("conv2d", &with("1 6 5 5 f32", "8 2 3 3 f32", &[int(1), int(0), int(1), int(3)])),
            "E0711 3 groups do not divide the 8 output channels | 1: Tensor[8, 2, 3, 3, f32] | 6: has to divide the channels"
        );
        assert_eq!(
            error_text("conv2d", &with("1 1 4 9 f32", "1 1 3 3 f32", &[int(1), int(0), int(2)])),
            "E0711 the kernel is larger than the input: 5 elements with dilation along axis 2, which has 4 \
             | 0: Tensor[1, 1, 4, 9, f32] | 1: size 3"
        );
        assert_eq!(
            error_text("conv2d", &with("1 1 4 9 f32", "1 1 3 3 f32", &[int(2), SymArg::Str("same".into())])),
            "E0711 `padding=\"same\"` keeps the size, which needs stride 1 | 4: the stride is 2 \
             | help: give the padding in numbers: one for each dim, or a pair (before, after)"
        );
    }
}

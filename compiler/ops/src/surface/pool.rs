//! `max_pool` and `avg_pool`: reductions of sliding windows.

use super::expand;
use super::reduce::{no_complex, stepwise};
use super::row::{Call, Lowered, Row, accumulator, opt, req};
use super::rule::{self, Inferred};
use super::windows::{self, Dim};
use super::*;
use crate::map::MapOp;
use crate::prim::Reduction;

const PARAMS: &[Param] = &[
    req("x", ParamKind::Tensor),
    req("kernel_size", ParamKind::Ints),
    opt("stride", ParamKind::Ints, Default::None),
    opt("padding", ParamKind::Pairs, Default::Int(0)),
];

pub const MAX_POOL: Row = Row::new("max_pool", PARAMS, |cx, a, _| infer(cx, "max_pool", a), lower_max)
    .known_as(&["max_pool1d", "max_pool2d", "max_pool3d", "maxpool", "MaxPool2d"])
    .signature("n c h w -> n c p q")
    .doc(
        "Largest element of each window of the last two dims.\n\n\
         `kernel_size` is one int for both dims, or a tuple with one for each of the last dims (so `(3,)` pools the last dim \
         and three ints the last three). Windows step by `stride`, which is `kernel_size` where it is left out, so that \
         they do not overlap. `padding` adds elements that are never chosen, fewer than the kernel has: one int, one for each dim, or a pair (before, after) for each. \
         NaN wins.\n\n```tessera\nop.max_pool(x, 2)    # Tensor[N, C, 8, 8, f32] -> Tensor[N, C, 4, 4, f32]\n```",
    );

pub const AVG_POOL: Row = Row::new("avg_pool", PARAMS, |cx, a, _| infer(cx, "avg_pool", a), lower_avg)
    .known_as(&["avg_pool1d", "avg_pool2d", "avg_pool3d", "avgpool", "AvgPool2d"])
    .signature("n c h w -> n c p q")
    .halves()
    .doc(
        "Mean of each window of the last two dims.\n\n\
         Windows as for `max_pool`. Padding adds zeros, which count (PyTorch's default). Dtypes as for `mean`.\n\n\
         ```tessera\nop.avg_pool(x, 3, stride=1, padding=1)\n```",
    );

/// The windows over the last dims.
fn geometry(args: &[SymArg]) -> Result<Vec<Dim>, OpError> {
    let n = rule::ints(args, 1)?.len();
    let n = if matches!(args.get(1), Some(SymArg::Ints(_))) { n } else { 2 };
    let kernels = windows::each(args, 1, n, "a kernel size", 1)?;
    let strides = if rule::absent(args, 2) { kernels.clone() } else { windows::each(args, 2, n, "a stride", 1)? };
    let one = || Size::constant(1);
    let zero = || Size::constant(0);
    let dims = kernels.into_iter().zip(strides).map(|(kernel, stride)| Dim {
        kernel,
        stride,
        dilation: one(),
        low: zero(),
        high: zero(),
    });
    let dims = windows::padding(args, 3, dims.collect())?;
    for dim in &dims {
        if let Some(k) = dim.kernel.as_const()
            && let Some(p) = [&dim.low, &dim.high].into_iter().find(|p| p.as_const().is_some_and(|p| p >= k))
        {
            let text = format!("padding of {p} is not less than the kernel size {k}: a window would hold padding only");
            return Err(OpError::new(Code::E0711, text).arg(1, format!("{k}")).arg(3, format!("{p}")));
        }
    }
    Ok(dims)
}

fn shape(cx: &mut InferCx, name: &str, args: &[SymArg]) -> Result<Vec<Size>, OpError> {
    let x = rule::tensor(args, 0)?;
    let dims = geometry(args)?;
    rule::at_least_rank(x, dims.len(), 0, name)?;
    let lead = x.rank() - dims.len();
    let mut shape = x.shape[..lead].to_vec();
    for (d, dim) in dims.iter().enumerate() {
        shape.push(windows::count(cx, x, lead + d, dim, 1)?);
    }
    Ok(shape)
}

fn infer(cx: &mut InferCx, name: &str, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    no_complex(name, x, 0)?;
    let mean = name == "avg_pool";
    let dtype = x.dtype.map(|d| if d.is_float() || !mean { d } else { DType::F32 });
    rule::one(shape(cx, name, args)?, dtype)
}

/// The reduction of every window of `x`, padded by `fill`, and the elements of a window.
fn reduce(call: &mut Call, x: Id, kind: Reduction, fill: Scalar) -> Result<(Id, f64), OpError> {
    let out = call.result().0;
    let dims = geometry(&call.sym)?;
    if out.contains(&0) {
        let dtype = call.b.dtype(x);
        return Ok((expand::full(call.b, &out, dtype, fill), 1.0));
    }
    let dims = windows::known(&dims, &out[out.len() - dims.len()..])?;
    let x = windows::pad(call.b, x, &dims, fill);
    let view = windows::slide(call.b, x, &dims);
    let axes: Vec<usize> = (out.len()..out.len() + dims.len()).collect();
    let elements = dims.iter().map(|d| d.kernel as f64).product();
    Ok((expand::reduce(call.b, view, kind, &axes, false), elements))
}

fn lower_max(call: &mut Call) -> Lowered {
    let x = call.id(0)?;
    let (kind, lowest) = match call.b.dtype(x) {
        DType::Bool => (Reduction::Any, Scalar::I(0)),
        DType::U8 => (Reduction::Max, Scalar::I(0)),
        DType::I8 => (Reduction::Max, Scalar::I(i64::from(i8::MIN))),
        DType::I16 => (Reduction::Max, Scalar::I(i64::from(i16::MIN))),
        DType::I32 => (Reduction::Max, Scalar::I(i64::from(i32::MIN))),
        DType::I64 => (Reduction::Max, Scalar::I(i64::MIN)),
        _ => (Reduction::Max, Scalar::F(f64::NEG_INFINITY)),
    };
    Ok(vec![reduce(call, x, kind, lowest)?.0])
}

fn lower_avg(call: &mut Call) -> Lowered {
    let x = call.id(0)?;
    let dtype = call.b.dtype(x);
    // Ints go through f64, which holds their sums.
    let wide = if dtype.is_float() { accumulator(dtype, call.hints) } else { DType::F64 };
    let x = expand::cast(call.b, x, wide);
    let (sum, elements) = reduce(call, x, stepwise(Reduction::Sum, wide), Scalar::F(0.0))?;
    let sum = expand::cast(call.b, sum, wide.compute());
    Ok(vec![expand::binary_const(call.b, MapOp::div, sum, elements)])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error_text, n, tensor_arg, type_text};
    use super::*;

    #[test]
    fn windows_over_the_last_dims() {
        let int = |v: i64| SymArg::Int(n(v));
        let x = tensor_arg("N C ?h 8 f32");
        assert_eq!(type_text("max_pool", &[x.clone(), int(2)]), "Tensor[N, C, h//2, 4, f32]");
        assert_eq!(type_text("max_pool", &[x.clone(), int(3), int(1)]), "Tensor[N, C, h - 2, 6, f32]");
        let x = tensor_arg("N C 4 8 f32");
        assert_eq!(type_text("avg_pool", &[tensor_arg("4 8 i64"), SymArg::Ints(vec![n(2)])]), "Tensor[4, 4, f32]");
        assert_eq!(
            error_text("max_pool", &[x.clone(), int(2), int(2), int(2)]),
            "E0711 padding of 2 is not less than the kernel size 2: a window would hold padding only | 1: 2 | 3: 2"
        );
        assert_eq!(
            error_text("max_pool", &[x, int(9)]),
            "E0711 the kernel is larger than the input: 9 elements along axis 2, which has 4 \
             | 0: Tensor[N, C, 4, 8, f32] | 1: size 9"
        );
    }
}

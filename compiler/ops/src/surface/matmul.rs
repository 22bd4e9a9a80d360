//! `matmul` and `dot`: products of matrices and vectors.

use super::expand;
use super::row::{Call, Lowered, Row, accumulator, req};
use super::rule::{self, Inferred, Operand, Part};
use super::scaled::scaled_dot;
use super::*;

const PARAMS: &[Param] = &[req("x", ParamKind::Tensor), req("y", ParamKind::Tensor)];

pub const MATMUL: Row = Row::new("matmul", PARAMS, |cx, a, _| infer("matmul", cx, a), lower)
    .method()
    .known_as(&["gemm", "mm", "bmm", "linear", "batched_matmul"])
    .signature("b m k, b k n -> b m n")
    .matrices(&[0, 1])
    .halves()
    .doc(
        "Matrix product, also written `x @ y`.\n\n\
         The last size of `x` and the last but one of `y` are contracted; leading dims are a batch and broadcast. A vector \
         on the left is a row, on the right a column, and the added dim is left out of the result.\n\n\
         Floats narrower than f32 accumulate in f32 and the result has the operands' dtype. Products of i8, u8 and i16 give i32, of \
         i32 and i64 i64. `accum_dtype=` (`f32`, `f64`; `f16` for f16 operands, where every step rounds to f16) and `out_dtype=` change that; \
         ints have no wider `accum_dtype` than their result. Each element is summed in chains of 256 fused multiply-adds under \
         a balanced tree.\n\n\
         E0201: the contracted sizes differ. E0203: the batch sizes do not broadcast.\n\n\
         ```tessera\nop.matmul(a, b, tile_shape=(128, 128, 64), accum_dtype=f32)\n```",
    );

pub const DOT: Row = Row::new("dot", PARAMS, infer_dot, lower)
    .method()
    .known_as(&["inner", "vdot"])
    .signature("k, k -> ")
    .matrices(&[0, 1])
    .halves()
    .doc(
        "Inner product of two vectors, or the matrix product where an operand has rank 2.\n\n\
         For higher ranks NumPy's `dot` is rarely what is meant: `matmul`, `tensordot` and `einsum` say it.\n\n\
         ```tessera\nop.dot(a, b)    # Tensor[N, f32], Tensor[N, f32] -> Tensor[f32]\n```",
    );

/// The dtype of products of `factors`: the sums of ints have room.
pub fn product_result(factors: DType) -> DType {
    match factors {
        DType::I8 | DType::U8 | DType::I16 => DType::I32,
        DType::I32 => DType::I64,
        _ => factors,
    }
}

/// Products need numbers: E0205 for bool.
pub fn product_dtype(name: &str, tensors: &[(usize, &TensorType)]) -> Result<Option<DType>, OpError> {
    let dtype = rule::join_tensors(tensors)?;
    for &(i, t) in tensors {
        match t.dtype {
            Some(DType::Bool) if dtype == Some(DType::Bool) => {
                return Err(OpError::new(Code::E0205, format!("`{name}` multiplies numbers, not bool"))
                    .arg(i, t.to_string())
                    .help("convert the operands: `.to(f32)`, or `.to(i64)` to count"));
            }
            _ => {}
        }
    }
    Ok(dtype)
}

fn infer(name: &str, cx: &mut InferCx, args: &[SymArg]) -> Inferred {
    let (x, y) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    let dtype = product_dtype(name, &[(0, x), (1, y)])?;
    for (i, t) in [(0, x), (1, y)] {
        if t.rank() == 0 {
            return Err(OpError::new(Code::E0207, "a matrix product needs operands of rank 1 or more")
                .arg(i, t.to_string())
                .help("multiply by a number with `*`"));
        }
    }
    let (rx, ry) = (x.rank(), y.rank());
    let inner = ry.saturating_sub(2);
    let (k, l) = (&x.shape[rx - 1], &y.shape[inner]);
    if let Err(verdict) = cx.require_equal(k, l) {
        return Err(contracted(
            rule::mismatch(cx.facts, Code::E0201, "the contracted sizes of the matrix product differ", &verdict, k, l),
            x,
            y,
        ));
    }
    let parts = [
        Part { position: 0, dims: &x.shape[..rx.saturating_sub(2)], operand: Operand::Tensor(x) },
        Part { position: 1, dims: &y.shape[..inner], operand: Operand::Tensor(y) },
    ];
    let mut shape = rule::broadcast(cx, &parts)?;
    if rx > 1 {
        shape.push(x.shape[rx - 2].clone());
    }
    if ry > 1 {
        shape.push(y.shape[ry - 1].clone());
    }
    rule::one(shape, dtype.map(product_result))
}

/// Both full types, the sizes that meet, and the transposition that would fit.
fn contracted(error: OpError, x: &TensorType, y: &TensorType) -> OpError {
    let (rx, ry) = (x.rank(), y.rank());
    let (k, l) = (&x.shape[rx - 1], &y.shape[ry.saturating_sub(2)]);
    let error = error.arg(0, format!("{x}: {k} columns")).arg(1, format!("{y}: {l} rows"));
    if ry == 2 && y.shape[1] == *k {
        return error.help("the second operand fits transposed: `{y}.T`");
    }
    if ry > 2 && y.shape[ry - 1] == *k {
        return error.help("the second operand fits transposed: `{y}.swapaxes(-1, -2)`");
    }
    if rx == 2 && x.shape[0] == *l {
        return error.help("the first operand fits transposed: `{x}.T`");
    }
    error
}

fn infer_dot(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (x, y) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    if x.rank() > 2 || y.rank() > 2 {
        return Err(OpError::new(Code::E0207, "`op.dot` takes vectors and matrices")
            .arg(0, x.to_string())
            .arg(1, y.to_string())
            .help("for batches of matrices `op.matmul({x}, {y})`, for sums over the last dim of both `op.einsum`"));
    }
    infer("dot", cx, args)
}

fn lower(call: &mut Call) -> Lowered {
    let (tx, ty) = (call.ty(0)?, call.ty(1)?);
    let (out, result) = call.result();
    let operands = product_dtype("matmul", &[(0, &tx), (1, &ty)])?.unwrap_or(DType::F32);
    let accum = accumulator(operands, call.hints);
    let (x, y) = (call.id(0)?, call.id(1)?);
    let b = &mut *call.b;
    let eighths = call.hints.precision == Precision::Aggressive && operands == DType::Bf16;
    let (mut x, mut y) = match eighths {
        true => (x, y),
        false => (expand::cast(b, x, operands), expand::cast(b, y, operands)),
    };
    if tx.rank() == 1 {
        x = expand::unsqueeze(b, x, &[0]);
    }
    if ty.rank() == 1 {
        y = expand::unsqueeze(b, y, &[1]);
    }
    let (sx, sy) = (b.shape(x), b.shape(y));
    let k = sx[sx.len() - 1];
    if sy.len() == 2 {
        // One matrix for the whole batch: the batch dims are rows.
        let rows = sx[..sx.len() - 1].iter().product();
        x = expand::reshape(b, x, &[rows, k]);
    } else {
        let batch = expand::common_shape(&sx[..sx.len() - 2], &sy[..sy.len() - 2]);
        let whole = |s: &[u64]| [&batch[..], &s[s.len() - 2..]].concat();
        x = expand::broadcast_to(b, x, &whole(&sx));
        y = expand::broadcast_to(b, y, &whole(&sy));
    }
    let product = match eighths {
        true => scaled_dot(b, x, y, accum, result),
        false => expand::dot(b, x, y, accum, result),
    };
    Ok(vec![expand::reshape(b, product, &out)])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error_text, tensor_arg};

    #[test]
    fn contracted_sizes() {
        assert_eq!(
            error_text("matmul", &[tensor_arg("B 4*H bf16"), tensor_arg("3*H D bf16")]),
            "E0201 the contracted sizes of the matrix product differ | 0: Tensor[B, 4*H, bf16]: 4*H columns \
             | 1: Tensor[3*H, D, bf16]: 3*H rows | for example H=1 gives 4 and 3"
        );
        assert_eq!(
            error_text("matmul", &[tensor_arg("2 3 f32"), tensor_arg("4 3 f32")]),
            "E0201 the contracted sizes of the matrix product differ | 0: Tensor[2, 3, f32]: 3 columns \
             | 1: Tensor[4, 3, f32]: 4 rows | help: the second operand fits transposed: `{y}.T`"
        );
        assert_eq!(
            error_text("matmul", &[tensor_arg("B K f32"), tensor_arg("M N f32")]),
            "E0201 the contracted sizes of the matrix product differ | 0: Tensor[B, K, f32]: K columns \
             | 1: Tensor[M, N, f32]: M rows | for example K=2, M=1 gives 2 and 1 \
             | note: the sizes of a signature stand for all values, and nothing says that K equals M \
             | help: use one name for both sizes where `K` and `M` are meant to be equal"
        );
    }

    #[test]
    fn kinds_and_batches() {
        assert_eq!(
            error_text("matmul", &[tensor_arg("2 3 4 f32"), tensor_arg("5 4 6 f32")]),
            "E0203 sizes 2 and 5 do not broadcast (axis -1) | 0: Tensor[2, 3, 4, f32] | 1: Tensor[5, 4, 6, f32]"
        );
        assert_eq!(
            error_text("matmul", &[tensor_arg("3 f16"), tensor_arg("3 bf16")]),
            "E0206 neither f16 nor bf16 holds every value of the other | 0: Tensor[3, f16] | 1: Tensor[3, bf16] \
             | note: tensors of different dtypes meet only where the conversion is exact | help: convert one of them: `.to(f32)`"
        );
    }
}

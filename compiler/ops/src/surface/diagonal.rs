//! `diag` and `trace`: diagonals of matrices.

use super::expand;
use super::reduce::{no_complex, stepwise};
use super::row::{Call, Lowered, Row, accumulator, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;
use crate::prim::{Prim, Reduction};

/// The elements `x[…, i, …, i + k, …]`: axes `i` and `j` vanish, the diagonal is the last dim.
///
/// Costs no arithmetic: rows of `n` elements, flattened, hold the diagonal at every `n + 1`th place.
pub fn diagonal(b: &mut dyn Build, x: Id, i: usize, j: usize, k: i64) -> Id {
    let rank = b.shape(x).len();
    let perm: Vec<usize> = (0..rank).filter(|&d| d != i && d != j).chain([i, j]).collect();
    let mut x = expand::transpose(b, x, &perm);
    let (rows, columns) = (b.shape(x)[rank - 2], b.shape(x)[rank - 1]);
    let (down, right) = if k < 0 { (k.unsigned_abs().min(rows), 0) } else { (0, (k as u64).min(columns)) };
    let length = (rows - down).min(columns - right);
    x = expand::slice(b, x, rank - 2, down, length);
    x = expand::slice(b, x, rank - 1, right, columns - right);
    let width = columns - right;
    let mut shape = b.shape(x)[..rank - 2].to_vec();
    let dtype = b.dtype(x);
    shape.push(length * width);
    x = expand::reshape(b, x, &shape);
    let last = shape.len() - 1;
    shape[last] = length;
    let (start, mut step) = (vec![0; shape.len()], vec![1; shape.len()]);
    step[last] = width as i64 + 1;
    b.push(Prim::Slice { start, step }, &[x], shape, dtype)
}

/// The length of the diagonal `k` of a matrix.
fn length(facts: &Facts, rows: &Size, columns: &Size, k: i64) -> Size {
    let zero = Size::constant(0);
    let shifted = |s: &Size, by: i64| rule::greatest(facts, &s.sub(&Size::constant(by)), &zero);
    rule::least(facts, &shifted(rows, k.saturating_neg().max(0)), &shifted(columns, k.max(0)))
}

pub const DIAG: Row = Row::new("diag", &[req("x", ParamKind::Tensor), opt("k", ParamKind::Int, Default::Int(0))], infer_diag, lower_diag)
    .method()
    .known_as(&["diagonal", "diagflat"])
    .doc(
        "The diagonal of a matrix; of a vector, the matrix that has it as its diagonal and zeros elsewhere.\n\n\
         `k` counts diagonals from the main one, to the right where positive.\n\n```tessera\nop.diag(op.arange(3))\n```",
    );

fn infer_diag(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let k = rule::int_const(args, 1, "`k`")?;
    match &x.shape[..] {
        [n] => {
            no_complex("diag", x, 0)?;
            let side = n.add(&Size::constant(k.saturating_abs()));
            rule::one(vec![side.clone(), side], x.dtype)
        }
        [rows, columns] => rule::one(vec![length(cx.facts, rows, columns, k)], x.dtype),
        _ => Err(OpError::new(
            Code::E0207,
            format!("`diag` takes a vector or a matrix, and this tensor has rank {}", x.rank()),
        )
        .arg(0, x.to_string())
        .help("for a batch of matrices: `op.einsum(\"...ii->...i\", {x})`")),
    }
}

fn lower_diag(call: &mut Call) -> Lowered {
    let x = call.id(0)?;
    let k = rule::int_const(&call.sym, 1, "`k`")?;
    let (shape, dtype) = (call.result().0, call.b.dtype(x));
    let b = &mut *call.b;
    if shape.len() == 1 {
        return Ok(vec![diagonal(b, x, 0, 1, k)]);
    }
    // Spread the vector over rows (or columns) and keep one element of each.
    let zero = expand::full(b, &[], dtype, Scalar::I(0));
    let padded = if k == 0 {
        x
    } else {
        b.push(Prim::Pad { low: vec![0], high: vec![k.unsigned_abs()] }, &[x, zero], vec![shape[0]], dtype)
    };
    let spread = expand::broadcast_dims(b, padded, &shape, vec![if k < 0 { 1 } else { 0 }]);
    let (rows, columns) = (expand::iota(b, &shape, 0), expand::iota(b, &shape, 1));
    let offset = expand::full(b, &shape, DType::I64, Scalar::I(k));
    let column_of = expand::map(b, MapOp::add, &[rows, offset]);
    let here = expand::map(b, MapOp::eq, &[column_of, columns]);
    let zeros = expand::full(b, &shape, dtype, Scalar::I(0));
    Ok(vec![expand::select(b, here, spread, zeros)])
}

pub const TRACE: Row = Row::new(
    "trace",
    &[req("x", ParamKind::Tensor), opt("offset", ParamKind::Int, Default::Int(0))],
    infer_trace,
    lower_trace,
)
.method()
.halves()
.doc(
    "The sum of the diagonal of a matrix, for each matrix of the last two dims. Dtypes as for `sum`.\n\n\
         ```tessera\nop.trace(op.eye(3))    # 3.0\n```",
);

fn infer_trace(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::at_least_rank(x, 2, 0, "trace")?;
    no_complex("trace", x, 0)?;
    rule::int_const(args, 1, "`offset`")?;
    rule::one(x.shape[..x.rank() - 2].to_vec(), x.dtype.map(|d| if d.is_float() { d } else { DType::I64 }))
}

fn lower_trace(call: &mut Call) -> Lowered {
    let x = call.id(0)?;
    let k = rule::int_const(&call.sym, 1, "`offset`")?;
    let accum = accumulator(call.b.dtype(x), call.hints);
    let b = &mut *call.b;
    let rank = b.shape(x).len();
    let x = diagonal(b, x, rank - 2, rank - 1, k);
    let x = expand::cast(b, x, accum);
    Ok(vec![expand::reduce(b, x, stepwise(Reduction::Sum, accum), &[rank - 2], false)])
}

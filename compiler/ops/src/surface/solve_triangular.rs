//! `solve_triangular`: systems of equations with a triangle.

use super::expand;
use super::linalg::{solved_in, square};
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred, Operand, Part};
use super::*;
use crate::prim::Triangle;

pub const SOLVE_TRIANGULAR: Row = Row::new(
    "solve_triangular",
    &[
        req("a", ParamKind::Tensor),
        req("b", ParamKind::Tensor),
        opt("lower", ParamKind::Bool, Default::Bool(true)),
        opt("transposed", ParamKind::Bool, Default::Bool(false)),
        opt("unit", ParamKind::Bool, Default::Bool(false)),
    ],
    infer,
    lower,
)
.known_as(&["triangular_solve", "trtrs", "trsm"])
.signature("b n n, b n k -> b n k")
.doc(
    "The `x` with `a @ x == b` for the lower (or upper) triangle of the matrices `a`; `b` has a column for each right side.\n\n\
     Leading dims are a batch and broadcast. What stands in the other triangle is not read. `transposed`: `a` is taken \
     transposed, and `lower` says which triangle of `a` as it lies. `unit`: the diagonal is all ones, whatever stands there. \
     Each unknown is one chain of fused multiply-adds over those before it and a division, whatever the threads. `n²·k` operations.\n\n\
     E0201: the sizes of matrix and right sides differ. E0719: a zero stands on the diagonal.\n\n\
     ```tessera\nx = op.solve_triangular(op.cholesky(a), b)\n```",
);

fn infer(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (a, b) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    for i in 2..5 {
        rule::late_flag(args, i)?;
    }
    let n = square("solve_triangular", cx, a, 0)?;
    if b.rank() < 2 {
        return Err(OpError::new(
            Code::E0207,
            format!("`solve_triangular` takes right sides as columns, and these have rank {}", b.rank()),
        )
        .arg(1, b.to_string())
        .help("one right side is a column: `{b}[:, None]`"));
    }
    let (shape, dtype) = systems("solve_triangular", cx, n, a, b, b)?;
    rule::one(shape, dtype)
}

/// Shape and dtype of the solutions of `n` equations with the matrices `a` and the right sides `columns`, which is what `b` is
/// taken for.
pub(super) fn systems(
    name: &str,
    cx: &mut InferCx,
    n: Size,
    a: &TensorType,
    b: &TensorType,
    columns: &TensorType,
) -> Result<(Vec<Size>, Option<DType>), OpError> {
    for (i, t) in [(0, a), (1, b)] {
        rule::as_float(name, t, i)?;
    }
    let dtype = rule::join_tensors(&[(0, a), (1, b)])?.map(|d| if d.is_float() { d } else { DType::F32 });
    let [dims @ .., m, k] = &columns.shape[..] else {
        let text = format!("`{name}` takes right sides, and this tensor has rank {}", b.rank());
        return Err(OpError::new(Code::E0207, text).arg(1, b.to_string()));
    };
    let text = || format!("the right sides have {m} rows for a system of {n} equations");
    rule::require(cx, &n, m, Code::E0201, text, |e| e.arg(0, a.to_string()).arg(1, b.to_string()))?;
    let parts = [
        Part { position: 0, dims: &a.shape[..a.rank() - 2], operand: Operand::Tensor(a) },
        Part { position: 1, dims, operand: Operand::Tensor(b) },
    ];
    let mut shape = rule::broadcast(cx, &parts)?;
    shape.extend([n, k.clone()]);
    Ok((shape, dtype))
}

/// What `solve` gives of the matrices and right sides `y` of one batch. Where one matrix is for all, the right sides of the
/// batch are columns of one system.
pub(super) fn of_batch(b: &mut dyn Build, a: Id, y: Id, solve: impl FnOnce(&mut dyn Build, Id, Id) -> Id) -> Id {
    let (own, shape) = (b.shape(a), b.shape(y));
    let rank = shape.len();
    if own.len() > 2 || rank == 2 {
        let whole = [&shape[..rank - 2], &own[own.len() - 2..]].concat();
        let a = expand::broadcast_to(b, a, &whole);
        return solve(b, a, y);
    }
    let n = shape[rank - 2];
    let first: Vec<usize> = [rank - 2].into_iter().chain(0..rank - 2).chain([rank - 1]).collect();
    let y = expand::transpose(b, y, &first);
    let turned = b.shape(y);
    let y = expand::reshape(b, y, &[n, turned[1..].iter().product()]);
    let x = solve(b, a, y);
    let x = expand::reshape(b, x, &turned);
    let back: Vec<usize> = (1..rank - 1).chain([0, rank - 1]).collect();
    expand::transpose(b, x, &back)
}

fn lower(call: &mut Call) -> Lowered {
    let flag = |i: usize| rule::flag(&call.sym, i);
    let triangle = Triangle { lower: flag(2)?, transposed: flag(3)?, unit: flag(4)? };
    let (shape, dtype) = call.result();
    let dtype = solved_in(Some(dtype));
    let (a, y) = (call.id(0)?, call.id(1)?);
    let b = &mut *call.b;
    let (a, y) = (expand::cast(b, a, dtype), expand::cast(b, y, dtype));
    let y = expand::broadcast_to(b, y, &shape);
    Ok(vec![of_batch(b, a, y, |b, a, y| {
        let shape = b.shape(y);
        b.push(Prim::TriangularSolve(triangle), &[a, y], shape, dtype)
    })])
}

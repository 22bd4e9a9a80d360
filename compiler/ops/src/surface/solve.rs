//! `solve`: systems of equations with any matrix.

use super::expand;
use super::linalg::{solved_in, square};
use super::row::{Call, Lowered, Row, req};
use super::rule::{self, Inferred};
use super::solve_triangular::{of_batch, systems};
use super::*;
use crate::prim::{Factor, Triangle};

pub const SOLVE: Row = Row::new("solve", &[req("a", ParamKind::Tensor), req("b", ParamKind::Tensor)], infer, lower)
    .known_as(&["gesv", "linsolve"])
    .signature("b n n, b n k -> b n k")
    .doc(
        "The `x` with `a @ x == b` for square matrices `a`; `b` has a column for each right side, or is one vector.\n\n\
         Leading dims are a batch and broadcast; a `b` of rank 1 is one right side for all. By elimination with partial \
         pivoting and two triangular systems, whose bits are the same for any threads. `n³·2/3 + 2·n²·k` operations. For a positive definite matrix \
         `cholesky` and two calls of `solve_triangular` take half of that.\n\n\
         E0201: the sizes of matrix and right sides differ. E0202: the matrix is not square. E0719: it is singular, or not finite.\n\n\
         ```tessera\nx = op.solve(a, b)\n```",
    );

/// The type of the right sides as columns.
fn columns(b: &TensorType) -> TensorType {
    let mut shape = b.shape.clone();
    if shape.len() == 1 {
        shape.push(Size::constant(1));
    }
    rule::typed(shape, b.dtype)
}

fn infer(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (a, b) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    let n = square("solve", cx, a, 0)?;
    let (mut shape, dtype) = systems("solve", cx, n, a, b, &columns(b))?;
    if b.rank() == 1 {
        shape.pop();
    }
    rule::one(shape, dtype)
}

fn lower(call: &mut Call) -> Lowered {
    let (out, dtype) = call.result();
    let dtype = solved_in(Some(dtype));
    let is_vector = call.ty(1)?.rank() == 1;
    let (a, y) = (call.id(0)?, call.id(1)?);
    let b = &mut *call.b;
    let (a, mut y) = (expand::cast(b, a, dtype), expand::cast(b, y, dtype));
    let mut shape = out.clone();
    if is_vector {
        y = expand::unsqueeze(b, y, &[1]);
        shape.push(1);
    }
    let y = expand::broadcast_to(b, y, &shape);
    let x = of_batch(b, a, y, solved);
    Ok(vec![expand::reshape(b, x, &out)])
}

/// The solutions `[batch…, n, k]` for matrices `a [batch…, n, n]` and right sides `y [batch…, n, k]` of f32 or f64: elimination and two
/// triangular systems.
pub fn solved(b: &mut dyn Build, a: Id, y: Id) -> Id {
    let (shape, dtype) = (b.shape(y), b.dtype(y));
    let (axis, n) = (shape.len() - 2, shape[shape.len() - 2]);
    let batch = shape[..axis].to_vec();
    let whole = b.push(Prim::Factor(Factor::Lu), &[a], [&batch[..], &[Factor::Lu.elems(n, n)]].concat(), dtype);
    let lu = expand::slice(b, whole, axis, 0, n * n);
    let lu = expand::reshape(b, lu, &[&batch[..], &[n, n]].concat());
    let rows = expand::slice(b, whole, axis, n * n, n);
    let rows = expand::positions(b, rows);
    let rows = expand::unsqueeze(b, rows, &[axis + 1]);
    let rows = expand::broadcast_to(b, rows, &shape);
    let y = b.push(Prim::TakeAlong { axis }, &[y, rows], shape.clone(), dtype);
    let unit = Triangle { lower: true, transposed: false, unit: true };
    let y = b.push(Prim::TriangularSolve(unit), &[lu, y], shape.clone(), dtype);
    let upper = Triangle { lower: false, unit: false, ..unit };
    b.push(Prim::TriangularSolve(upper), &[lu, y], shape, dtype)
}

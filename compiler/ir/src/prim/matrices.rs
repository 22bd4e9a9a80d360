//! Matrices in the last two dims, with which derivatives of factors are written.

use crate::prim::columns::*;

/// The transposed matrices.
pub fn turned(b: &mut dyn Build, x: Id) -> Id {
    let rank = b.shape(x).len();
    let perm: Vec<usize> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    expand::transpose(b, x, &perm)
}

/// `x · y`, summed in their own type.
pub fn times(b: &mut dyn Build, x: Id, y: Id) -> Id {
    let dtype = b.dtype(x);
    expand::dot(b, x, y, dtype, dtype)
}

pub fn sum(b: &mut dyn Build, x: Id, y: Id) -> Id {
    expand::map(b, MapOp::add, &[x, y])
}

pub fn difference(b: &mut dyn Build, x: Id, y: Id) -> Id {
    expand::map(b, MapOp::sub, &[x, y])
}

pub fn product(b: &mut dyn Build, x: Id, y: Id) -> Id {
    expand::map(b, MapOp::mul, &[x, y])
}

pub fn negative(b: &mut dyn Build, x: Id) -> Id {
    expand::unary(b, MapOp::neg, x)
}

/// The elements whose row and column stand in a relation, zeros elsewhere.
pub fn where_row(b: &mut dyn Build, x: Id, relation: MapOp) -> Id {
    let (shape, dtype) = (b.shape(x), b.dtype(x));
    let rank = shape.len();
    let (row, column) = (expand::iota(b, &shape, rank - 2), expand::iota(b, &shape, rank - 1));
    let keep = expand::map(b, relation, &[row, column]);
    let zeros = expand::full(b, &shape, dtype, Scalar::F(0.0));
    expand::select(b, keep, x, zeros)
}

/// The lower triangle with its diagonal, or without.
pub fn lower(b: &mut dyn Build, x: Id, strict: bool) -> Id {
    where_row(b, x, if strict { MapOp::gt } else { MapOp::ge })
}

/// The upper triangle with its diagonal, or without.
pub fn upper(b: &mut dyn Build, x: Id, strict: bool) -> Id {
    where_row(b, x, if strict { MapOp::lt } else { MapOp::le })
}

/// The matrices with these vectors as their diagonals.
pub fn diagonal(b: &mut dyn Build, v: Id) -> Id {
    let shape = b.shape(v);
    let n = shape[shape.len() - 1];
    let whole = [&shape[..], &[n]].concat();
    let spread = expand::broadcast_dims(b, v, &whole, (0..shape.len()).collect());
    where_row(b, spread, MapOp::eq)
}

/// Rows `count` of them from `from` on.
pub fn rows(b: &mut dyn Build, x: Id, from: u64, count: u64) -> Id {
    let rank = b.shape(x).len();
    expand::slice(b, x, rank - 2, from, count)
}

pub fn columns(b: &mut dyn Build, x: Id, from: u64, count: u64) -> Id {
    let rank = b.shape(x).len();
    expand::slice(b, x, rank - 1, from, count)
}

/// Every column multiplied by its element of the vectors.
pub fn by_column(b: &mut dyn Build, x: Id, v: Id) -> Id {
    let (shape, rank) = (b.shape(x), b.shape(x).len());
    let dims = (0..rank - 2).chain([rank - 1]).collect();
    let spread = expand::broadcast_dims(b, v, &shape, dims);
    product(b, x, spread)
}

/// Every row multiplied by its element of the vectors.
pub fn by_row(b: &mut dyn Build, x: Id, v: Id) -> Id {
    let (shape, rank) = (b.shape(x), b.shape(x).len());
    let spread = expand::broadcast_dims(b, v, &shape, (0..rank - 1).collect());
    product(b, x, spread)
}

/// `1 / x`, and 0 where `x` is 0; neither has a derivative that is not finite there.
pub fn inverse_or_zero(b: &mut dyn Build, x: Id) -> Id {
    let (zeros, ones) = (expand::like(b, x, 0.0), expand::like(b, x, 1.0));
    let is_zero = expand::map(b, MapOp::eq, &[x, zeros]);
    let safe = expand::select(b, is_zero, ones, x);
    let inverse = expand::map(b, MapOp::div, &[ones, safe]);
    expand::select(b, is_zero, zeros, inverse)
}

/// `v_j - v_i` at row `i` and column `j`.
pub fn apart(b: &mut dyn Build, v: Id) -> Id {
    let shape = b.shape(v);
    let rank = shape.len();
    let whole = [&shape[..], &[shape[rank - 1]]].concat();
    let of_row = expand::broadcast_dims(b, v, &whole, (0..rank).collect());
    let of_column = turned(b, of_row);
    difference(b, of_column, of_row)
}

/// `1 / (v_j - v_i)` at row `i` and column `j`, 0 where they are equal.
pub fn gaps(b: &mut dyn Build, v: Id) -> Id {
    let apart = apart(b, v);
    inverse_or_zero(b, apart)
}

/// `x` with `op(a) · x = y`.
pub fn solve(b: &mut dyn Build, a: Id, y: Id, triangle: prim::Triangle) -> Id {
    let (shape, dtype) = (b.shape(y), b.dtype(y));
    b.push(Prim::TriangularSolve(triangle), &[a, y], shape, dtype)
}

/// `x` with `x · op(a) = y`: the transposed system from the other side.
pub fn solve_right(b: &mut dyn Build, a: Id, y: Id, triangle: prim::Triangle) -> Id {
    let y = turned(b, y);
    let x = solve(b, a, y, prim::Triangle { transposed: !triangle.transposed, ..triangle });
    turned(b, x)
}

/// The parts of a result of [`Prim::Factor`] as arrays of these shapes behind the batch.
pub fn parts(b: &mut dyn Build, x: Id, shapes: &[&[u64]]) -> Vec<Id> {
    let whole = b.shape(x);
    let batch = &whole[..whole.len() - 1];
    let mut from = 0;
    let mut out = vec![];
    for shape in shapes {
        let count = shape.iter().product();
        let part = expand::slice(b, x, batch.len(), from, count);
        out.push(expand::reshape(b, part, &[batch, shape].concat()));
        from += count;
    }
    out
}

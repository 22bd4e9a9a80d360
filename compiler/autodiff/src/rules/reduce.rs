//! Reductions and running sums.

use super::{At, Pulled};
use tessera_base::DType;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction, Scalar};
use tessera_ops::surface::{Build, Id, expand};

pub fn reduce(at: &mut At, kind: Reduction, axes: &[usize]) -> Pulled {
    let (shape, dtype) = (at.shape(at.x[0]), at.dtype(at.x[0]));
    let c = expand::cast(at.w, at.c, dtype);
    let kept: Vec<usize> = (0..shape.len()).filter(|d| !axes.contains(d)).collect();
    match kind {
        Reduction::Sum | Reduction::HalfSum => Ok(vec![Some(expand::broadcast_dims(at.w, c, &shape, kept))]),
        Reduction::Max | Reduction::Min | Reduction::Prod | Reduction::HalfProd => {
            // The reduced dims as one at the end.
            let perm: Vec<usize> = kept.iter().chain(axes).copied().collect();
            let rows: Vec<u64> = kept.iter().map(|&d| shape[d]).collect();
            let length = axes.iter().map(|&d| shape[d]).product();
            // No elements: none is the largest.
            if length == 0 {
                return Ok(vec![None]);
            }
            let flat = [&rows[..], &[length]].concat();
            let turned = expand::transpose(at.w, at.x[0], &perm);
            let turned_shape = at.shape(turned);
            let x = expand::reshape(at.w, turned, &flat);
            let c = expand::broadcast_dims(at.w, c, &flat, (0..rows.len()).collect());
            let out = match kind {
                Reduction::Prod | Reduction::HalfProd => product_of_others(at, x, c),
                _ => at_first(at, x, c, kind == Reduction::Max),
            };
            let out = expand::reshape(at.w, out, &turned_shape);
            let mut back = vec![0; perm.len()];
            for (i, &p) in perm.iter().enumerate() {
                back[p] = i;
            }
            Ok(vec![Some(expand::transpose(at.w, out, &back))])
        }
        Reduction::Any | Reduction::All => Ok(vec![None]),
    }
}

/// `c` at the first largest (or smallest) element of each row, zeros elsewhere.
fn at_first(at: &mut At, x: Id, c: Id, largest: bool) -> Id {
    let shape = at.shape(x);
    let axis = shape.len() - 1;
    let found = at.w.push(Prim::ArgReduce { largest, axis }, &[x], shape[..axis].to_vec(), DType::I64);
    let found = expand::broadcast_dims(at.w, found, &shape, (0..axis).collect());
    let here = expand::iota(at.w, &shape, axis);
    let hit = expand::map(at.w, MapOp::eq, &[here, found]);
    let zero = at.zeros(c);
    expand::select(at.w, hit, c, zero)
}

/// `c` times the product of the other elements of the row, which is right with zeros among them.
fn product_of_others(at: &mut At, x: Id, c: Id) -> Id {
    let axis = at.shape(x).len() - 1;
    let before = products_before(at, x);
    let turned = reversed(at, x, axis);
    let after = products_before(at, turned);
    let after = reversed(at, after, axis);
    let others = expand::map(at.w, MapOp::mul, &[before, after]);
    expand::map(at.w, MapOp::mul, &[c, others])
}

/// For each element of a row the product of those before it.
fn products_before(at: &mut At, x: Id) -> Id {
    let (shape, dtype) = (at.shape(x), at.dtype(x));
    let axis = shape.len() - 1;
    if shape[axis] == 0 {
        return x;
    }
    let products = at.like(x, Prim::Cumulate { kind: Reduction::Prod, axis }, &[x]);
    let start = expand::slice(at.w, products, axis, 0, shape[axis] - 1);
    let one = expand::full(at.w, &[], dtype, Scalar::F(1.0));
    let (mut low, high) = (vec![0; shape.len()], vec![0; shape.len()]);
    low[axis] = 1;
    at.w.push(Prim::Pad { low, high }, &[start, one], shape, dtype)
}

/// The elements along an axis from the last to the first.
pub fn reversed(at: &mut At, x: Id, axis: usize) -> Id {
    let shape = at.shape(x);
    let (mut start, mut step) = (vec![0; shape.len()], vec![1; shape.len()]);
    (start[axis], step[axis]) = (shape[axis] as i64 - 1, -1);
    if shape[axis] == 0 {
        return x;
    }
    at.like(x, Prim::Slice { start, step }, &[x])
}

/// A running sum from the end.
fn sums_from_end(at: &mut At, x: Id, axis: usize) -> Id {
    let turned = reversed(at, x, axis);
    let sums = at.like(x, Prim::Cumulate { kind: Reduction::Sum, axis }, &[turned]);
    reversed(at, sums, axis)
}

pub fn cumulate(at: &mut At, kind: Reduction, axis: usize) -> Pulled {
    let dtype = at.dtype(at.x[0]);
    let c = expand::cast(at.w, at.c, dtype);
    match kind {
        Reduction::Sum | Reduction::HalfSum => Ok(vec![Some(sums_from_end(at, c, axis))]),
        Reduction::Prod | Reduction::HalfProd => Ok(vec![Some(running_product(at, c, axis))]),
        _ => Err("a running maximum"),
    }
}

/// `x̄[t] = Σ_{u≥t} c[u]·Π_{v≤u, v≠t} x[v]`, every pair of positions by itself: the cost is quadratic
/// in the length of a row, and zeros among the elements are right, which the usual quotient by
/// `x[t]` is not.
fn running_product(at: &mut At, c: Id, axis: usize) -> Id {
    let x = expand::axis_last(at.w, at.x[0], axis);
    let c = expand::axis_last(at.w, c, axis);
    let (shape, dtype) = (at.shape(x), at.dtype(x));
    let (rank, n) = (shape.len(), shape[shape.len() - 1]);
    // Row `t` of the square has 1 in place of `x[t]`.
    let square = [&shape[..], &[n]].concat();
    let dims: Vec<usize> = (0..rank - 1).chain([rank]).collect();
    let rows = expand::broadcast_dims(at.w, x, &square, dims.clone());
    let (t, v) = (expand::iota(at.w, &square, rank - 1), expand::iota(at.w, &square, rank));
    let same = expand::map(at.w, MapOp::eq, &[t, v]);
    let one = expand::full(at.w, &square, dtype, Scalar::F(1.0));
    let others = expand::select(at.w, same, one, rows);
    let products = at.w.push(Prim::Cumulate { kind: Reduction::Prod, axis: rank }, &[others], square.clone(), dtype);
    let later = expand::map(at.w, MapOp::le, &[t, v]);
    let c = expand::broadcast_dims(at.w, c, &square, dims);
    let terms = expand::map(at.w, MapOp::mul, &[c, products]);
    let zero = at.zeros_of(&square, dtype);
    let terms = expand::select(at.w, later, terms, zero);
    let sum = expand::reduce(at.w, terms, Reduction::Sum, &[rank], false);
    // The axis goes back to its place.
    let perm: Vec<usize> = (0..axis).chain([rank - 1]).chain(axis..rank - 1).collect();
    expand::transpose(at.w, sum, &perm)
}

//! Cotangents of matrices from those of their factors, in graph nodes that have derivatives themselves.
//!
//! Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008); Townsend,
//! "Differentiating the singular value decomposition" (2016); for factors of matrices that are not square Walter and Lehmann,
//! "Algorithmic differentiation of linear algebra functions" (2010).
//!
//! Of a symmetric matrix the lower triangle is read, and the cotangent is that of what is read: zero above the diagonal, where
//! an element stands for both places.

use super::super::matrices::{
    apart, by_column, by_row, columns, diagonal, difference, gaps, inverse_or_zero, lower, parts, product, rows, solve,
    solve_right, sum, times, turned, upper, where_row,
};
use crate::prim::columns::*;
use tessera_ops::prim::{Factor, Triangle};
use tessera_ops::surface::solved;

/// The cotangent of the operand.
pub fn pull(factor: Factor, at: &mut At) -> Id {
    let (x, y, c) = (at.x[0], at.y, at.c);
    let shape = at.shape(x);
    let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    if shape.contains(&0) {
        return at.zeros(x);
    }
    let k = m.min(n);
    let b = &mut *at.w;
    match factor {
        Factor::Cholesky => {
            let [l, c] = [y, c].map(|part| parts(b, part, &[&[n, n]])[0]);
            cholesky(b, l, c)
        }
        Factor::Lu => {
            let [y, c] = [y, c].map(|whole| parts(b, whole, &[&[m, n], &[m]]));
            lu(b, [m, n], y[0], y[1], c[0])
        }
        Factor::Qr => {
            let [y, c] = [y, c].map(|whole| parts(b, whole, &[&[m, k], &[k, n]]));
            qr(b, [m, n], x, [y[0], y[1]], [c[0], c[1]])
        }
        Factor::Eigh => {
            let [y, c] = [y, c].map(|whole| parts(b, whole, &[&[n], &[n, n]]));
            let inner = {
                let vt = turned(b, y[1]);
                let along = times(b, vt, c[1]);
                let gaps = gaps(b, y[0]);
                product(b, gaps, along)
            };
            symmetric(b, c[0], Some(inner), y[1])
        }
        Factor::Eigvalsh => {
            let whole = again(b, Factor::Eigh, x, n + n * n);
            let v = parts(b, whole, &[&[n], &[n, n]])[1];
            symmetric(b, c, None, v)
        }
        Factor::Svd => {
            let [y, c] = [y, c].map(|whole| parts(b, whole, &[&[m, k], &[k], &[k, n]]));
            svd(b, [y[0], y[1], y[2]], [c[0], c[1], c[2]])
        }
        Factor::Svdvals => {
            let whole = again(b, Factor::Svd, x, m * k + k + k * n);
            let y = parts(b, whole, &[&[m, k], &[k], &[k, n]]);
            let left = by_column(b, y[0], c);
            times(b, left, y[2])
        }
        Factor::Eig => {
            let shapes: [&[u64]; 4] = [&[n], &[n], &[n, n], &[n, n]];
            let [y, c] = [y, c].map(|whole| parts(b, whole, &shapes));
            let [w, v] = [expand::complex(b, y[0], y[1]), expand::complex(b, y[2], y[3])];
            let [w_c, v_c] = [expand::complex(b, c[0], c[1]), expand::complex(b, c[2], c[3])];
            eig(b, [w, v], w_c, Some(v_c))
        }
        Factor::Eigvals => {
            let whole = again(b, Factor::Eig, x, 2 * n + 2 * n * n);
            let y = parts(b, whole, &[&[n], &[n], &[n, n], &[n, n]]);
            let c = parts(b, c, &[&[n], &[n]]);
            let [w, v] = [expand::complex(b, y[0], y[1]), expand::complex(b, y[2], y[3])];
            let w_c = expand::complex(b, c[0], c[1]);
            eig(b, [w, v], w_c, None)
        }
    }
}

/// Other factors of the operand, all parts in one vector.
fn again(b: &mut dyn Build, factor: Factor, x: Id, elems: u64) -> Id {
    let (shape, dtype) = (b.shape(x), b.dtype(x));
    let shape = [&shape[..shape.len() - 2], &[elems]].concat();
    b.push(Prim::Factor(factor), &[x], shape, dtype)
}

const LOWER: Triangle = Triangle { lower: true, transposed: false, unit: false };
const UPPER: Triangle = Triangle { lower: false, ..LOWER };

fn transposed(of: Triangle) -> Triangle {
    Triangle { transposed: !of.transposed, ..of }
}

/// The triangle with half of its diagonal.
fn halved(b: &mut dyn Build, x: Id) -> Id {
    let (whole, strict) = (lower(b, x, false), lower(b, x, true));
    let both = sum(b, whole, strict);
    expand::binary_const(b, MapOp::mul, both, 0.5)
}

/// Of what is read of a symmetric matrix: both places of an element below the diagonal.
fn as_read(b: &mut dyn Build, s: Id) -> Id {
    let st = turned(b, s);
    let both = sum(b, s, st);
    halved(b, both)
}

/// `l⁻ᵀ Φ(lᵀ l̄) l⁻¹`, `Φ` the lower triangle with half of the diagonal.
fn cholesky(b: &mut dyn Build, l: Id, c: Id) -> Id {
    let lt = turned(b, l);
    let c = lower(b, c, false);
    let inner = times(b, lt, c);
    let phi = halved(b, inner);
    let s = solve(b, l, phi, transposed(LOWER));
    let s = solve_right(b, l, s, LOWER);
    as_read(b, s)
}

fn lu(b: &mut dyn Build, [m, n]: [u64; 2], y: Id, order: Id, c: Id) -> Id {
    let k = m.min(n);
    let unit = Triangle { unit: true, ..LOWER };
    // The square block, which has both triangles; only those are read by what solves with it.
    let (top, top_c) = (rows(b, y, 0, k), rows(b, c, 0, k));
    let (square, square_c) = (columns(b, top, 0, k), columns(b, top_c, 0, k));
    let strict = lower(b, square, true);
    let u = upper(b, square, false);
    let (strict_t, ut) = (turned(b, strict), turned(b, u));
    let (l_c, u_c) = (lower(b, square_c, true), upper(b, square_c, false));
    // The ones on the diagonal of `l` give the cotangent itself.
    let below = times(b, strict_t, l_c);
    let mut below = sum(b, below, l_c);
    let mut above = times(b, u_c, ut);
    let right = (n > k).then(|| [columns(b, top, k, n - k), columns(b, top_c, k, n - k)]);
    if let Some([u2, u2_c]) = right {
        let u2t = turned(b, u2);
        let less = times(b, u2_c, u2t);
        below = difference(b, below, less);
    }
    let bottom = (m > k).then(|| [rows(b, y, k, m - k), rows(b, c, k, m - k)]);
    if let Some([l2, l2_c]) = bottom {
        let l2t = turned(b, l2);
        let less = times(b, l2t, l2_c);
        above = difference(b, above, less);
    }
    let (below, above) = (lower(b, below, true), upper(b, above, false));
    let inner = sum(b, below, above);
    let s = solve(b, square, inner, transposed(unit));
    let mut whole = solve_right(b, square, s, transposed(UPPER));
    let rank = b.shape(whole).len();
    if let Some([_, u2_c]) = right {
        let beside = solve(b, square, u2_c, transposed(unit));
        whole = expand::concat(b, &[whole, beside], rank - 1);
    }
    if let Some([_, l2_c]) = bottom {
        let under = solve_right(b, square, l2_c, transposed(UPPER));
        whole = expand::concat(b, &[whole, under], rank - 2);
    }
    // Row `i` belongs to row `order[i]` of the operand.
    let shape = b.shape(whole);
    let positions = expand::cast(b, order, DType::I64);
    let from = b.shape(positions);
    let places = b.push(Prim::ArgSort { axis: rank - 2, descending: false }, &[positions], from, DType::I64);
    let places = expand::broadcast_dims(b, places, &shape, (0..rank - 1).collect());
    let dtype = b.dtype(whole);
    b.push(Prim::TakeAlong { axis: rank - 2 }, &[whole, places], shape, dtype)
}

fn qr(b: &mut dyn Build, [m, n]: [u64; 2], x: Id, [q, r]: [Id; 2], [q_c, r_c]: [Id; 2]) -> Id {
    let r_c = upper(b, r_c, false);
    if m >= n {
        return tall_qr(b, q, r, q_c, r_c);
    }
    // The first columns have these factors; what stands beside them is `qᵀ` times the others.
    let others = columns(b, x, m, n - m);
    let (u, u_c, v_c) = (columns(b, r, 0, m), columns(b, r_c, 0, m), columns(b, r_c, m, n - m));
    let v_ct = turned(b, v_c);
    let more = times(b, others, v_ct);
    let q_c = sum(b, q_c, more);
    let left = tall_qr(b, q, u, q_c, u_c);
    let beside = times(b, q, v_c);
    let rank = b.shape(left).len();
    expand::concat(b, &[left, beside], rank - 1)
}

/// `(q̄ + q · copyltu(r r̄ᵀ - q̄ᵀ q)) r⁻ᵀ`, where `copyltu` mirrors the lower triangle.
fn tall_qr(b: &mut dyn Build, q: Id, r: Id, q_c: Id, r_c: Id) -> Id {
    let (r_ct, q_ct) = (turned(b, r_c), turned(b, q_c));
    let (first, second) = (times(b, r, r_ct), times(b, q_ct, q));
    let inner = difference(b, first, second);
    let (whole, strict) = (lower(b, inner, false), lower(b, inner, true));
    let mirrored = turned(b, strict);
    let symmetric = sum(b, whole, mirrored);
    let along = times(b, q, symmetric);
    let y = sum(b, q_c, along);
    solve_right(b, r, y, transposed(UPPER))
}

/// `v (diag(w̄) + inner) vᵀ`, of what is read.
fn symmetric(b: &mut dyn Build, w_c: Id, inner: Option<Id>, v: Id) -> Id {
    let vt = turned(b, v);
    let left = match inner {
        None => by_column(b, v, w_c),
        Some(inner) => {
            let d = diagonal(b, w_c);
            let whole = sum(b, d, inner);
            times(b, v, whole)
        }
    };
    let s = times(b, left, vt);
    as_read(b, s)
}

fn svd(b: &mut dyn Build, [u, s, vh]: [Id; 3], [u_c, s_c, vh_c]: [Id; 3]) -> Id {
    let (ut, v) = (turned(b, u), turned(b, vh));
    let v_c = turned(b, vh_c);
    let squares = product(b, s, s);
    let gaps = gaps(b, squares);
    let skew = |b: &mut dyn Build, x: Id| {
        let xt = turned(b, x);
        let apart = difference(b, x, xt);
        product(b, gaps, apart)
    };
    let (left, right) = (times(b, ut, u_c), times(b, vh, v_c));
    let (of_u, of_v) = (skew(b, left), skew(b, right));
    let (of_u, of_v) = (by_column(b, of_u, s), by_row(b, of_v, s));
    let both = sum(b, of_u, of_v);
    let d = diagonal(b, s_c);
    let inner = sum(b, d, both);
    let inverse = inverse_or_zero(b, s);
    let (m, k, n) =
        (b.shape(u)[b.shape(u).len() - 2], b.shape(s)[b.shape(s).len() - 1], b.shape(vh)[b.shape(vh).len() - 1]);
    let mut outer = times(b, u, inner);
    if m > k {
        // What lies outside of the columns of `u`.
        let inside = times(b, u, left);
        let outside = difference(b, u_c, inside);
        let scaled = by_column(b, outside, inverse);
        outer = sum(b, outer, scaled);
    }
    let mut whole = times(b, outer, vh);
    if n > k {
        let v_ct = turned(b, v_c);
        let along = times(b, v_ct, v);
        let inside = times(b, along, vh);
        let outside = difference(b, v_ct, inside);
        let scaled = by_row(b, outside, inverse);
        let more = times(b, u, scaled);
        whole = sum(b, whole, more);
    }
    whole
}

/// The real part of `v⁻ᴴ (diag(w̄) + E ∘ (vᴴ v̄ - vᴴ v diag(Re vᴴ v̄))) vᴴ`, where `E` has `1 / conj(w_j - w_i)`; how the vectors are
/// turned has no part in it.
fn eig(b: &mut dyn Build, [w, v]: [Id; 2], w_c: Id, v_c: Option<Id>) -> Id {
    let vt = turned(b, v);
    let vh = conjugate(b, vt);
    let mut inner = diagonal(b, w_c);
    if let Some(v_c) = v_c {
        let along = times(b, vh, v_c);
        let own = expand::real(b, along);
        let own = where_row(b, own, MapOp::eq);
        let zeros = expand::like(b, own, 0.0);
        let own = expand::complex(b, own, zeros);
        let gram = times(b, vh, v);
        let less = times(b, gram, own);
        let apart = difference(b, along, less);
        let gaps = complex_gaps(b, w);
        let turn = product(b, gaps, apart);
        inner = sum(b, inner, turn);
    }
    let right = times(b, inner, vh);
    // The system of complex numbers as one of real ones, of twice the size.
    let [re, im] = [expand::real(b, vh), expand::imag(b, vh)];
    let minus = expand::unary(b, MapOp::neg, im);
    let rank = b.shape(v).len();
    let upper = expand::concat(b, &[re, minus], rank - 1);
    let lower = expand::concat(b, &[im, re], rank - 1);
    let matrix = expand::concat(b, &[upper, lower], rank - 2);
    let [re, im] = [expand::real(b, right), expand::imag(b, right)];
    let sides = expand::concat(b, &[re, im], rank - 2);
    let x = solved(b, matrix, sides);
    let n = b.shape(v)[rank - 1];
    rows(b, x, 0, n)
}

fn conjugate(b: &mut dyn Build, z: Id) -> Id {
    let [re, im] = [expand::real(b, z), expand::imag(b, z)];
    let im = expand::unary(b, MapOp::neg, im);
    expand::complex(b, re, im)
}

/// `1 / conj(w_j - w_i)` at row `i` and column `j`, 0 where they are equal.
fn complex_gaps(b: &mut dyn Build, w: Id) -> Id {
    let [re, im] = [expand::real(b, w), expand::imag(b, w)].map(|part| apart(b, part));
    let (squares, more) = (product(b, re, re), product(b, im, im));
    let size = sum(b, squares, more);
    let by = inverse_or_zero(b, size);
    // The number itself over its squared magnitude is one over its conjugate.
    let [re, im] = [product(b, re, by), product(b, im, by)];
    expand::complex(b, re, im)
}

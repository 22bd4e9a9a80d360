//! Factors of matrices: `cholesky lu_factor qr eigh eigvalsh svd svdvals eig eigvals`.

use super::expand;
use super::row::{Call, Lowered, Row, req, wide_of};
use super::rule::{self, Inferred};
use super::*;
use crate::prim::Factor;

const X: &[Param] = &[req("x", ParamKind::Tensor)];

/// Rows that f32 numbers exactly, as the factors of elimination do.
const ROWS_MAX: i64 = 1 << 24;

macro_rules! rows {
    ($($row:ident $name:literal $factor:ident, $known:expr, $doc:expr;)*) => {
        $(pub const $row: Row = Row::new(
            $name,
            X,
            |cx, a, _| infer($name, Factor::$factor, cx, a),
            |c| lower(Factor::$factor, c),
        )
        .known_as($known)
        .doc($doc);)*
    };
}

rows! {
    CHOLESKY "cholesky" Cholesky, &["chol", "potrf"],
        "The lower triangular `l` with `l @ l.T == x`, of every matrix of the last two dims; `x` is positive definite.\n\n\
         Only the lower triangle of `x` is read, also by the derivative: that is zero above the diagonal, and an element below it \
         stands for both places. Every element is one chain of fused multiply-adds, whatever the threads. `n³/3` operations.\n\n\
         E0202: the matrix is not square. E0719: it is not positive definite, or not finite.\n\n\
         ```tessera\nl = op.cholesky(x @ x.T + op.eye(N))\n```";
    LU_FACTOR "lu_factor" Lu, &["lu", "getrf", "plu"],
        "The factors of Gaussian elimination with partial pivoting, of every matrix of the last two dims: both triangles in one \
         matrix, and the rows (i64) of `x` in the order of the pivots.\n\n\
         `l @ u` is `op.take(x, rows, axis=0)`, where `l` is what lies below the diagonal with ones on it and `u` the rest. A pivot is the \
         first of the largest magnitudes of its column. A singular matrix has these factors: a pivot is 0; the derivative \
         stops there. Every element is one chain of fused multiply-adds, whatever the threads. `n³·2/3` operations.\n\n\
         E0719: the matrix is not finite.\n\n\
         ```tessera\nlu, rows = op.lu_factor(x)\n```";
    QR "qr" Qr, &["geqrf", "householder"],
        "Orthonormal columns `q` and an upper triangular `r` with `q @ r == x`, of every matrix of the last two dims: `m` by `k` and `k` by \
         `n`, `k` the less of `m` and `n`.\n\n\
         By Householder reflectors; a diagonal element of `r` has the sign that LAPACK gives it, which may be negative. \
         The derivative of a matrix whose first `k` columns depend on each other stops (E0719). `4·m·n² - n³·4/3` operations.\n\n\
         E0719: the matrix is not finite.\n\n\
         ```tessera\nq, r = op.qr(x)\n```";
    EIGH "eigh" Eigh, &["syevd", "symeig"],
        "Ascending eigenvalues `w` and the eigenvectors, columns of length 1, of every symmetric matrix of the last two dims: \
         `x @ v == v * w`.\n\n\
         Only the lower triangle of `x` is read, also by the derivative. In each vector the first element of at least half the largest \
         magnitude is positive. Where eigenvalues are equal their vectors are one of many choices, and the derivative leaves out what would change one \
         into another: it is right for what does not depend on the choice among equal ones. About `9·n³` operations.\n\n\
         E0202: the matrix is not square. E0719: it is not finite.\n\n\
         ```tessera\nw, v = op.eigh(x @ x.T)\n```";
    EIGVALSH "eigvalsh" Eigvalsh, &[],
        "The ascending eigenvalues of every symmetric matrix of the last two dims, without vectors: the bits that `eigh` gives.\n\n\
         Only the lower triangle of `x` is read. `n³·4/3` operations; the derivative computes the vectors.\n\n\
         E0202: the matrix is not square. E0719: it is not finite.\n\n\
         ```tessera\nw = op.eigvalsh(x @ x.T)\n```";
    SVD "svd" Svd, &["gesdd"],
        "Singular values, descending, with the vectors on both sides, of every matrix of the last two dims: \
         `(u * s) @ vh == x`, with `k` columns of `u` and rows of `vh`, `k` the less of `m` and `n`.\n\n\
         In each column of `u` the first element of at least half the largest magnitude is positive. Where singular values are equal, or 0, the derivative \
         leaves out what would change one choice of vectors into another, as that of `eigh` does. About `14·m·n²` operations.\n\n\
         E0719: the matrix is not finite.\n\n\
         ```tessera\nu, s, vh = op.svd(x)\n```";
    SVDVALS "svdvals" Svdvals, &["singular_values"],
        "The singular values, descending, of every matrix of the last two dims, without vectors: the bits that `svd` gives.\n\n\
         About `4·m·n²` operations; the derivative computes the vectors.\n\n\
         E0719: the matrix is not finite.\n\n\
         ```tessera\ns = op.svdvals(x)\n```";
    EIG "eig" Eig, &["geev"],
        "Eigenvalues `w` and eigenvectors of every square matrix of the last two dims, c64: `x @ v == v * w`, columns of length 1.\n\n\
         Values are in ascending order of their real parts, then of their imaginary parts; those of real matrices come in pairs of \
         conjugates. In each vector the first element of at least half the largest magnitude is real and positive. f32 is computed in f64 and rounded at the end; \
         f64 is refused. The derivative is right for what does not depend on how vectors are turned, and stops for a matrix \
         whose vectors depend on each other. About `25·n³` operations.\n\n\
         E0202: the matrix is not square. E0205: it is f64. E0719: it is not finite.\n\n\
         ```tessera\nw, v = op.eig(x)\n```";
    EIGVALS "eigvals" Eigvals, &[],
        "The eigenvalues of every square matrix of the last two dims, c64, without vectors: the bits that `eig` gives.\n\n\
         About `10·n³` operations; the derivative computes the vectors.\n\n\
         E0202: the matrix is not square. E0205: it is f64. E0719: it is not finite.\n\n\
         ```tessera\nw = op.eigvals(x)\n```";
}

/// The matrix has as many rows as columns.
pub(super) fn square(name: &str, cx: &mut InferCx, x: &TensorType, i: usize) -> Result<Size, OpError> {
    rule::at_least_rank(x, 2, i, name)?;
    let (m, n) = (&x.shape[x.rank() - 2], &x.shape[x.rank() - 1]);
    let text = || format!("`{name}` takes square matrices, and these are {m} by {n}");
    rule::require(cx, m, n, Code::E0202, text, |e| e.arg(i, x.to_string()))?;
    Ok(n.clone())
}

fn infer(name: &str, factor: Factor, cx: &mut InferCx, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let dtype = rule::as_float(name, x, 0)?;
    rule::at_least_rank(x, 2, 0, name)?;
    if factor.is_square() {
        square(name, cx, x, 0)?;
    }
    let is_complex = matches!(factor, Factor::Eig | Factor::Eigvals);
    if is_complex && dtype == Some(DType::F64) {
        return Err(OpError::new(Code::E0205, format!("`{name}` gives c64, which is less than f64"))
            .arg(0, x.to_string())
            .help("round the operand where that is meant: `.to(f32)`"));
    }
    let (batch, [m, n]) = x.shape.split_at(x.rank() - 2) else { return rule::one(vec![], dtype) };
    let k = rule::least(cx.facts, m, n);
    let part = |tail: &[&Size]| {
        let tail: Vec<Size> = tail.iter().map(|s| (*s).clone()).collect();
        rule::typed([batch, &tail].concat(), dtype)
    };
    Ok(match factor {
        Factor::Cholesky => OpTypes::One(part(&[n, n])),
        Factor::Lu => {
            if m.as_const().is_some_and(|m| m > ROWS_MAX) {
                let text = format!("`{name}` numbers at most {ROWS_MAX} rows, and these are {m}");
                return Err(OpError::new(Code::E0711, text).arg(0, x.to_string()));
            }
            OpTypes::Many(vec![part(&[m, n]), TensorType { dtype: Some(DType::I64), ..part(&[m]) }])
        }
        Factor::Qr => OpTypes::Many(vec![part(&[m, &k]), part(&[&k, n])]),
        Factor::Eigh => OpTypes::Many(vec![part(&[n]), part(&[n, n])]),
        Factor::Eigvalsh => OpTypes::One(part(&[n])),
        Factor::Svd => OpTypes::Many(vec![part(&[m, &k]), part(&[&k]), part(&[&k, n])]),
        Factor::Svdvals => OpTypes::One(part(&[&k])),
        Factor::Eig => OpTypes::Many([part(&[n]), part(&[n, n])].map(|t| complex(t, dtype)).to_vec()),
        Factor::Eigvals => OpTypes::One(complex(part(&[n]), dtype)),
    })
}

fn complex(t: TensorType, of: Option<DType>) -> TensorType {
    TensorType { dtype: of.map(|_| DType::C64), ..t }
}

fn lower(factor: Factor, call: &mut Call) -> Lowered {
    let x = call.wide(0)?;
    let b = &mut *call.b;
    let (shape, dtype) = (b.shape(x), b.dtype(x));
    let [batch @ .., m, n] = &shape[..] else { return Ok(vec![]) };
    let parts = factor.parts(*m, *n);
    let whole = b.push(
        Prim::Factor(factor),
        &[x],
        [batch, &[parts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n))]].concat(),
        dtype,
    );
    let mut from = 0;
    let mut out = vec![];
    for (shape, dtype) in &call.out {
        let count = shape[batch.len()..].iter().product();
        let mut next = |b: &mut dyn Build| {
            let part = expand::slice(b, whole, batch.len(), from, count);
            from += count;
            expand::reshape(b, part, shape)
        };
        let first = next(b);
        out.push(if dtype.is_complex() {
            let second = next(b);
            expand::complex(b, first, second)
        } else {
            first
        });
    }
    Ok(out)
}

/// The type in which a system is solved.
pub(super) fn solved_in(dtype: Option<DType>) -> DType {
    wide_of(dtype.unwrap_or(DType::F32))
}

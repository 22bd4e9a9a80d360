//! Matrix products.

use super::At;
use tessera_base::DType;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Steps};
use tessera_ops::surface::{Build, Id, expand};

/// `Y = AB`: `Ā = Ȳ Bᵀ`, `B̄ = Aᵀ Ȳ`, accumulated as the product itself and rounded to the
/// operands' types. A product whose rows take some steps only does not see the other elements of `A`.
pub fn dot(at: &mut At, accum: DType, steps: Steps) -> Vec<Option<Id>> {
    let (a, b) = (at.x[0], at.x[1]);
    // Where the result is wider than the operands its cotangent is not narrowed.
    let meet = at.dtype(at.c);
    let accum = if accum == DType::F16 && meet != DType::F16 { DType::F32 } else { accum };
    // The cotangent of a result that is wider than its factors is summed in its own type.
    let accum = if meet == DType::F64 { DType::F64 } else { accum };
    let left = at.needed[0].then(|| {
        let wide = expand::cast(at.w, b, meet);
        let turned = turned(at, wide);
        let dtype = at.dtype(a);
        let product = dot_of(at, (at.c, turned), accum, Steps::All, dtype);
        triangle(at, product, steps)
    });
    let right = at.needed[1].then(|| {
        let wide = expand::cast(at.w, a, meet);
        let turned = turned(at, wide);
        let dtype = at.dtype(b);
        // Step `k` of row `i` is step `i` of row `k`.
        let steps = match steps {
            Steps::All => Steps::All,
            Steps::To => Steps::From,
            Steps::From => Steps::To,
        };
        dot_of(at, (turned, at.c), accum, steps, dtype)
    });
    vec![left, right]
}

/// The last two dims exchanged.
fn turned(at: &mut At, x: Id) -> Id {
    let rank = at.shape(x).len();
    let perm: Vec<usize> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    expand::transpose(at.w, x, &perm)
}

fn dot_of(at: &mut At, (x, y): (Id, Id), accum: DType, steps: Steps, dtype: DType) -> Id {
    let (mut shape, other) = (at.shape(x), at.shape(y));
    if let (Some(last), Some(n)) = (shape.last_mut(), other.last()) {
        *last = *n;
    }
    at.w.push(Prim::Dot { accum, steps, pairs: false }, &[x, y], shape, dtype)
}

/// Zeros where a row does not take the step.
fn triangle(at: &mut At, x: Id, steps: Steps) -> Id {
    let kept = match steps {
        Steps::All => return x,
        Steps::To => MapOp::ge,
        Steps::From => MapOp::le,
    };
    let shape = at.shape(x);
    let rank = shape.len();
    let (row, column) = (expand::iota(at.w, &shape, rank - 2), expand::iota(at.w, &shape, rank - 1));
    let keep = expand::map(at.w, kept, &[row, column]);
    let zero = at.zeros(x);
    expand::select(at.w, keep, x, zero)
}

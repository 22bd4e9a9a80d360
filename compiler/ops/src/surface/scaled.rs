//! Products of fp8 factors with scales of blocks, as `numerics.precision("aggressive")` takes them.
//!
//! The scales are powers of two, so that a value times its scale is a number of bf16 exactly, and
//! every term of the product is exact in f32. On a target without fp8 units the product is that
//! of bf16 factors, whose sum is f32 from the first step to the last.

use super::quantize::rounded;
use super::*;

/// Elements of the contracted dim that share a scale.
const BLOCK: u64 = 128;

/// A factor: its fp8 type, and whether blocks of 128×128 share a scale (weights) or 128 elements
/// along the contracted dim.
#[derive(Clone, Copy)]
struct Kind {
    dtype: DType,
    square: bool,
}

/// `x @ y` of matrices or batches of them, rounded once to `result`. A `y` of rank 2 is a weight.
/// The derivative takes the cotangent in fp8_e5m2, and no notice of the rounding of factors.
pub fn scaled_dot(b: &mut dyn Build, x: Id, y: Id, accum: DType, result: DType) -> Id {
    let weight = b.shape(x).len() == 2;
    let (left, right) = (Kind { dtype: DType::F8E4M3, square: false }, Kind { dtype: DType::F8E4M3, square: weight });
    product(b, (x, left), (y, right), accum, result)
}

fn product(b: &mut dyn Build, x: (Id, Kind), y: (Id, Kind), accum: DType, result: DType) -> Id {
    let rank = b.shape(x.0).len();
    let (left, right) = (factor(b, x, rank - 1), factor(b, y, rank - 2));
    let output = expand::dot(b, left, right, accum, result);
    let square = y.1.square;
    let pull: Pull = Arc::new(move |b, p| pull(b, p, accum, square));
    b.derive(Derivative { inputs: vec![x.0, y.0], output, saved: vec![], pull });
    output
}

/// The numbers of a factor after rounding, in bf16.
fn factor(b: &mut dyn Build, (x, kind): (Id, Kind), contracted: usize) -> Id {
    let rank = b.shape(x).len();
    let mut block = if kind.square { [BLOCK, BLOCK] } else { [1, 1] };
    block[contracted + 2 - rank] = BLOCK;
    let wide = expand::cast(b, x, DType::F32);
    let y = rounded(b, wide, kind.dtype, Some(&block));
    let y = expand::cast(b, y, DType::Bf16);
    let through: Pull = Arc::new(|b, p| {
        let dtype = b.dtype(p.inputs[0]);
        vec![Some(expand::cast(b, p.cotangent, dtype))]
    });
    b.derive(Derivative { inputs: vec![x], output: y, saved: vec![], pull: through });
    y
}

/// `X̄ = Ȳ Yᵀ`, `Ȳ = Xᵀ Ȳ`.
fn pull(b: &mut dyn Build, p: &Pulled, accum: DType, square: bool) -> Vec<Option<Id>> {
    let gradient = Kind { dtype: DType::F8E5M2, square: false };
    let (x, y) = (p.inputs[0], p.inputs[1]);
    let turned = |b: &mut dyn Build, x: Id| {
        let rank = b.shape(x).len();
        let perm: Vec<usize> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
        expand::transpose(b, x, &perm)
    };
    let (over, under) = (turned(b, y), turned(b, x));
    let (dx, dy) = (b.dtype(x), b.dtype(y));
    let right = Kind { dtype: DType::F8E4M3, square };
    let left = Kind { dtype: DType::F8E4M3, square: false };
    let to_x = product(b, (p.cotangent, gradient), (over, right), accum, dx);
    let to_y = product(b, (under, left), (p.cotangent, gradient), accum, dy);
    vec![Some(to_x), Some(to_y)]
}

//! `tile` and `repeat`: copies of a tensor, copies of its elements.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;

pub const TILE: Row =
    Row::new("tile", &[req("x", ParamKind::Tensor), req("reps", ParamKind::Shape)], infer_tile, lower_tile)
        .method()
        .doc(
            "The whole tensor repeated `reps[i]` times along dim `i`; missing leading dims or counts are 1.\n\n\
         ```tessera\nop.tile(x, (2, 1))    # Tensor[N, D, f32] -> Tensor[2*N, D, f32]\n```",
        );

/// Sizes and counts of one rank.
fn aligned(x: &TensorType, reps: &[Size]) -> (Vec<Size>, Vec<Size>) {
    let rank = x.rank().max(reps.len());
    let fill = |s: &[Size]| [vec![Size::constant(1); rank - s.len()], s.to_vec()].concat();
    (fill(&x.shape), fill(reps))
}

fn infer_tile(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let (sizes, reps) = aligned(x, &rule::shape(args, 1)?);
    rule::one(sizes.iter().zip(&reps).map(|(s, r)| s.mul(r)).collect(), x.dtype)
}

fn lower_tile(call: &mut Call) -> Lowered {
    let (t, x) = (call.ty(0)?, call.id(0)?);
    let out = call.result().0;
    let (sizes, reps) = aligned(&t, &rule::shape(&call.sym, 1)?);
    // [n] becomes [r, n] by broadcasting, then [r * n].
    let mut wide = vec![];
    for (s, r) in sizes.iter().zip(&reps) {
        wide.push(rule::constant(r, 1, "a count")? as u64);
        wide.push(rule::constant(s, 0, "a size")? as u64);
    }
    let dims = (0..sizes.len()).map(|i| 2 * i + 1).collect();
    let flat: Vec<u64> = wide.iter().skip(1).step_by(2).copied().collect();
    let x = expand::reshape(call.b, x, &flat);
    let x = expand::broadcast_dims(call.b, x, &wide, dims);
    Ok(vec![expand::reshape(call.b, x, &out)])
}

pub const REPEAT: Row = Row::new(
    "repeat",
    &[req("x", ParamKind::Tensor), req("repeats", ParamKind::Int), opt("axis", ParamKind::Axis, Default::None)],
    infer_repeat,
    lower_repeat,
)
.method()
.known_as(&["repeat_interleave"])
.doc(
    "Each element repeated `repeats` times along an axis; without an axis, of the flattened tensor.\n\n\
     ```tessera\nop.repeat(op.arange(2), 2)    # [0 0 1 1]\n```",
);

fn infer_repeat(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let count = rule::int(args, 1)?;
    if count.as_const().is_some_and(|n| n < 0) {
        return Err(rule::negative(count, 1));
    }
    if rule::absent(args, 2) {
        return rule::one(vec![x.elems().mul(count)], x.dtype);
    }
    let axis = rule::axis(args, 2, x)?;
    let mut shape = x.shape.clone();
    shape[axis] = shape[axis].mul(count);
    rule::one(shape, x.dtype)
}

fn lower_repeat(call: &mut Call) -> Lowered {
    let (t, mut x) = (call.ty(0)?, call.id(0)?);
    let out = call.result().0;
    let count = rule::int_const(&call.sym, 1, "the number of repeats")? as u64;
    let b = &mut *call.b;
    let axis = if rule::absent(&call.sym, 2) {
        let elems = b.shape(x).iter().product();
        x = expand::reshape(b, x, &[elems]);
        0
    } else {
        rule::axis(&call.sym, 2, &t)?
    };
    let mut wide = b.shape(x);
    let dims = (0..wide.len()).map(|d| if d <= axis { d } else { d + 1 }).collect();
    wide.insert(axis + 1, count);
    let x = expand::broadcast_dims(b, x, &wide, dims);
    Ok(vec![expand::reshape(b, x, &out)])
}

//! `flip` and `roll`: other orders along an axis.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::prim::Prim;

pub const FLIP: Row = Row::new(
    "flip",
    &[req("x", ParamKind::Tensor), opt("axis", ParamKind::Axes, Default::None)],
    infer_flip,
    lower_flip,
)
.method()
.known_as(&["reverse", "fliplr", "flipud"])
.doc(
    "The elements in reverse order along an axis, a tuple of axes, or all axes.\n\n```tessera\nop.flip(x, axis=1)\n```",
);

fn infer_flip(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::axes(args, 1, x)?;
    rule::one(x.shape.clone(), x.dtype)
}

fn lower_flip(call: &mut Call) -> Lowered {
    let (t, x) = (call.ty(0)?, call.id(0)?);
    let axes = rule::axes(&call.sym, 1, &t)?;
    let (shape, dtype) = (call.b.shape(x), call.b.dtype(x));
    if axes.is_empty() || shape.contains(&0) {
        return Ok(vec![x]);
    }
    let (mut start, mut step) = (vec![0; shape.len()], vec![1; shape.len()]);
    for a in axes {
        start[a] = shape[a] as i64 - 1;
        step[a] = -1;
    }
    Ok(vec![call.b.push(Prim::Slice { start, step }, &[x], shape, dtype)])
}

pub const ROLL: Row = Row::new(
    "roll",
    &[req("x", ParamKind::Tensor), req("shift", ParamKind::Ints), opt("axis", ParamKind::Axes, Default::None)],
    infer_roll,
    lower_roll,
)
.method()
.doc(
    "The elements moved by `shift` places along an axis; those that leave at one end enter at the other.\n\n\
     Without an axis the flattened tensor is rolled. Several axes take several shifts.\n\n```tessera\nop.roll(x, 1, axis=0)\n```",
);

/// The axes with their shifts; `None` for the flattened tensor.
fn shifts(args: &[SymArg]) -> Result<Vec<(Option<usize>, i128)>, OpError> {
    let x = rule::tensor(args, 0)?;
    let by: Vec<i128> = rule::ints_const(args, 1, "a shift")?.into_iter().map(i128::from).collect();
    if rule::absent(args, 2) {
        return Ok(vec![(None, by.iter().sum())]);
    }
    let axes = rule::ints_const(args, 2, "an axis")?;
    if by.len() != 1 && by.len() != axes.len() {
        return Err(OpError::new(Code::E0207, format!("{} shifts for {} axes", by.len(), axes.len()))
            .arg(1, rule::tuple(&by))
            .arg(2, rule::tuple(&axes)));
    }
    axes.iter()
        .enumerate()
        .map(|(i, &a)| Ok((Some(rule::normal_axis(a, x.rank(), 2, x)?), by[if by.len() == 1 { 0 } else { i }])))
        .collect()
}

fn infer_roll(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    shifts(args)?;
    rule::one(x.shape.clone(), x.dtype)
}

fn lower_roll(call: &mut Call) -> Lowered {
    let mut x = call.id(0)?;
    let shape = call.result().0;
    let b = &mut *call.b;
    for (axis, shift) in shifts(&call.sym)? {
        let axis = axis.unwrap_or_else(|| {
            x = expand::reshape(b, x, &[shape.iter().product()]);
            0
        });
        let size = b.shape(x)[axis];
        if size == 0 {
            continue;
        }
        let cut = size - shift.rem_euclid(i128::from(size)) as u64;
        if cut != size {
            let (tail, head) = (expand::slice(b, x, axis, cut, size - cut), expand::slice(b, x, axis, 0, cut));
            x = expand::concat(b, &[tail, head], axis);
        }
    }
    Ok(vec![expand::reshape(b, x, &shape)])
}

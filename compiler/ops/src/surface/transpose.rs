//! `transpose permute moveaxis swapaxes`: other orders of dims.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;

type Order = fn(&[SymArg], &TensorType) -> Result<Vec<usize>, OpError>;

pub const TRANSPOSE: Row = Row::new(
    "transpose",
    &[req("x", ParamKind::Tensor), opt("axes", ParamKind::Axes, Default::None)],
    |_, a, _| infer(all_axes, a),
    |c| lower(all_axes, c),
)
.method()
.doc(
    "The dims in another order; without `axes`, reversed. Also `x.T`.\n\n\
     Dim `i` of the result is dim `axes[i]` of the operand. To exchange two dims see `swapaxes`.\n\n\
     ```tessera\nop.transpose(x, (1, 0, 2))\nx.transpose(1, 0, 2)\n```",
);

pub const PERMUTE: Row = Row::new(
    "permute",
    &[req("x", ParamKind::Tensor), req("axes", ParamKind::Axes)],
    |_, a, _| infer(all_axes, a),
    |c| lower(all_axes, c),
)
.method()
.known_as(&["permute_dims"])
.doc("The dims in the order given, as `transpose`.\n\n```tessera\nx.permute(0, 2, 1)\n```");

pub const MOVEAXIS: Row = Row::new(
    "moveaxis",
    &[req("x", ParamKind::Tensor), req("source", ParamKind::Axes), req("destination", ParamKind::Axes)],
    |_, a, _| infer(moved, a),
    |c| lower(moved, c),
)
.method()
.known_as(&["movedim", "rollaxis"])
.doc("Moves dims to other positions; the rest keep their order.\n\n```tessera\nop.moveaxis(x, -1, 0)\n```");

pub const SWAPAXES: Row = Row::new(
    "swapaxes",
    &[req("x", ParamKind::Tensor), req("axis1", ParamKind::Axis), req("axis2", ParamKind::Axis)],
    |_, a, _| infer(swapped, a),
    |c| lower(swapped, c),
)
.method()
.known_as(&["swapdims"])
.doc("Exchanges two dims.\n\n```tessera\nk.swapaxes(-1, -2)\n```");

fn all_axes(args: &[SymArg], x: &TensorType) -> Result<Vec<usize>, OpError> {
    if rule::absent(args, 1) {
        return Ok((0..x.rank()).rev().collect());
    }
    let given = rule::ints_const(args, 1, "an axis")?;
    let wrong = |text: String| OpError::new(Code::E0207, text).arg(0, x.to_string()).arg(1, rule::tuple(&given));
    if given.len() != x.rank() {
        let error =
            wrong(format!("{} axes for a tensor of rank {}: each axis must be named once", given.len(), x.rank()));
        return Err(match given[..] {
            [a, b] => error.help(format!("to exchange two axes: `.swapaxes({a}, {b})`")),
            _ => error,
        });
    }
    let mut out = vec![];
    for &axis in &given {
        let a = rule::normal_axis(axis, x.rank(), 1, x)?;
        if out.contains(&a) {
            return Err(wrong(format!("axis {a} is named twice: each axis must be named once")));
        }
        out.push(a);
    }
    Ok(out)
}

fn moved(args: &[SymArg], x: &TensorType) -> Result<Vec<usize>, OpError> {
    let read = |i: usize| {
        let mut out = vec![];
        for axis in rule::ints_const(args, i, "an axis")? {
            let a = rule::normal_axis(axis, x.rank(), i, x)?;
            if out.contains(&a) {
                return Err(OpError::new(Code::E0207, format!("axis {a} is named twice"))
                    .arg(0, x.to_string())
                    .arg(i, "here"));
            }
            out.push(a);
        }
        Ok(out)
    };
    let (from, to) = (read(1)?, read(2)?);
    if from.len() != to.len() {
        return Err(OpError::new(Code::E0207, format!("{} axes to move and {} places", from.len(), to.len()))
            .arg(1, "these axes")
            .arg(2, "to these places"));
    }
    let mut order: Vec<usize> = (0..x.rank()).filter(|d| !from.contains(d)).collect();
    let mut pairs: Vec<(usize, usize)> = to.into_iter().zip(from).collect();
    pairs.sort_unstable();
    for (place, axis) in pairs {
        order.insert(place.min(order.len()), axis);
    }
    Ok(order)
}

fn swapped(args: &[SymArg], x: &TensorType) -> Result<Vec<usize>, OpError> {
    let (a, b) = (rule::axis(args, 1, x)?, rule::axis(args, 2, x)?);
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(a, b);
    Ok(order)
}

fn infer(order: Order, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let order = order(args, x)?;
    rule::one(order.iter().map(|&d| x.shape[d].clone()).collect(), x.dtype)
}

fn lower(order: Order, call: &mut Call) -> Lowered {
    let (t, x) = (call.ty(0)?, call.id(0)?);
    let order = order(&call.sym, &t)?;
    Ok(vec![expand::transpose(call.b, x, &order)])
}

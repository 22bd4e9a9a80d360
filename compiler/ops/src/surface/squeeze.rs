//! `squeeze unsqueeze expand_dims`: dims of size 1.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;

pub const SQUEEZE: Row = Row::new(
    "squeeze",
    &[req("x", ParamKind::Tensor), opt("axis", ParamKind::Axes, Default::None)],
    infer_squeeze,
    lower,
)
.method()
.settles(ones)
.doc(
    "Without the dims named, which must have size 1; by default without all dims whose size is the constant 1.\n\n\
             ```tessera\nop.squeeze(x, axis=0)    # Tensor[1, N, f32] -> Tensor[N, f32]\n```",
);

const NEW_AXIS: &[Param] = &[req("x", ParamKind::Tensor), req("axis", ParamKind::Axes)];

pub const UNSQUEEZE: Row = Row::new("unsqueeze", NEW_AXIS, infer_unsqueeze, lower)
    .method()
    .doc("With a new dim of size 1 at the position given in the result. Also `x[:, None]`.\n\n```tessera\nx.unsqueeze(-1)    # Tensor[N, f32] -> Tensor[N, 1, f32]\n```");

pub const EXPAND_DIMS: Row = Row::new("expand_dims", NEW_AXIS, infer_unsqueeze, lower)
    .method()
    .known_as(&["newaxis"])
    .doc("With new dims of size 1 at the positions given in the result.\n\n```tessera\nop.expand_dims(x, (0, 2))\n```");

fn infer_squeeze(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let one = Size::constant(1);
    let axes: Vec<usize> = match ones(args) {
        Some((_, axes)) => axes.into_iter().map(|a| a as usize).collect(),
        None => rule::axes(args, 1, x)?,
    };
    for &d in &axes {
        let text = || format!("axis {d} has size {}, and only dims of size 1 can be left out", x.shape[d]);
        rule::require(cx, &x.shape[d], &one, Code::E0202, text, |e| {
            e.arg(0, x.to_string()).arg(1, format!("axis {d}"))
        })?;
    }
    rule::one(rule::reduced(&x.shape, &axes, false), x.dtype)
}

/// The dims that are left out where none is named. One whose size 1 only data brings is kept in every run.
fn ones(args: &[SymArg]) -> Option<(usize, Vec<i64>)> {
    let x = rule::tensor(args, 0).ok().filter(|_| rule::absent(args, 1))?;
    let one = Size::constant(1);
    Some((1, (0..x.rank()).filter(|&d| x.shape[d] == one).map(|d| d as i64).collect()))
}

fn infer_unsqueeze(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let given = rule::ints_const(args, 1, "an axis")?;
    let rank = x.rank() + given.len();
    let mut axes = vec![];
    for axis in given {
        let a = rule::normal_axis(axis, rank, 1, x)?;
        if axes.contains(&a) {
            return Err(OpError::new(Code::E0207, format!("axis {a} is named twice"))
                .arg(0, x.to_string())
                .arg(1, "here"));
        }
        axes.push(a);
    }
    axes.sort_unstable();
    let mut shape = x.shape.clone();
    for a in axes {
        shape.insert(a, Size::constant(1));
    }
    rule::one(shape, x.dtype)
}

fn lower(call: &mut Call) -> Lowered {
    let (x, out) = (call.id(0)?, call.result().0);
    Ok(vec![expand::reshape(call.b, x, &out)])
}

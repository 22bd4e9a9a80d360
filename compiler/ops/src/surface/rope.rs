//! `rope`: rotary position embedding.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;

pub const ROPE: Row = Row::new(
    "rope",
    &[
        req("x", ParamKind::Tensor),
        opt("positions", ParamKind::Tensor, Default::None),
        opt("base", ParamKind::Float, Default::Float(10000.0)),
        opt("axis", ParamKind::Axis, Default::Int(-2)),
        opt("interleaved", ParamKind::Bool, Default::Bool(false)),
    ],
    infer,
    lower,
)
.method()
.known_as(&["rotary", "rotary_embedding", "apply_rotary"])
.doc(
    "Rotary position embedding: pairs of features rotated by an angle that grows with the position.\n\n\
     Features are the last axis, of even size `D`; feature `i` of the first half is paired with feature `i` of the second \
     half (the GPT-NeoX and LLaMA layout) and turned by `position * base ** (-2 * i / D)`. Positions run along `axis`, by \
     default the last but one (`[batch, heads, time, features]`); for `[batch, time, heads, features]` pass `axis=1`. \
     `interleaved=True` pairs neighbouring features instead, `2 * i` with `2 * i + 1`. `positions` (shape `[T]`) replaces 0, 1, 2, …, for example when decoding. f32 inside, f64 of f64. (Su et al., 2021.)\n\n\
     ```tessera\nq = op.rope(q, positions=op.arange(T) + offset)\n```",
);

fn infer(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::at_least_rank(x, 2, 0, "rope")?;
    let axis = rule::axis(args, 3, x)?;
    rule::float(args, 2)?;
    rule::flag(args, 4)?;
    let last = x.rank() - 1;
    if axis == last {
        return Err(OpError::new(Code::E0207, "positions and features cannot lie along one axis")
            .arg(0, x.to_string())
            .arg(3, "the last axis holds the features"));
    }
    let features = &x.shape[last];
    let two = Size::constant(2);
    let half = features.normal(cx.facts).exact_div(&two).or_else(|| features.floor_div(&two)).unwrap_or_default();
    let text = || format!("the features are turned in pairs, and {features} is not even");
    rule::require(cx, features, &half.scale(2), Code::E0202, text, |e| e.arg(0, x.to_string()))?;
    if let Some(p) = rule::optional_tensor(args, 1)? {
        let blame = |e: OpError| e.arg(0, x.to_string()).arg(1, p.to_string());
        if p.rank() != 1 {
            return Err(blame(OpError::new(
                Code::E0207,
                format!("one position for each of the {} steps is needed", x.shape[axis]),
            )));
        }
        let text = || format!("axis {axis} has size {}, and there are {} positions", x.shape[axis], p.shape[0]);
        rule::require(cx, &x.shape[axis], &p.shape[0], Code::E0202, text, blame)?;
    }
    rule::one(x.shape.clone(), rule::as_float("rope", x, 0)?)
}

fn lower(call: &mut Call) -> Lowered {
    let t = call.ty(0)?;
    let axis = rule::axis(&call.sym, 3, &t)?;
    let x = call.wide(0)?;
    let interleaved = rule::flag(&call.sym, 4)?;
    let shape = call.b.shape(x);
    let last = shape.len() - 1;
    let half = shape[last] / 2;
    let table = [shape[axis], half];
    let dtype = call.b.dtype(x);
    let angles = angles(call, table, dtype)?;
    let b = &mut *call.b;
    let mut halves = shape.clone();
    halves[last] = half;
    let spread = |b: &mut dyn Build, op: MapOp| {
        let y = expand::unary(b, op, angles);
        let y = expand::cast(b, y, dtype);
        expand::broadcast_dims(b, y, &halves, vec![axis, last])
    };
    let (cos, sin) = (spread(b, MapOp::cos), spread(b, MapOp::sin));
    // Neighbours lie along an axis of their own.
    let twos = [&shape[..last], &[half, 2]].concat();
    let x = if interleaved { expand::reshape(b, x, &twos) } else { x };
    let part = |b: &mut dyn Build, i: u64| {
        if !interleaved {
            return expand::slice(b, x, last, i * half, half);
        }
        let part = expand::slice(b, x, last + 1, i, 1);
        expand::reshape(b, part, &halves)
    };
    let (u, v) = (part(b, 0), part(b, 1));
    let mul = |b: &mut dyn Build, p: Id, q: Id| expand::map(b, MapOp::mul, &[p, q]);
    let (uc, vs, vc, us) = (mul(b, u, cos), mul(b, v, sin), mul(b, v, cos), mul(b, u, sin));
    let first = expand::map(b, MapOp::sub, &[uc, vs]);
    let second = expand::map(b, MapOp::add, &[vc, us]);
    if !interleaved {
        return Ok(vec![expand::concat(b, &[first, second], last)]);
    }
    let one = [&halves[..], &[1]].concat();
    let parts = [first, second].map(|y| expand::reshape(b, y, &one));
    let joined = expand::concat(b, &parts, last + 1);
    Ok(vec![expand::reshape(b, joined, &shape)])
}

/// The angle of each position and pair, in f32 or f64.
fn angles(call: &mut Call, table: [u64; 2], dtype: DType) -> Result<Id, OpError> {
    let base = call.operand(2, &[table[1]], DType::F64)?;
    let positions = call.optional_id(1);
    let b = &mut *call.b;
    let positions = positions.unwrap_or_else(|| expand::iota(b, &table[..1], 0));
    // base ** (-i / half), in f64 so that the frequencies are exact to f32.
    let pairs = expand::iota(b, &table[1..], 0);
    let pairs = expand::cast(b, pairs, DType::F64);
    let frequencies = if dtype == DType::F64 {
        let exponent = expand::binary_const(b, MapOp::div, pairs, -(table[1].max(1) as f64));
        expand::map(b, MapOp::pow, &[base, exponent])
    } else {
        let exponent = expand::binary_const(b, MapOp::mul, pairs, -1.0 / table[1].max(1) as f64);
        let log = expand::unary(b, MapOp::log2, base);
        let power = expand::map(b, MapOp::mul, &[exponent, log]);
        let frequencies = expand::unary(b, MapOp::exp2, power);
        expand::cast(b, frequencies, DType::F32)
    };
    let positions = expand::cast(b, positions, dtype);
    let p = expand::broadcast_dims(b, positions, &table, vec![0]);
    let f = expand::broadcast_dims(b, frequencies, &table, vec![1]);
    Ok(expand::map(b, MapOp::mul, &[p, f]))
}

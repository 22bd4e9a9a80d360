//! `tril triu tri eye`: parts of matrices by the position of the diagonal.

use super::expand;
use super::reduce::no_complex;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;

const PART: &[Param] = &[req("x", ParamKind::Tensor), opt("k", ParamKind::Int, Default::Int(0))];

pub const TRIL: Row = Row::new("tril", PART, |_, a, _| infer_part("tril", a), |c| lower_part(c, MapOp::ge))
    .method()
    .doc("The lower triangle of the last two dims, zeros above diagonal `k`.\n\n```tessera\nop.tril(op.ones((T, T)))\n```");

pub const TRIU: Row = Row::new("triu", PART, |_, a, _| infer_part("triu", a), |c| lower_part(c, MapOp::le))
    .method()
    .doc("The upper triangle of the last two dims, zeros below diagonal `k`.\n\n```tessera\nop.triu(x, k=1)\n```");

fn infer_part(name: &str, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::at_least_rank(x, 2, 0, name)?;
    no_complex(name, x, 0)?;
    rule::int_const(args, 1, "`k`")?;
    rule::one(x.shape.clone(), x.dtype)
}

/// Whether `row + k` stands in relation `op` to `column`, over the last two dims.
pub fn relation(b: &mut dyn Build, shape: &[u64], op: MapOp, k: i64) -> Id {
    let rank = shape.len();
    // A diagonal outside of the matrix is like one just outside.
    let k = k.clamp(-(shape[rank - 2] as i64), shape[rank - 1] as i64);
    let (row, column) = (expand::iota(b, shape, rank - 2), expand::iota(b, shape, rank - 1));
    let offset = expand::full(b, shape, DType::I64, Scalar::I(k));
    let row = if k == 0 { row } else { expand::map(b, MapOp::add, &[row, offset]) };
    expand::map(b, op, &[row, column])
}

fn lower_part(call: &mut Call, op: MapOp) -> Lowered {
    let x = call.id(0)?;
    let k = rule::int_const(&call.sym, 1, "`k`")?;
    let (shape, dtype) = (call.b.shape(x), call.b.dtype(x));
    let keep = relation(call.b, &shape, op, k);
    let zeros = expand::full(call.b, &shape, dtype, Scalar::I(0));
    Ok(vec![expand::select(call.b, keep, x, zeros)])
}

const MADE: &[Param] = &[
    req("n", ParamKind::Int),
    opt("m", ParamKind::Int, Default::None),
    opt("k", ParamKind::Int, Default::Int(0)),
    opt("dtype", ParamKind::DType, Default::None),
];

pub const EYE: Row = Row::new("eye", MADE, infer_made, |c| lower_made(c, MapOp::eq))
    .known_as(&["identity"])
    .doc("A matrix of `n` rows and `m` columns (`n` by default) with ones on diagonal `k` and zeros elsewhere; f32 by default.\n\n```tessera\nop.eye(3)\n```");

pub const TRI: Row = Row::new("tri", MADE, infer_made, |c| lower_made(c, MapOp::ge))
    .doc("A matrix with ones on and below diagonal `k` and zeros above; f32 by default.\n\n```tessera\nop.tri(T, dtype=bool)    # a causal mask\n```");

fn infer_made(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let n = rule::int(args, 0)?;
    let m = if rule::absent(args, 1) { n } else { rule::int(args, 1)? };
    rule::int_const(args, 2, "`k`")?;
    for (i, s) in [(0, n), (1, m)] {
        if s.as_const().is_some_and(|v| v < 0) {
            return Err(rule::negative(s, i));
        }
    }
    rule::one(vec![n.clone(), m.clone()], Some(rule::dtype(args, 3)?.unwrap_or(DType::F32)))
}

fn lower_made(call: &mut Call, op: MapOp) -> Lowered {
    let shape = call.result().0;
    let k = rule::int_const(&call.sym, 2, "`k`")?;
    Ok(vec![relation(call.b, &shape, op, k)])
}

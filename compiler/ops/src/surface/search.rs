//! `searchsorted`: where values belong in a sorted vector.

use super::expand;
use super::reduce::no_complex;
use super::row::{Call, Lowered, Row, meet, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;

pub const SEARCHSORTED: Row = Row::new(
    "searchsorted",
    &[req("sorted", ParamKind::Tensor), req("x", ParamKind::Operand), opt("side", ParamKind::Str, Default::Str("left"))],
    infer,
    lower,
)
.known_as(&["bucketize", "digitize", "search_sorted"])
.doc(
    "The positions (i64) at which the elements of `x` would be put into the ascending vector `sorted` to keep it ascending.\n\n\
     As many elements are below (`side=\"left\"`) or not above (`side=\"right\"`) as the position says. NaN counts as largest. \
     A binary search; in a vector that is not ascending any position may come out.\n\n\
     ```tessera\nop.searchsorted(edges, x, side=\"right\") - 1\n```",
);

fn infer(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let sorted = rule::tensor(args, 0)?;
    no_complex("searchsorted", sorted, 0)?;
    if sorted.rank() != 1 {
        return Err(OpError::new(
            Code::E0207,
            format!("a sorted vector is needed, not a tensor of rank {}", sorted.rank()),
        )
        .arg(0, sorted.to_string())
        .help("for each row: `autodiff.vmap(op.searchsorted)(rows, x)`"));
    }
    let (operands, _) = meet(args, &[0, 1])?;
    if let rule::Operand::Tensor(x) = operands[1].1 {
        no_complex("searchsorted", x, 1)?;
    }
    rule::choice(args, 2, &["left", "right"])?;
    rule::one(operands[1].1.shape().to_vec(), Some(DType::I64))
}

fn lower(call: &mut Call) -> Lowered {
    let (_, dtype) = meet(&call.sym, &[0, 1])?;
    let dtype = match dtype.unwrap_or(DType::F32) {
        DType::Bool => DType::U8,
        d => d,
    };
    let (n, shape) = (call.b.shape(call.id(0)?), call.result().0);
    let (sorted, x) = (call.operand(0, &n, dtype)?, call.operand(1, &shape, dtype)?);
    let right = rule::text(&call.sym, 2)? == "right";
    Ok(vec![count_below(call.b, sorted, x, right)])
}

/// How many elements of an ascending vector are below each element of `x`, or not above it (`right`). The steps of a binary
/// search are as many as the size of the vector has bits.
pub fn count_below(b: &mut dyn Build, sorted: Id, x: Id, right: bool) -> Id {
    let (count, shape) = (b.shape(sorted)[0] as i64, b.shape(x));
    let int = |b: &mut dyn Build, n: i64| expand::full(b, &shape, DType::I64, Scalar::I(n));
    let mut found = int(b, 0);
    let float = b.dtype(x).is_float();
    for bit in (0..64 - count.leading_zeros()).rev() {
        let step = int(b, 1 << bit);
        let next = expand::map(b, MapOp::add, &[found, step]);
        let (last, one) = (int(b, count), int(b, 1));
        let inside = expand::map(b, MapOp::le, &[next, last]);
        let at = expand::map(b, MapOp::minimum, &[next, last]);
        let at = expand::map(b, MapOp::sub, &[at, one]);
        let element = super::embedding::take(b, sorted, at, 0);
        let mut below = expand::map(b, if right { MapOp::le } else { MapOp::lt }, &[element, x]);
        if float {
            // A NaN is above all that is none.
            let unordered = expand::unary(b, MapOp::isnan, x);
            let other = if right {
                unordered
            } else {
                let own = expand::unary(b, MapOp::isnan, element);
                let ordered = expand::unary(b, MapOp::logical_not, own);
                expand::map(b, MapOp::logical_and, &[unordered, ordered])
            };
            below = expand::map(b, MapOp::logical_or, &[below, other]);
        }
        let moves = expand::map(b, MapOp::logical_and, &[inside, below]);
        found = expand::select(b, moves, next, found);
    }
    found
}

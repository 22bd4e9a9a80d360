//! `segment_sum`, `segment_mean`, `segment_max`, `segment_min`: rows that belong together.

use super::embedding::take;
use super::expand;
use super::gather::take_along;
use super::reduce::no_complex;
use super::row::{Call, Lowered, Row, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;
use crate::prim::{Prim, Reduction};

const PARAMS: &[Param] = &[req("x", ParamKind::Tensor), req("ids", ParamKind::Tensor), req("count", ParamKind::Int)];

pub const SEGMENT_SUM: Row = Row::new("segment_sum", PARAMS, |cx, a, _| infer("segment_sum", cx, a), lower_sum)
    .known_as(&["scatter_sum", "unsorted_segment_sum"])
    .doc(
        "The sums of the rows of `x` that belong together: row `i` of `x` is part of row `ids[i]` of `count` ones.\n\n\
         Rows add up in ascending position, floats narrower than f32 in f32, ints and bools in i64; a row that none belongs \
         to is 0. A number that is negative, or not below `count`, is an error at run time.\n\n\
         ```tessera\nop.segment_sum(messages, targets, nodes)    # Tensor[E, D, f32], Tensor[E, i64] -> Tensor[nodes, D, f32]\n```",
    );

pub const SEGMENT_MEAN: Row = Row::new("segment_mean", PARAMS, |cx, a, _| infer("segment_mean", cx, a), lower_mean)
    .known_as(&["scatter_mean"])
    .doc(
        "The means of the rows of `x` that belong together, as `segment_sum`; 0 where there are none.\n\n\
         ```tessera\nop.segment_mean(messages, targets, nodes)\n```",
    );

pub const SEGMENT_MAX: Row =
    Row::new("segment_max", PARAMS, |cx, a, _| infer("segment_max", cx, a), |c| lower_extreme(c, false))
        .known_as(&["scatter_max"])
        .doc(
            "The largest elements of the rows of `x` that belong together, as `segment_sum`; NaN if one is.\n\n\
             Where there are none it is -inf, or the least int. Found by sorting. Of equal elements the last one has the \
             derivative.\n\n\
             ```tessera\nop.segment_max(scores, groups, 3)\n```",
        );

pub const SEGMENT_MIN: Row = Row::new(
    "segment_min",
    PARAMS,
    |cx, a, _| infer("segment_min", cx, a),
    |c| lower_extreme(c, true),
)
.known_as(&["scatter_min"])
.doc(
    "The smallest elements of the rows of `x` that belong together, as `segment_max`; inf, or the largest int, where \
             there are none.\n\n\
             ```tessera\nop.segment_min(scores, groups, 3)\n```",
);

fn infer(name: &str, cx: &mut InferCx, args: &[SymArg]) -> Inferred {
    let (x, ids, count) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?, rule::int(args, 2)?);
    no_complex(name, x, 0)?;
    rule::at_least_rank(x, 1, 0, name)?;
    rule::indices(ids, 1)?;
    if count.as_const().is_some_and(|n| n < 0) {
        return Err(rule::negative(count, 2));
    }
    if ids.rank() != 1 {
        let text = format!("`{name}` needs one number for each row, and these are of rank {}", ids.rank());
        return Err(OpError::new(Code::E0207, text).arg(1, ids.to_string()));
    }
    let text = || format!("there are {} rows and {} numbers", x.shape[0], ids.shape[0]);
    rule::require(cx, &x.shape[0], &ids.shape[0], Code::E0202, text, |e| {
        e.arg(0, x.to_string()).arg(1, ids.to_string())
    })?;
    let shape = [std::slice::from_ref(count), &x.shape[1..]].concat();
    let dtype = match name {
        "segment_sum" => x.dtype.map(|d| if d.is_float() { d } else { DType::I64 }),
        "segment_mean" => rule::as_float(name, x, 0)?,
        _ => x.dtype,
    };
    rule::one(shape, dtype)
}

/// The numbers of the rows: one that is negative is none from the end.
fn numbers(b: &mut dyn Build, ids: Id, count: u64) -> Id {
    let n = b.shape(ids);
    let ids = expand::positions(b, ids);
    let (zero, end) = (expand::like(b, ids, 0.0), expand::full(b, &n, DType::I64, Scalar::I(count as i64)));
    let below = expand::map(b, MapOp::lt, &[ids, zero]);
    expand::select(b, below, end, ids)
}

/// The sums of rows in a dtype.
fn sums(b: &mut dyn Build, x: Id, ids: Id, count: u64, dtype: DType) -> Id {
    let from = b.shape(x);
    let x = expand::cast(b, x, dtype);
    let ids = expand::broadcast_dims(b, ids, &from, vec![0]);
    let shape = [&[count], &from[1..]].concat();
    let start = expand::full(b, &shape, dtype, Scalar::I(0));
    b.push(Prim::ScatterAddAlong { axis: 0 }, &[start, ids, x], shape, dtype)
}

fn lower_sum(call: &mut Call) -> Lowered {
    let (x, ids, (shape, _)) = (call.id(0)?, call.id(1)?, call.result());
    let ids = numbers(call.b, ids, shape[0]);
    let dtype = call.b.dtype(x);
    let wide = if dtype.is_float() { dtype.compute() } else { DType::I64 };
    Ok(vec![sums(call.b, x, ids, shape[0], wide)])
}

fn lower_mean(call: &mut Call) -> Lowered {
    let (x, ids, (shape, _)) = (call.wide(0)?, call.id(1)?, call.result());
    let b = &mut *call.b;
    let ids = numbers(b, ids, shape[0]);
    let wide = b.dtype(x);
    let sum = sums(b, x, ids, shape[0], wide);
    let sizes = sizes(b, ids, shape[0]);
    let sizes = expand::cast(b, sizes, wide);
    let one = expand::like(b, sizes, 1.0);
    let sizes = expand::map(b, MapOp::maximum, &[sizes, one]);
    let sizes = expand::broadcast_dims(b, sizes, &shape, vec![0]);
    Ok(vec![expand::map(b, MapOp::div, &[sum, sizes])])
}

/// How many rows have each number.
fn sizes(b: &mut dyn Build, ids: Id, count: u64) -> Id {
    let n = b.shape(ids);
    let ones = expand::full(b, &n, DType::I64, Scalar::I(1));
    sums(b, ones, ids, count, DType::I64)
}

/// The last of the elements of a number, in the order of elements, then of numbers: the largest. The smallest is that of what
/// is turned round.
fn lower_extreme(call: &mut Call, smallest: bool) -> Lowered {
    let (x, ids, (shape, _)) = (call.id(0)?, call.id(1)?, call.result());
    let b = &mut *call.b;
    let (from, count, dtype) = (b.shape(x), shape[0], b.dtype(x));
    let ids = numbers(b, ids, count);
    let turned = |b: &mut dyn Build, x: Id| match (smallest, b.dtype(x).is_float()) {
        (false, _) => x,
        (true, true) => expand::unary(b, MapOp::neg, x),
        (true, false) => expand::unary(b, MapOp::bit_not, x),
    };
    let keys = super::sort::ordered(b, x);
    let keys = turned(b, keys);
    let sort = Prim::ArgSort { axis: 0, descending: false };
    let by_element = b.push(sort.clone(), &[keys], from.clone(), DType::I64);
    let wide = expand::broadcast_dims(b, ids, &from, vec![0]);
    let numbers = take_along(b, wide, by_element, 0);
    let by_number = b.push(sort, &[numbers], from.clone(), DType::I64);
    let order = take_along(b, by_element, by_number, 0);
    let sorted = take_along(b, x, order, 0);
    let sizes = sizes(b, ids, count);
    let ends = b.push(Prim::Cumulate { kind: Reduction::Sum, axis: 0 }, &[sizes], vec![count], DType::I64);
    let zero = expand::like(b, sizes, 0.0);
    let empty = expand::map(b, MapOp::eq, &[sizes, zero]);
    let empty = expand::broadcast_dims(b, empty, &shape, vec![0]);
    let nothing = nothing(b, &shape, dtype, smallest);
    if from[0] == 0 {
        return Ok(vec![nothing]);
    }
    let last = expand::binary_const(b, MapOp::sub, ends, 1.0);
    let last = expand::map(b, MapOp::maximum, &[last, zero]);
    let found = take(b, sorted, last, 0);
    Ok(vec![expand::select(b, empty, nothing, found)])
}

/// What the largest, or smallest, of no elements is.
fn nothing(b: &mut dyn Build, shape: &[u64], dtype: DType, smallest: bool) -> Id {
    let kind = if smallest { Reduction::Min } else { Reduction::Max };
    expand::full(b, shape, dtype, crate::reference::reduce::identity(kind, dtype))
}

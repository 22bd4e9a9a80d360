//! `unique`: the different elements.

use super::expand;
use super::nonzero::{first_places, told};
use super::reduce::no_complex;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::sort::ordered;
use super::*;
use crate::map::MapOp;
use crate::prim::{Prim, Reduction};

const ORDER: Param = Param { name: "order", kind: ParamKind::Tensor, default: Default::None, keyword_only: true };

pub const UNIQUE: Row = Row::new(
    "unique",
    &[
        req("x", ParamKind::Tensor),
        opt("size", ParamKind::Int, Default::None),
        opt("return_index", ParamKind::Bool, Default::Bool(false)),
        opt("return_inverse", ParamKind::Bool, Default::Bool(false)),
        opt("return_counts", ParamKind::Bool, Default::Bool(false)),
        ORDER,
    ],
    infer,
    lower,
)
.method()
.known_as(&["unique_consecutive"])
.doc(
    "The different elements of a tensor of any rank, in ascending order. All NaN count as one, the last.\n\n\
     With `return_index`, `return_inverse` and `return_counts` also where each is first (in the flattened tensor), which of \
     them each element is (in the shape of `x`), and how often each occurs; all i64, in this order. How many there are is \
     known to data only, so it is counted first, and the size of the result is a new one. `size=` says it instead, which compiled \
     functions need: the smallest so many, and the smallest one again (0 of no elements), 0 times, for those that are missing. \
     `order=` is `op.argsort` of the flattened tensor where that is known.\n\n\
     ```tessera\nvalues, counts = op.unique(labels, return_counts=True)\n```",
);

pub const COUNT_UNIQUE: Row = Row::new("count_unique", &[req("x", ParamKind::Tensor), ORDER], infer_count, lower_count)
    .method()
    .known_as(&["nunique", "n_unique"])
    .doc("How many different elements there are (i64); see `unique`.\n\n```tessera\nop.count_unique(labels)\n```");

fn ordering(cx: &mut InferCx, name: &str, args: &[SymArg], i: usize) -> Result<(), OpError> {
    let x = rule::tensor(args, 0)?;
    no_complex(name, x, 0)?;
    let Some(order) = rule::optional_tensor(args, i)? else { return Ok(()) };
    rule::indices(order, i)?;
    let flat = TensorType::new(vec![x.elems()], DType::I64);
    rule::same_shape(cx, (0, &flat), (i, order))
}

fn infer(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    ordering(cx, "unique", args, 5)?;
    let x = rule::tensor(args, 0)?;
    let size = told(cx, "unique", args, 1)?;
    let of_each = || rule::typed(vec![size.clone()], Some(DType::I64));
    let mut out = vec![rule::typed(vec![size.clone()], x.dtype)];
    if rule::flag(args, 2)? {
        out.push(of_each());
    }
    if rule::flag(args, 3)? {
        out.push(rule::typed(x.shape.clone(), Some(DType::I64)));
    }
    if rule::flag(args, 4)? {
        out.push(of_each());
    }
    Ok(match <[TensorType; 1]>::try_from(out) {
        Ok([one]) => OpTypes::One(one),
        Err(many) => OpTypes::Many(many),
    })
}

fn infer_count(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    ordering(cx, "count_unique", args, 1)?;
    rule::one(vec![], Some(DType::I64))
}

/// The flattened elements in order, their positions, and which of them are the first of their kind.
fn runs(b: &mut dyn Build, x: Id, order: Option<Id>) -> [Id; 3] {
    let n: u64 = b.shape(x).iter().product();
    let flat = expand::reshape(b, x, &[n]);
    let flat = ordered(b, flat);
    let sort = Prim::ArgSort { axis: 0, descending: false };
    let order = order.unwrap_or_else(|| b.push(sort, &[flat], vec![n], DType::I64));
    let sorted = super::embedding::take(b, flat, order, 0);
    let first = match n {
        0 => expand::full(b, &[0], DType::Bool, Scalar::I(1)),
        _ => {
            let [before, after] = [0, 1].map(|start| expand::slice(b, sorted, 0, start, n - 1));
            let mut differs = expand::map(b, MapOp::lt, &[before, after]);
            if b.dtype(sorted).is_float() {
                // The first NaN, which is last.
                let [was, is] = [before, after].map(|x| expand::unary(b, MapOp::isnan, x));
                let was_not = expand::unary(b, MapOp::logical_not, was);
                let begins = expand::map(b, MapOp::logical_and, &[is, was_not]);
                differs = expand::map(b, MapOp::logical_or, &[differs, begins]);
            }
            let one = expand::full(b, &[1], DType::Bool, Scalar::I(1));
            expand::concat(b, &[one, differs], 0)
        }
    };
    [sorted, order, first]
}

fn lower_count(call: &mut Call) -> Lowered {
    let (x, order) = (call.id(0)?, call.optional_id(1));
    let b = &mut *call.b;
    let [.., first] = runs(b, x, order);
    let ones = expand::cast(b, first, DType::I64);
    Ok(vec![expand::reduce(b, ones, Reduction::Sum, &[0], false)])
}

fn lower(call: &mut Call) -> Lowered {
    let (x, order) = (call.id(0)?, call.optional_id(5));
    let size = rule::int_const(&call.sym, 1, "`size`")? as u64;
    let [index, inverse, counts] = [2, 3, 4].map(|i| rule::flag(&call.sym, i));
    let (index, inverse, counts) = (index?, inverse?, counts?);
    let b = &mut *call.b;
    let (shape, dtype) = (b.shape(x), b.dtype(x));
    let [sorted, order, first] = runs(b, x, order);
    let n = b.shape(sorted);
    if n[0] == 0 {
        // There is no smallest one: zeros, 0 times.
        let zeros = |b: &mut dyn Build, shape: &[u64], dtype| expand::full(b, shape, dtype, Scalar::I(0));
        let mut out = vec![zeros(b, &[size], dtype)];
        for (asked, shape) in [(index, &[size][..]), (inverse, &shape), (counts, &[size])] {
            if asked {
                out.push(zeros(b, shape, DType::I64));
            }
        }
        return Ok(out);
    }
    let (places, _) = first_places(b, first, size);
    let values = super::embedding::take(b, sorted, places, 0);
    let mut out = vec![expand::cast(b, values, dtype)];
    if index {
        out.push(super::embedding::take(b, order, places, 0));
    }
    if !inverse && !counts {
        return Ok(out);
    }
    let ones = expand::cast(b, first, DType::I64);
    let rank = b.push(Prim::Cumulate { kind: Reduction::Sum, axis: 0 }, &[ones], n.clone(), DType::I64);
    let rank = expand::binary_const(b, MapOp::sub, rank, 1.0);
    if inverse {
        let start = expand::full(b, &n, DType::I64, Scalar::I(0));
        let found = b.push(Prim::ScatterAddAlong { axis: 0 }, &[start, order, rank], n.clone(), DType::I64);
        out.push(expand::reshape(b, found, &shape));
    }
    if counts {
        let last = expand::full(b, &n, DType::I64, Scalar::I(size as i64));
        let at = expand::map(b, MapOp::minimum, &[rank, last]);
        let one = expand::full(b, &n, DType::I64, Scalar::I(1));
        let start = expand::full(b, &[size + 1], DType::I64, Scalar::I(0));
        let found = b.push(Prim::ScatterAddAlong { axis: 0 }, &[start, at, one], vec![size + 1], DType::I64);
        out.push(expand::slice(b, found, 0, 0, size));
    }
    Ok(out)
}

//! Choices among elements, and orders of them, with and without weights.

use super::continuous::gumbel;
use super::{KEY_PARAM, int_op, key_arg, unit, wide_words};
use crate::map::MapOp;
use crate::prim::{Prim, Reduction};
use crate::surface::embedding::take;
use crate::surface::row::{Call, Lowered, Row, opt, req};
use crate::surface::rule::{self, Inferred};
use crate::surface::search::count_below;
use crate::surface::*;

const WEIGHTS: Param = opt("p", ParamKind::Tensor, Default::None);

/// Checks the weights at parameter `i` of what is at parameter 1.
fn weights(cx: &mut InferCx, args: &[SymArg], i: usize) -> Result<(), OpError> {
    let Some(p) = rule::optional_tensor(args, i)? else { return Ok(()) };
    let count = match args.get(1) {
        Some(SymArg::Tensor(t)) => t.shape.first().cloned().unwrap_or_default(),
        _ => rule::int(args, 1)?.clone(),
    };
    if p.dtype.is_some_and(|d| d.is_complex() || d == DType::Bool) || p.rank() != 1 {
        return Err(OpError::new(Code::E0204, "weights are numbers, one for each element").arg(i, p.to_string()));
    }
    let what = || format!("{} weights for {count} elements", p.shape[0]);
    rule::require(cx, &p.shape[0], &count, Code::E0202, what, |e| e.arg(i, p.to_string()))
}

/// Positions in random order: a stable sort of 63 random bits each; with weights, of `ln p` plus a Gumbel number, the
/// largest first.
fn order(b: &mut dyn Build, key: Id, count: u64, p: Option<Id>) -> Id {
    let (keys, descending) = match p {
        None => (wide_words(b, key, &[count]), false),
        Some(p) => {
            let u = unit(b, key, &[count], DType::F64);
            let noise = gumbel(b, u);
            let p = expand::cast(b, p, DType::F64);
            let log = expand::unary(b, MapOp::log, p);
            (expand::map(b, MapOp::add, &[log, noise]), true)
        }
    };
    b.push(Prim::ArgSort { axis: 0, descending }, &[keys], vec![count], DType::I64)
}

pub const PERMUTATION: Row = Row::new(
    "random.permutation",
    &[KEY_PARAM, req("x", ParamKind::IntOrTensor), WEIGHTS],
    infer_permutation,
    lower_permutation,
)
.known_as(&["random.randperm", "random.shuffle"])
.doc(
    "The ints below `x` in random order, or the tensor `x` with its rows in random order.\n\n\
     A stable sort of 63 random bits for each row. With weights `p`, which need no sum of 1, rows are drawn one after the \
     other with these chances among those that are left, by a sort of `log(p)` plus Gumbel numbers (Efraimidis and Spirakis, \
     2006).\n\n```tessera\nrandom.permutation(key, 50)\n```",
);

fn infer_permutation(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    key_arg(cx, args, 0)?;
    if let Some(SymArg::Tensor(t)) = args.get(1) {
        rule::at_least_rank(t, 1, 1, "random.permutation")?;
        weights(cx, args, 2)?;
        return rule::one(t.shape.clone(), t.dtype);
    }
    let n = rule::int(args, 1)?;
    if n.as_const().is_some_and(|v| v < 0) {
        return Err(rule::negative(n, 1));
    }
    weights(cx, args, 2)?;
    rule::one(vec![n.clone()], Some(DType::I64))
}

fn lower_permutation(call: &mut Call) -> Lowered {
    let (key, count) = (call.id(0)?, call.result().0[0]);
    let (x, p) = (call.optional_id(1), call.optional_id(2));
    let b = &mut *call.b;
    let order = order(b, key, count, p);
    Ok(vec![match x {
        Some(x) => take(b, x, order, 0),
        None => order,
    }])
}

pub const CHOICE: Row = Row::new(
    "random.choice",
    &[
        KEY_PARAM,
        req("a", ParamKind::IntOrTensor),
        opt("shape", ParamKind::Shape, Default::None),
        opt("replace", ParamKind::Bool, Default::Bool(true)),
        WEIGHTS,
    ],
    infer_choice,
    lower_choice,
)
.doc(
    "Draws among the ints below `a`, or the rows of the tensor `a`, as many as `shape` (one by default) holds.\n\n\
     With replacement, unless `replace` says otherwise. Weights `p`, one for each element, need no sum of 1: with \
     replacement a search in their running sum in f64, without it as `random.permutation` does. E0202: more are drawn \
     without replacement than there are.\n\n```tessera\nrandom.choice(key, data, (32,))\n```",
);

fn infer_choice(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    key_arg(cx, args, 0)?;
    let shape = if rule::absent(args, 2) { vec![] } else { rule::shape(args, 2)? };
    let empty = || OpError::new(Code::E0711, "there is nothing to choose from").arg(1, "no elements");
    let (count, rest, dtype) = match args.get(1) {
        Some(SymArg::Tensor(t)) => {
            rule::at_least_rank(t, 1, 1, "random.choice")?;
            (t.shape[0].clone(), t.shape[1..].to_vec(), t.dtype)
        }
        _ => (rule::int(args, 1)?.clone(), vec![], Some(DType::I64)),
    };
    if count.as_const().is_some_and(|n| n <= 0) {
        return Err(empty());
    }
    weights(cx, args, 4)?;
    if !rule::flag(args, 3)? {
        let drawn = rule::product(&shape);
        let what = || format!("{drawn} of {count} elements without replacement");
        rule::require_reach(cx, &count, &drawn, Code::E0202, what, |e| e.arg(1, format!("{count} elements")))?;
    }
    rule::one([&shape[..], &rest[..]].concat(), dtype)
}

fn lower_choice(call: &mut Call) -> Lowered {
    let key = call.id(0)?;
    let shape: Vec<u64> = if rule::absent(&call.sym, 2) {
        vec![]
    } else {
        rule::ints_const(&call.sym, 2, "a size")?.into_iter().map(|n| n as u64).collect()
    };
    let (x, p) = (call.optional_id(1), call.optional_id(4));
    let replace = rule::flag(&call.sym, 3)?;
    let b = &mut *call.b;
    let count = match x {
        Some(x) => b.shape(x)[0] as i64,
        None => rule::int_const(&call.sym, 1, "`a`")?,
    };
    let index = match p {
        _ if !replace => {
            let order = order(b, key, count as u64, p);
            let first = expand::slice(b, order, 0, 0, shape.iter().product());
            expand::reshape(b, first, &shape)
        }
        None => {
            let bits = wide_words(b, key, &shape);
            int_op(b, MapOp::r#mod, bits, count)
        }
        Some(p) => {
            let p = expand::cast(b, p, DType::F64);
            let sums = b.push(Prim::Cumulate { kind: Reduction::Sum, axis: 0 }, &[p], vec![count as u64], DType::F64);
            let total = expand::slice(b, sums, 0, count as u64 - 1, 1);
            let total = expand::reshape(b, total, &[]);
            let u = unit(b, key, &shape, DType::F64);
            // Always below the total, which the product does not reach by rounding.
            let at = expand::binary(b, MapOp::mul, u, total);
            let found = count_below(b, sums, at, true);
            let last = expand::full(b, &shape, DType::I64, Scalar::I(count - 1));
            expand::map(b, MapOp::minimum, &[found, last])
        }
    };
    Ok(vec![match x {
        Some(x) => take(b, x, index, 0),
        None => index,
    }])
}

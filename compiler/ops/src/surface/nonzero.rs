//! `nonzero`, `argwhere`: where elements are that are not 0.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;
use crate::prim::{Prim, Reduction};

const PARAMS: &[Param] = &[
    req("x", ParamKind::Tensor),
    opt("size", ParamKind::Int, Default::None),
    opt("fill_value", ParamKind::Int, Default::Int(0)),
];

pub const NONZERO: Row = Row::new("nonzero", PARAMS, infer_nonzero, lower_nonzero)
    .method()
    .known_as(&["flatnonzero", "compress", "boolean_mask", "masked_select"])
    .doc(
        "The positions (i64) of the elements that are not 0, in order: a tuple with a vector for each dim. `x[mask]` reads them.\n\n\
         How many there are is known to data only, so it is counted first, and the size of the vectors is a new one. \
         `size=` says it instead, which compiled functions need: the first so many positions, and `fill_value` for those that are \
         missing.\n\n\
         ```tessera\nrows, columns = op.nonzero(x > 0.0)\n```",
    );

pub const ARGWHERE: Row = Row::new("argwhere", PARAMS, infer_argwhere, lower_argwhere).doc(
    "The positions of the elements that are not 0, as `nonzero`, as the rows of one matrix: `[size, rank]`, i64.\n\n\
     ```tessera\nop.argwhere(x > 0.0)\n```",
);

/// The size of a result, which data decides where no argument does: calls count first, and give it then.
pub fn told<'a>(cx: &mut InferCx, name: &str, args: &'a [SymArg], i: usize) -> Result<&'a Size, OpError> {
    if rule::absent(args, i) {
        let text = format!("the size of what `{name}` gives is known to data only");
        return Err(OpError::new(Code::E0690, text).help(format!("say it: `op.{name}(…, size=n)`")));
    }
    let size = rule::int(args, i)?;
    if size.as_const().is_some_and(|n| n < 0) {
        return Err(rule::negative(size, i));
    }
    let text = || format!("a size is 0 or more, and here {size}");
    rule::require_natural(cx, size, text, |e| e.arg(i, size.to_string()))?;
    Ok(size)
}

fn infer_nonzero(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::at_least_rank(x, 1, 0, "nonzero")?;
    let size = told(cx, "nonzero", args, 1)?;
    rule::int(args, 2)?;
    Ok(OpTypes::Many(x.shape.iter().map(|_| rule::typed(vec![size.clone()], Some(DType::I64))).collect()))
}

fn infer_argwhere(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::at_least_rank(x, 1, 0, "argwhere")?;
    let size = told(cx, "argwhere", args, 1)?;
    rule::int(args, 2)?;
    rule::one(vec![size.clone(), Size::constant(x.rank() as i64)], Some(DType::I64))
}

/// The first positions, so many, at which a vector of bools holds, and 0 where there are fewer; the count of all.
pub fn first_places(b: &mut dyn Build, mask: Id, size: u64) -> (Id, Id) {
    let n = b.shape(mask);
    let ones = expand::cast(b, mask, DType::I64);
    let count = expand::reduce(b, ones, Reduction::Sum, &[0], false);
    let rank = b.push(Prim::Cumulate { kind: Reduction::Sum, axis: 0 }, &[ones], n.clone(), DType::I64);
    let rank = expand::binary_const(b, MapOp::sub, rank, 1.0);
    // What is not meant, or beyond the size, meets in one more place.
    let last = expand::full(b, &n, DType::I64, Scalar::I(size as i64));
    let at = expand::select(b, mask, rank, last);
    let at = expand::map(b, MapOp::minimum, &[at, last]);
    let place = expand::iota(b, &n, 0);
    let start = expand::full(b, &[size + 1], DType::I64, Scalar::I(0));
    let places = b.push(Prim::ScatterAddAlong { axis: 0 }, &[start, at, place], vec![size + 1], DType::I64);
    (expand::slice(b, places, 0, 0, size), count)
}

/// Whether a position of a result of `size` is one of `count` that there are.
pub fn is_there(b: &mut dyn Build, count: Id, size: u64) -> Id {
    let number = expand::iota(b, &[size], 0);
    let count = expand::broadcast_dims(b, count, &[size], vec![]);
    expand::map(b, MapOp::lt, &[number, count])
}

/// A vector of positions for each dim.
fn coordinates(call: &mut Call) -> Result<Vec<Id>, OpError> {
    let x = call.id(0)?;
    let size = rule::int_const(&call.sym, 1, "`size`")? as u64;
    let fill = rule::int_const(&call.sym, 2, "`fill_value`")?;
    let b = &mut *call.b;
    let shape = b.shape(x);
    let x = expand::reshape(b, x, &[shape.iter().product()]);
    let zero = expand::like(b, x, 0.0);
    let mask = expand::map(b, MapOp::ne, &[x, zero]);
    let (place, count) = first_places(b, mask, size);
    let there = (fill != 0).then(|| is_there(b, count, size));
    let mut out = vec![];
    for (d, n) in shape.iter().enumerate() {
        let stride: u64 = shape[d + 1..].iter().product();
        let int = |b: &mut dyn Build, n: u64| expand::full(b, &[size], DType::I64, Scalar::I(n.max(1) as i64));
        let (stride, n) = (int(b, stride), int(b, *n));
        let at = expand::map(b, MapOp::floor_div, &[place, stride]);
        let at = expand::map(b, MapOp::r#mod, &[at, n]);
        out.push(match there {
            Some(there) => {
                let fill = expand::full(b, &[size], DType::I64, Scalar::I(fill));
                expand::select(b, there, at, fill)
            }
            None => at,
        });
    }
    Ok(out)
}

fn lower_nonzero(call: &mut Call) -> Lowered {
    coordinates(call)
}

fn lower_argwhere(call: &mut Call) -> Lowered {
    let columns = coordinates(call)?;
    let b = &mut *call.b;
    let columns: Vec<Id> = columns.into_iter().map(|c| expand::unsqueeze(b, c, &[1])).collect();
    Ok(vec![expand::concat(b, &columns, 1)])
}

//! `quantile percentile median`: elements of a sorted axis, and what lies between two of them.

use super::expand;
use super::reduce::{no_complex, not_empty};
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;
use crate::prim::Prim;

const AXIS: Param = opt("axis", ParamKind::Axis, Default::None);
const KEEPDIMS: Param = opt("keepdims", ParamKind::Bool, Default::Bool(false));
const METHOD: Param = opt("method", ParamKind::Str, Default::Str("linear"));
const METHODS: &[&str] = &["linear", "lower", "higher", "nearest", "midpoint"];

pub const QUANTILE: Row = Row::new(
    "quantile",
    &[req("x", ParamKind::Tensor), req("q", ParamKind::Operand), AXIS, KEEPDIMS, METHOD],
    |_, args, _| infer("quantile", args),
    |call| lower(call, 1.0),
)
.method()
.known_as(&["nanquantile"])
.doc(
    "The value below which the share `q` of the elements along an axis lies; without an axis, of all elements.\n\n\
     `q` is a number in 0 to 1, or a tensor of some, whose dims come first in the result. Between two elements NumPy's \
     `method`: `\"linear\"`, `\"lower\"`, `\"higher\"`, `\"nearest\"` (to the even position) or `\"midpoint\"`. NaN where an \
     element is NaN, and for a `q` outside. Ints become f32.\n\n```tessera\nop.quantile(x, 0.9, axis=0)\n```",
);

pub const PERCENTILE: Row = Row::new(
    "percentile",
    &[req("x", ParamKind::Tensor), req("q", ParamKind::Operand), AXIS, KEEPDIMS, METHOD],
    |_, args, _| infer("percentile", args),
    |call| lower(call, 0.01),
)
.method()
.doc("As `quantile`, with `q` in percent, 0 to 100.\n\n```tessera\nop.percentile(x, op.array([5.0, 50.0, 95.0]))\n```");

pub const MEDIAN: Row = Row::new(
    "median",
    &[req("x", ParamKind::Tensor), AXIS, KEEPDIMS],
    |_, args, _| infer("median", &with_half(args)),
    |call| {
        call.args.insert(1, Arg::Scalar(Scalar::F(0.5)));
        call.sym = with_half(&call.sym);
        lower(call, 1.0)
    },
)
.method()
.known_as(&["nanmedian"])
.doc(
    "The element in the middle of those along an axis in ascending order, or the mean of the two in the middle; without an \
     axis, of all elements. NaN where an element is NaN. Ints become f32.\n\n```tessera\nop.median(x, axis=0)\n```",
);

/// The arguments of `median` as those of `quantile`.
fn with_half(args: &[SymArg]) -> Vec<SymArg> {
    let mut all = args.to_vec();
    all.insert(1, SymArg::Weak(Weak::Float));
    all.push(SymArg::Str("linear".into()));
    all
}

fn infer(name: &str, args: &[SymArg]) -> Inferred {
    let x = rule::tensor(args, 0)?;
    no_complex(name, x, 0)?;
    let q = rule::operand(args, 1)?;
    if let rule::Operand::Tensor(t) = q {
        no_complex(name, t, 1)?;
    }
    let axes = if rule::absent(args, 2) { (0..x.rank()).collect() } else { vec![rule::axis(args, 2, x)?] };
    not_empty(name, x, &axes)?;
    rule::choice(args, 4, METHODS)?;
    let rest = rule::reduced(&x.shape, &axes, rule::flag(args, 3)?);
    rule::one([q.shape(), &rest].concat(), rule::as_float(name, x, 0)?)
}

fn lower(call: &mut Call, unit: f64) -> Lowered {
    let (t, out) = (call.ty(0)?, call.result().0);
    let x = call.wide(0)?;
    let shares = match call.args.get(1) {
        Some(Arg::Tensor(q) | Arg::Dynamic(q)) => call.b.shape(*q),
        _ => vec![],
    };
    let q = call.operand(1, &shares, DType::F64)?;
    let method = rule::text(&call.sym, 4)?.to_owned();
    let whole = rule::absent(&call.sym, 2);
    let axis = if whole { 0 } else { rule::axis(&call.sym, 2, &t)? };
    let b = &mut *call.b;
    let elements = b.shape(x).iter().product();
    let x = if whole { expand::reshape(b, x, &[elements]) } else { x };
    let (shape, dtype) = (b.shape(x), b.dtype(x));
    let count = shape[axis];
    let sorted = b.push(Prim::Sort { axis, descending: false }, &[x], shape.clone(), dtype);
    // The position, whose whole part is that of an element.
    let q = if unit == 1.0 { q } else { expand::binary_const(b, MapOp::div, q, 1.0 / unit) };
    let at = expand::binary_const(b, MapOp::mul, q, (count - 1) as f64);
    let at = match method.as_str() {
        "lower" => expand::unary(b, MapOp::floor, at),
        "higher" => expand::unary(b, MapOp::ceil, at),
        "nearest" => expand::unary(b, MapOp::round, at),
        _ => at,
    };
    let low = expand::unary(b, MapOp::floor, at);
    let part = expand::map(b, MapOp::sub, &[at, low]);
    let part = match method.as_str() {
        "midpoint" => {
            let zero = expand::like(b, part, 0.0);
            let (between, half) = (expand::map(b, MapOp::gt, &[part, zero]), expand::like(b, part, 0.5));
            expand::select(b, between, half, zero)
        }
        _ => part,
    };
    let high = expand::unary(b, MapOp::ceil, at);
    let position = |b: &mut dyn Build, v: Id| {
        let v = expand::binary_const(b, MapOp::maximum, v, 0.0);
        let v = expand::binary_const(b, MapOp::minimum, v, (count - 1) as f64);
        let v = expand::cast(b, v, DType::I64);
        let taken = embedding::take(b, sorted, v, axis);
        // The dims of q come first.
        let rank = b.shape(taken).len();
        let own = axis..axis + shares.len();
        let perm: Vec<usize> = own.clone().chain((0..rank).filter(|d| !own.contains(d))).collect();
        expand::transpose(b, taken, &perm)
    };
    let (low, high) = (position(b, low), position(b, high));
    let all = b.shape(low);
    let spread = |b: &mut dyn Build, v: Id| {
        let v = expand::reshape(b, v, &[&shares[..], &vec![1; all.len() - shares.len()]].concat());
        expand::broadcast_to(b, v, &all)
    };
    let part = expand::cast(b, part, dtype);
    let part = spread(b, part);
    // Of two infinities that are equal there is no difference.
    let same = expand::map(b, MapOp::eq, &[low, high]);
    let zero = expand::like(b, low, 0.0);
    let step = expand::map(b, MapOp::sub, &[high, low]);
    let step = expand::select(b, same, zero, step);
    let y = expand::map(b, MapOp::fma, &[step, part, low]);
    // NaN is sorted to the end.
    let last = expand::slice(b, sorted, axis, count - 1, 1);
    let mut rest = shape;
    rest.remove(axis);
    let last = expand::reshape(b, last, &rest);
    let unordered = expand::unary(b, MapOp::isnan, last);
    let unordered = expand::broadcast_to(b, unordered, &all);
    let (zero, one) = (expand::like(b, q, 0.0), expand::like(b, q, 1.0));
    let (above, below) = (expand::map(b, MapOp::ge, &[q, zero]), expand::map(b, MapOp::le, &[q, one]));
    let inside = expand::map(b, MapOp::logical_and, &[above, below]);
    let outside = expand::unary(b, MapOp::logical_not, inside);
    let outside = spread(b, outside);
    let none = expand::map(b, MapOp::logical_or, &[unordered, outside]);
    let nan = expand::like(b, y, f64::NAN);
    let y = expand::select(b, none, nan, y);
    Ok(vec![expand::reshape(b, y, &out)])
}

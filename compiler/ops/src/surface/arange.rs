//! `arange` and `linspace`: evenly spaced numbers.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;

pub const ARANGE: Row = Row::new(
    "arange",
    &[
        req("start", ParamKind::Number),
        opt("stop", ParamKind::Number, Default::None),
        opt("step", ParamKind::Number, Default::None),
        opt("dtype", ParamKind::DType, Default::None),
    ],
    infer_arange,
    lower_arange,
)
.known_as(&["range", "iota"])
.doc(
    "The numbers `start`, `start + step`, … below `stop`; with one argument, from 0 up to it.\n\n\
     Ints give i64, and their sizes may be symbolic: `op.arange(N)` has size `N`. If one of the numbers is a float the \
     result is f32, computed in f64 and rounded once, and the numbers must be known when the program is compiled.\n\n\
     ```tessera\nop.arange(3)           # [0 1 2]\nop.arange(1.0, 4.0)    # [1. 2. 3.]\n```",
);

/// Start, stop and step.
enum Range {
    Int(Size, Size, i64),
    Float(f64, f64, f64),
}

fn range(args: &[SymArg]) -> Result<Range, OpError> {
    let one_sided = rule::absent(args, 1);
    let (start, stop) = if one_sided { (None, 0) } else { (Some(0), 1) };
    let given: Vec<usize> = start.into_iter().chain([stop]).chain((!rule::absent(args, 2)).then_some(2)).collect();
    let zero_step = || OpError::new(Code::E0711, "the step of `op.arange` is 0").arg(2, "0");
    if given.iter().all(|&i| matches!(args.get(i), Some(SymArg::Int(_)))) {
        let first = start.map_or(Ok(Size::constant(0)), |i| rule::int(args, i).cloned())?;
        let step = if rule::absent(args, 2) { 1 } else { rule::int_const(args, 2, "the step of `op.arange`")? };
        return if step == 0 { Err(zero_step()) } else { Ok(Range::Int(first, rule::int(args, stop)?.clone(), step)) };
    }
    let value = |i: usize| match args.get(i) {
        Some(SymArg::Int(n)) => Ok(rule::constant(n, i, "the bounds of `op.arange`")? as f64),
        Some(SymArg::Float(Some(v))) => Ok(*v),
        _ => {
            rule::float(args, i)?;
            Err(OpError::new(Code::E0213, "the bounds of `op.arange` must be known when the program is compiled")
                .arg(i, "only known at run time")
                .help("with a number of elements that is known: `op.linspace(start, stop, num)`"))
        }
    };
    let first = start.map_or(Ok(0.0), value)?;
    let step = if rule::absent(args, 2) { 1.0 } else { value(2)? };
    if step == 0.0 {
        return Err(zero_step());
    }
    Ok(Range::Float(first, value(stop)?, step))
}

fn infer_arange(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let dtype = rule::dtype(args, 3)?;
    let (size, natural) = match range(args)? {
        Range::Int(start, stop, step) => {
            // `arange(N)` has size N; only bounds that may cross need a clamp.
            (rule::steps(cx.facts, &start, &stop, step), DType::I64)
        }
        Range::Float(start, stop, step) => {
            let steps = ((stop - start) / step).ceil().max(0.0);
            if steps.is_nan() || steps > 9e15 {
                return Err(OpError::new(Code::E0711, format!("`op.arange` of {steps} elements")).arg(0, "here"));
            }
            (Size::constant(steps as i64), DType::F32)
        }
    };
    rule::one(vec![size], Some(dtype.unwrap_or(natural)))
}

fn lower_arange(call: &mut Call) -> Lowered {
    let (shape, dtype) = call.result();
    let range = range(&call.sym)?;
    let b = &mut *call.b;
    let count = expand::iota(b, &shape, 0);
    Ok(vec![match range {
        Range::Int(start, _, step) => {
            let start = rule::constant(&start, 0, "the start of `op.arange`")?;
            let mut x = count;
            for (op, value, neutral) in [(MapOp::mul, step, 1), (MapOp::add, start, 0)] {
                if value != neutral {
                    let y = expand::full(b, &shape, DType::I64, Scalar::I(value));
                    x = expand::map(b, op, &[x, y]);
                }
            }
            expand::cast(b, x, dtype)
        }
        Range::Float(start, _, step) if start == 0.0 && step == 1.0 => expand::cast(b, count, dtype),
        Range::Float(start, _, step) => {
            let x = expand::cast(b, count, DType::F64);
            let x = expand::binary_const(b, MapOp::mul, x, step);
            let x = expand::binary_const(b, MapOp::add, x, start);
            expand::cast(b, x, dtype)
        }
    }])
}

pub const LINSPACE: Row = Row::new(
    "linspace",
    &[
        req("start", ParamKind::Operand),
        req("stop", ParamKind::Operand),
        opt("num", ParamKind::Int, Default::Int(50)),
        opt("dtype", ParamKind::DType, Default::None),
    ],
    infer_linspace,
    lower_linspace,
)
.doc(
    "`num` numbers from `start` to `stop`, both included, evenly spaced.\n\n\
     f32 unless `dtype` says otherwise; computed in f64 and rounded once. The last element is exactly `stop`.\n\n\
     ```tessera\nop.linspace(0.0, 1.0, 5)    # [0.   0.25 0.5  0.75 1.  ]\n```",
);

fn infer_linspace(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    rule::float(args, 0)?;
    rule::float(args, 1)?;
    let num = rule::int(args, 2)?;
    if num.as_const().is_some_and(|n| n < 0) {
        return Err(rule::negative(num, 2));
    }
    rule::one(vec![num.clone()], Some(rule::dtype(args, 3)?.unwrap_or(DType::F32)))
}

fn lower_linspace(call: &mut Call) -> Lowered {
    let (shape, dtype) = call.result();
    let (start, stop) = (call.operand(0, &shape, DType::F64)?, call.operand(1, &shape, DType::F64)?);
    let b = &mut *call.b;
    let last = shape[0].saturating_sub(1);
    let span = expand::map(b, MapOp::sub, &[stop, start]);
    let step = expand::binary_const(b, MapOp::div, span, last.max(1) as f64);
    let count = expand::iota(b, &shape, 0);
    let end = expand::full(b, &shape, DType::I64, Scalar::I(last as i64));
    // A single number is the start, as in NumPy.
    let is_end = expand::map(b, MapOp::eq, &[count, end]);
    let count = expand::cast(b, count, DType::F64);
    let offset = expand::map(b, MapOp::mul, &[count, step]);
    let inner = expand::map(b, MapOp::add, &[start, offset]);
    let x = if last == 0 { inner } else { expand::select(b, is_end, stop, inner) };
    Ok(vec![expand::cast(b, x, dtype)])
}

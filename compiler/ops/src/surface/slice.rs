//! `slice` and `pad`: parts of a tensor, and a tensor as part of a larger one.

use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;
use crate::prim::Prim;

pub const SLICE: Row = Row::new(
    "slice",
    &[
        req("x", ParamKind::Tensor),
        req("start", ParamKind::Ints),
        req("stop", ParamKind::Ints),
        opt("step", ParamKind::Ints, Default::None),
    ],
    infer_slice,
    lower_slice,
)
.known_as(&["strided_slice"])
.doc(
    "The elements from `start` up to `stop` in every dim, the same as `x[start:stop:step, …]`.\n\n\
     One int per dim; negative positions count from the end and bounds are clamped as in Python. Steps are positive.\n\n\
     ```tessera\nop.slice(x, (0, 1), (2, -1))\n```",
);

/// Start, length and step of each dim; no start and length where the sign of a position is not known.
fn ranges(facts: &Facts, args: &[SymArg]) -> Result<Vec<(Option<(Size, Size)>, i64)>, OpError> {
    let x = rule::tensor(args, 0)?;
    let (starts, stops) = (rule::ints(args, 1)?, rule::ints(args, 2)?);
    let steps = if rule::absent(args, 3) { vec![1; x.rank()] } else { rule::ints_const(args, 3, "a step")? };
    for (i, count) in [(1, starts.len()), (2, stops.len()), (3, steps.len())] {
        if count != x.rank() {
            return Err(OpError::new(Code::E0207, format!("{count} positions for a tensor of rank {}", x.rank()))
                .arg(0, x.to_string())
                .arg(i, "one for each dim is needed"));
        }
    }
    let mut out = vec![];
    for (d, size) in x.shape.iter().enumerate() {
        let bad = || {
            OpError::new(Code::E0711, format!("the step of axis {d} is {}, and steps are positive here", steps[d]))
                .arg(3, rule::tuple(&steps))
                .help("to reverse an axis: `op.flip({x}, axis)`")
        };
        if steps[d] <= 0 {
            return Err(bad());
        }
        out.push((rule::extent(facts, size, Some(&starts[d]), Some(&stops[d]), steps[d]), steps[d]));
    }
    Ok(out)
}

fn infer_slice(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let lengths = ranges(cx.facts, args)?.into_iter();
    rule::one(lengths.map(|(range, _)| range.map_or_else(|| (cx.fresh)("n"), |(_, length)| length)).collect(), x.dtype)
}

fn lower_slice(call: &mut Call) -> Lowered {
    let x = call.id(0)?;
    let (shape, _) = call.result();
    let dtype = call.b.dtype(x);
    let (mut start, mut step) = (vec![], vec![]);
    for (range, by) in ranges(&Facts::default(), &call.sym)? {
        let from = range.map(|(from, _)| from).unwrap_or_default();
        start.push(rule::constant(&from, 1, "a start")?);
        step.push(by);
    }
    Ok(vec![call.b.push(Prim::Slice { start, step }, &[x], shape, dtype)])
}

pub const PAD: Row = Row::new(
    "pad",
    &[
        req("x", ParamKind::Tensor),
        req("pad_width", ParamKind::Pairs),
        opt("value", ParamKind::Operand, Default::Int(0)),
    ],
    infer_pad,
    lower_pad,
)
.method()
.doc(
    "The tensor with elements `value` before and after it along each dim.\n\n\
     `pad_width` is a pair (before, after) for each dim, one pair for all dims, or one int for all sides. Amounts may be \
     symbolic; one that is negative for some sizes of a signature is refused (E0212), one that only the run knows is compared.\n\n\
     ```tessera\nop.pad(x, ((0, 0), (1, 2)), value=-1.0)    # Tensor[B, D, f32] -> Tensor[B, D + 3, f32]\n```",
);

/// Elements before and after each dim.
fn widths(args: &[SymArg]) -> Result<Vec<(Size, Size)>, OpError> {
    let x = rule::tensor(args, 0)?;
    let given = rule::ints(args, 1)?;
    if let Some(s) = given.iter().find(|s| s.as_const().is_some_and(|n| n < 0)) {
        let whole = ":, ".repeat(x.rank().saturating_sub(1));
        return Err(rule::negative(s, 1).help(format!("to leave elements out, slice: `{{x}}[{whole}1:-1]`")));
    }
    let rank = x.rank();
    Ok(match &given[..] {
        [all] => vec![(all.clone(), all.clone()); rank],
        [low, high] => vec![(low.clone(), high.clone()); rank],
        pairs if pairs.len() == 2 * rank => pairs.chunks(2).map(|p| (p[0].clone(), p[1].clone())).collect(),
        _ => {
            return Err(OpError::new(
                Code::E0207,
                format!(
                    "{} numbers to pad a tensor of rank {rank}: a pair for each dim makes {}",
                    given.len(),
                    2 * rank
                ),
            )
            .arg(0, x.to_string())
            .arg(1, rule::tuple(&given)));
        }
    })
}

fn infer_pad(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    rule::number(args, 2)?;
    for (low, high) in widths(args)? {
        for amount in [low, high] {
            let text = || format!("padding adds 0 elements or more, and here {amount}");
            let blame = |e: OpError| e.arg(0, x.to_string()).arg(1, amount.to_string());
            rule::require_natural(cx, &amount, text, blame)?;
        }
    }
    let shape = x.shape.iter().zip(widths(args)?).map(|(s, (low, high))| s.add(&low).add(&high)).collect();
    rule::one(shape, x.dtype)
}

fn lower_pad(call: &mut Call) -> Lowered {
    let x = call.id(0)?;
    let (shape, _) = call.result();
    let dtype = call.b.dtype(x);
    let (mut low, mut high) = (vec![], vec![]);
    for (before, after) in widths(&call.sym)? {
        low.push(rule::constant(&before, 1, "a pad")? as u64);
        high.push(rule::constant(&after, 1, "a pad")? as u64);
    }
    let value = call.operand(2, &[], dtype)?;
    Ok(vec![call.b.push(Prim::Pad { low, high }, &[x, value], shape, dtype)])
}

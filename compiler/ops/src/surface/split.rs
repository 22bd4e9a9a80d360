//! `split`: one tensor as several along an axis.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;

pub const SPLIT: Row = Row::new(
    "split",
    &[req("x", ParamKind::Tensor), req("sections", ParamKind::Ints), opt("axis", ParamKind::Axis, Default::Int(0))],
    infer,
    lower,
)
.method()
.known_as(&["chunk", "tensor_split", "hsplit", "vsplit"])
.doc(
    "The parts of a tensor along an axis, as a tuple.\n\n\
     An int asks for that many parts of equal size, which must divide the axis; a tuple or list gives the positions \
     where parts begin, as in NumPy.\n\n\
     ```tessera\na, b, c = op.split(x, 3, axis=1)\nhead, tail = op.split(x, [2])\n```",
);

/// Start and size of each part.
fn parts(cx: &mut InferCx, args: &[SymArg]) -> Result<(usize, Vec<(Size, Size)>), OpError> {
    let x = rule::tensor(args, 0)?;
    let axis = rule::axis(args, 2, x)?;
    let size = &x.shape[axis];
    if let Some(SymArg::Int(count)) = args.get(1) {
        let count = rule::constant(count, 1, "the number of parts")?;
        if !(1..=65_536).contains(&count) {
            return Err(OpError::new(Code::E0711, format!("a tensor cannot be split in {count} parts"))
                .arg(1, format!("{count}")));
        }
        let n = Size::constant(count);
        let each = size.normal(cx.facts).exact_div(&n).or_else(|| size.floor_div(&n)).unwrap_or_default();
        let text = || format!("axis {axis} of size {size} does not split in {count} equal parts");
        rule::require(cx, size, &each.mul(&n), Code::E0202, text, |e| {
            let error = e.arg(0, x.to_string()).arg(1, format!("{count} parts"));
            match error.help.is_empty() {
                true => error.help("give the positions where parts begin: `op.split({x}, [2, 5])`"),
                false => error,
            }
        })?;
        return Ok((axis, (0..count).map(|i| (each.scale(i), each.clone())).collect()));
    }
    let cuts = rule::ints(args, 1)?;
    let mut out = vec![];
    let mut start = Size::constant(0);
    for stop in cuts.iter().map(Some).chain([None]) {
        // A cut whose sign is not known counts from either end.
        let (from, length) = match rule::extent(cx.facts, size, Some(&start), stop, 1) {
            Some(part) => part,
            None => (start.clone(), (cx.fresh)("n")),
        };
        out.push((from, length));
        start = stop.cloned().unwrap_or_default();
    }
    Ok((axis, out))
}

fn infer(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (axis, parts) = parts(cx, args)?;
    let x = rule::tensor(args, 0)?;
    let part = |(_, size): (Size, Size)| {
        let mut shape = x.shape.clone();
        shape[axis] = size;
        rule::typed(shape, x.dtype)
    };
    Ok(OpTypes::Many(parts.into_iter().map(part).collect()))
}

fn lower(call: &mut Call) -> Lowered {
    let x = call.id(0)?;
    let (axis, parts) = call.again(parts)?;
    let mut out = vec![];
    for (start, size) in parts {
        let (start, size) = (rule::constant(&start, 1, "a cut")?, rule::constant(&size, 1, "a size")?);
        out.push(expand::slice(call.b, x, axis, start as u64, size as u64));
    }
    Ok(out)
}

//! `x[i, a:b, ..., None, t]`: the shape that an index gives.

use super::args::any_tensor;
use super::slice::{Bound, slice_size};
use super::ways::with_ways;
use super::{broken, error_expr};
use crate::sizes::SizeCx;
use std::ops::Range;
use tessera_base::{Code, DType, Diagnostic, Monoid, Sharding, Size, Span, TensorType, Verdict};
use tessera_core::ir::{IndexPart, TExpr, TKind};
use tessera_core::ty::Ty;

/// A part of an index as the program has it.
#[allow(clippy::large_enum_variant, reason = "few exist, and not for long")]
#[derive(Clone, Debug)]
pub enum GivenIndex {
    /// An int, a tensor of ints, or None.
    Value(TExpr),
    Slice {
        low: Option<TExpr>,
        high: Option<TExpr>,
        step: Option<TExpr>,
        span: Span,
    },
    Ellipsis(Span),
    NewAxis(Span),
    /// The positions that follow, one for each dim of a mask, are those at which it holds. It can be read again.
    OfMask(TExpr, TensorType),
}

impl GivenIndex {
    fn span(&self) -> Span {
        match self {
            GivenIndex::Value(e) => e.span,
            GivenIndex::Slice { span, .. } | GivenIndex::Ellipsis(span) | GivenIndex::NewAxis(span) => *span,
            GivenIndex::OfMask(mask, _) => mask.span,
        }
    }

    /// Whether it stands for one dim of the tensor.
    pub fn takes_dim(&self) -> bool {
        match self {
            GivenIndex::Value(e) => e.ty != Ty::None,
            GivenIndex::Slice { .. } => true,
            GivenIndex::Ellipsis(_) | GivenIndex::NewAxis(_) | GivenIndex::OfMask(..) => false,
        }
    }

    fn broken(&self) -> bool {
        match self {
            GivenIndex::Value(e) => broken(e),
            GivenIndex::Slice { low, high, step, .. } => [low, high, step].into_iter().flatten().any(broken),
            _ => false,
        }
    }
}

/// An index with the whole dims written out, and the shape that it gives.
pub struct Indexed {
    pub parts: Vec<IndexPart>,
    pub shape: Vec<Size>,
    /// How what it takes lies over a mesh.
    pub sharding: Sharding,
    /// The axes along which one device has what positions pick.
    pub picked: Vec<String>,
}

/// The typed expression `base[given]`. E0211 for an index that does not fit the tensor, E0202
/// for a mask of other sizes, E0690 for a single bool.
pub fn index(cx: &mut SizeCx, base: TExpr, given: Vec<GivenIndex>, span: Span) -> Result<TExpr, Diagnostic> {
    if broken(&base) || given.iter().any(GivenIndex::broken) {
        return Ok(error_expr(span));
    }
    let Ty::Tensor(t) = base.ty.clone() else { return Err(any_tensor(&base)) };
    let before = cx.checks.len();
    let Indexed { parts, shape, mut sharding, picked } = resolve(cx, &t, base.span, given, Use::Read, span)?;
    let checks = cx.checks_since(before);
    // As of rows of a table: the others stand for zeros.
    sharding.partial.extend(picked.into_iter().map(|axis| (Monoid::Sum, axis)));
    let sharding = sharding.normal(shape.len());
    let ty = Ty::Tensor(TensorType { shape, dtype: t.dtype, sharding });
    Ok(TExpr { kind: TKind::TensorIndex { base: Box::new(base), index: parts, checks }, ty, span })
}

/// What an index is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    Read,
    Write,
}

/// What an index of a tensor of type `t` means.
pub fn resolve(
    cx: &mut SizeCx,
    t: &TensorType,
    base_span: Span,
    given: Vec<GivenIndex>,
    use_: Use,
    span: Span,
) -> Result<Indexed, Diagnostic> {
    let count = given.iter().filter(|g| g.takes_dim()).count();
    if count > t.rank() {
        return Err(too_many(t, count, base_span, &given, span));
    }
    if let [_, second, ..] = given.iter().filter(|g| matches!(g, GivenIndex::Ellipsis(_))).collect::<Vec<_>>()[..] {
        return Err(Diagnostic::new(Code::E0211, second.span(), "`...` stands once in an index")
            .with_label(base_span, t.to_string()));
    }
    let in_part = in_part(&given, t.rank() - count);
    let apart = differing(&given, t, base_span, use_)?;
    cx.assume_dims(t);
    let (mut parts, mut picked) = (vec![], vec![]);
    let mut out = Shape::default();
    let mut dim = 0;
    let dots = given.iter().any(|g| matches!(g, GivenIndex::Ellipsis(_)));
    for g in given {
        match g {
            GivenIndex::Ellipsis(_) => dim = out.whole(&mut parts, t, dim, t.rank() - count),
            GivenIndex::NewAxis(_) => out.new_axis(&mut parts),
            GivenIndex::OfMask(mask, ty) => covers(cx, t, dim, &ty, (base_span, mask.span))?,
            GivenIndex::Value(e) if e.ty == Ty::None => out.new_axis(&mut parts),
            GivenIndex::Slice { low, high, step, span } => {
                let size = sliced(cx, &t.shape[dim], [&low, &high, &step], span)?;
                let all = low.is_none() && high.is_none() && step.is_none();
                parts.push(IndexPart::Slice { low, high, step });
                out.push(size, t.sharding.axes(dim).to_vec(), all.then_some(dim));
                dim += 1;
            }
            GivenIndex::Value(e) => {
                can_pick(t, dim, &e, use_, &in_part, base_span)?;
                picked.extend(t.sharding.axes(dim).iter().cloned());
                value(t, dim, e, base_span, &mut parts, &mut out)?;
                dim += 1;
            }
        }
    }
    if !dots {
        out.whole(&mut parts, t, dim, t.rank() - count);
    }
    let Finished { dims: shape, axes: dims, from, positions } = out.finish(cx, span)?;
    let sharding = Sharding { dims, ..t.sharding.own_of_dims(&from) }.normal(shape.len());
    let sharding = apart.iter().fold(sharding, |s, (own, rank)| {
        // The last dims of what picks are the last ones of those that stand for it.
        let dims: Vec<Option<usize>> =
            (0..shape.len()).map(|d| (d + rank).checked_sub(positions.end).filter(|at| at < rank)).collect();
        s.join(&own.own_of_dims(&dims)).unwrap_or(s)
    });
    Ok(Indexed { parts, shape, sharding, picked })
}

/// How positions lie that differ between devices, in per-device code, and their rank: what they pick differs, too. E0409 where one is written
/// to in a tensor that is the same on all.
fn differing(
    given: &[GivenIndex],
    t: &TensorType,
    base_span: Span,
    use_: Use,
) -> Result<Vec<(Sharding, usize)>, Diagnostic> {
    let mut out = vec![];
    for g in given {
        let GivenIndex::Value(TExpr { ty: Ty::Tensor(at), span, .. }) = g else { continue };
        let same = |axis: &&String| t.sharding.each().all(|own| own != *axis);
        if let Some(axis) = at.sharding.each().find(same).filter(|_| use_ == Use::Write) {
            let text = format!("this position differs between the devices of `{axis}`");
            return Err(Diagnostic::new(Code::E0409, *span, text)
                .with_label(base_span, format!("{t} is the same on all of them"))
                .help("write into a new tensor that differs: `y = op.where(op.arange(n) == position, value, x)`"));
        }
        if at.sharding.each().next().is_some() {
            out.push((at.sharding.clone(), at.rank()));
        }
    }
    Ok(out)
}

/// The dims of which an index takes a part; `rest` dims stand where it has `...`.
fn in_part(given: &[GivenIndex], rest: usize) -> Vec<usize> {
    let (mut dim, mut out) = (0, vec![]);
    for g in given {
        match g {
            GivenIndex::Ellipsis(_) => dim += rest,
            GivenIndex::Slice { low: None, high: None, step: None, .. } => dim += 1,
            g if g.takes_dim() => {
                out.push(dim);
                dim += 1;
            }
            _ => {}
        }
    }
    out
}

/// E0406 where positions that are not known before the run, or another kind of partial value, stand in the
/// way of picking from a dim that is split.
fn can_pick(
    t: &TensorType,
    dim: usize,
    e: &TExpr,
    use_: Use,
    in_part: &[usize],
    base_span: Span,
) -> Result<(), Diagnostic> {
    let Some(axis) = t.sharding.axes(dim).first() else { return Ok(()) };
    let known = match &e.ty {
        Ty::Int(n) => n.as_ref().is_some_and(|n| n.as_const().is_some()),
        Ty::Tensor(_) => use_ == Use::Read,
        _ => true,
    };
    let sums = use_ == Use::Write || t.sharding.partial.iter().all(|p| p.0 == Monoid::Sum || p.0.position().is_some());
    if known && sums {
        return Ok(());
    }
    let text = format!("this picks from dim {dim}, which is split over `{axis}`");
    let d = Diagnostic::new(Code::E0406, e.span, text).with_label(base_span, t.to_string());
    let d = if known { d } else { d.note("which device has the position is known only when the program runs") };
    Err(with_ways(d, t, dim, base_span, &|to| !in_part.contains(&to)))
}

fn value(
    t: &TensorType,
    dim: usize,
    e: TExpr,
    base_span: Span,
    parts: &mut Vec<IndexPart>,
    out: &mut Shape,
) -> Result<(), Diagnostic> {
    match &e.ty {
        Ty::Int(n) => {
            in_range(t, dim, n.as_ref(), e.span, base_span)?;
            out.positions(vec![], e.span, false);
            parts.push(IndexPart::Int(e));
            Ok(())
        }
        Ty::Tensor(p) if p.dtype == Some(DType::Bool) => Err(mask(t, p, e.span, base_span)),
        Ty::Tensor(p) if p.dtype.is_none_or(DType::is_int) => {
            out.positions(p.shape.clone(), e.span, true);
            parts.push(IndexPart::Tensor(e));
            Ok(())
        }
        Ty::AnyTensor => Err(any_tensor(&e)),
        other => {
            let d = Diagnostic::new(
                Code::E0211,
                e.span,
                format!("an index is an int, a slice, `...`, None or a tensor of ints, and this is `{other}`"),
            )
            .with_label(base_span, t.to_string());
            Err(match other {
                Ty::Float => d.help("`/` gives a float; `//` gives an int, and `int(x)` converts"),
                Ty::List(_) => d.help("make a tensor of the positions: `op.array([…])`"),
                Ty::Bool => d.help("choose by a condition with `op.where(condition, x, y)`"),
                Ty::Tensor(_) => d.help("convert the positions: `.to(i64)`"),
                _ => d,
            })
        }
    }
}

/// The shape of the result as it grows.
///
/// As in NumPy, ints and tensors of positions are one group when there is a tensor among
/// them: they broadcast, and the dims that come out stand where the group stands, or first
/// when something else stands between its members.
#[derive(Default)]
struct Shape {
    dims: Vec<Size>,
    /// The mesh axes that split them.
    axes: Vec<Vec<String>>,
    /// The dims of the tensor that they are all of.
    from: Vec<Option<usize>>,
    /// Shapes of the positions.
    group: Vec<(Vec<Size>, Span)>,
    tensors: bool,
    /// Where the group's dims go.
    at: usize,
    open: bool,
    separated: bool,
}

/// The sizes of the result's dims, the axes that split them, the dims of the tensor that they are all of, and those that
/// stand for positions.
struct Finished {
    dims: Vec<Size>,
    axes: Vec<Vec<String>>,
    from: Vec<Option<usize>>,
    positions: Range<usize>,
}

impl Shape {
    fn push(&mut self, size: Size, axes: Vec<String>, from: Option<usize>) {
        self.dims.push(size);
        self.axes.push(axes);
        self.from.push(from);
        self.open = false;
    }

    fn new_axis(&mut self, parts: &mut Vec<IndexPart>) {
        parts.push(IndexPart::NewAxis);
        self.push(Size::constant(1), vec![], None);
    }

    /// `n` whole dims from `dim` on; gives the dim after them.
    fn whole(&mut self, parts: &mut Vec<IndexPart>, t: &TensorType, dim: usize, n: usize) -> usize {
        if n == 0 {
            return dim;
        }
        parts.push(IndexPart::Whole(n));
        self.open = false;
        self.dims.extend(t.shape[dim..dim + n].iter().cloned());
        self.axes.extend((dim..dim + n).map(|d| t.sharding.axes(d).to_vec()));
        self.from.extend((dim..dim + n).map(Some));
        dim + n
    }

    fn positions(&mut self, shape: Vec<Size>, span: Span, tensor: bool) {
        if self.group.is_empty() {
            self.at = self.dims.len();
        } else if !self.open {
            self.separated = true;
        }
        self.open = true;
        self.tensors |= tensor;
        self.group.push((shape, span));
    }

    fn finish(self, cx: &mut SizeCx, span: Span) -> Result<Finished, Diagnostic> {
        let Shape { mut dims, mut axes, mut from, group, tensors, at, separated, .. } = self;
        let mut positions = 0..0;
        if tensors {
            let middle = broadcast(cx, &group, span)?;
            let at = if separated { 0 } else { at };
            axes.splice(at..at, vec![vec![]; middle.len()]);
            from.splice(at..at, vec![None; middle.len()]);
            positions = at..at + middle.len();
            dims.splice(at..at, middle);
        }
        Ok(Finished { dims, axes, from, positions })
    }
}

/// The shape that index tensors broadcast to.
fn broadcast(cx: &mut SizeCx, group: &[(Vec<Size>, Span)], span: Span) -> Result<Vec<Size>, Diagnostic> {
    let mut out: Vec<Size> = vec![];
    let is_one = |s: &Size| s.as_const() == Some(1);
    for (shape, at) in group {
        if shape.len() > out.len() {
            let missing = shape.len() - out.len();
            out.splice(0..0, vec![Size::constant(1); missing]);
        }
        let skip = out.len() - shape.len();
        for (i, size) in shape.iter().enumerate() {
            let have = out[skip + i].clone();
            if is_one(&have) {
                out[skip + i] = size.clone();
            } else if !is_one(size)
                && let Err(verdict) = cx.require_equal(&have, size, span)
            {
                let d =
                    Diagnostic::new(Code::E0203, *at, format!("the index tensors do not broadcast: {have} and {size}"))
                        .note("several index tensors are taken element by element, after broadcasting");
                return Err(match verdict {
                    Verdict::Differ(w) | Verdict::Depends(w) if !w.values.is_empty() => d.witness(w.to_string()),
                    _ => d,
                });
            }
        }
    }
    Ok(out)
}

fn sliced(cx: &mut SizeCx, d: &Size, parts: [&Option<TExpr>; 3], span: Span) -> Result<Size, Diagnostic> {
    let mut bounds = [Bound::Omitted; 3];
    for (bound, part) in bounds.iter_mut().zip(parts) {
        let Some(e) = part else { continue };
        *bound = match &e.ty {
            Ty::Int(Some(n)) => Bound::At(n),
            Ty::Int(None) => Bound::Unknown,
            Ty::None => Bound::Omitted,
            other => {
                let d = Diagnostic::new(
                    Code::E0211,
                    e.span,
                    format!("a bound of a slice is an int, and this is `{other}`"),
                );
                return Err(match other {
                    Ty::Tensor(_) => d.help("`int(x)` reads a tensor of one element"),
                    Ty::Float => d.help("`/` gives a float; `//` gives an int"),
                    _ => d,
                });
            }
        };
    }
    let [low, high, step] = bounds;
    if let Bound::At(s) = step
        && s.is_zero()
    {
        return Err(Diagnostic::new(Code::E0211, span, "the step of a slice cannot be 0"));
    }
    Ok(slice_size(&cx.facts, d, low, high, step).unwrap_or_else(|| cx.fresh("n")))
}

/// A constant index into a dim of constant size must lie inside it.
fn in_range(t: &TensorType, dim: usize, n: Option<&Size>, span: Span, base_span: Span) -> Result<(), Diagnostic> {
    let (Some(n), Some(size)) = (n.and_then(Size::as_const), t.shape[dim].as_const()) else { return Ok(()) };
    if (-size..size).contains(&n) {
        return Ok(());
    }
    let d = Diagnostic::new(Code::E0211, span, format!("index {n} is out of range for dim {dim} of size {size}"))
        .with_label(base_span, t.to_string());
    Err(match size {
        0 => d.note("the dim is empty"),
        _ => d.note(format!("indices of this dim are {} to {}", -size, size - 1)),
    })
}

fn too_many(t: &TensorType, count: usize, base_span: Span, given: &[GivenIndex], span: Span) -> Diagnostic {
    let extra = given.iter().filter(|g| g.takes_dim()).nth(t.rank()).map_or(span, GivenIndex::span);
    let ies = if count == 1 { "index" } else { "indices" };
    let d = Diagnostic::new(Code::E0211, span, format!("{count} {ies} for a tensor of rank {}", t.rank()))
        .with_label(base_span, t.to_string())
        .with_label(extra, "one too many");
    match t.rank() {
        0 => d.help("a tensor of rank 0 is read with `float(x)` or `int(x)`"),
        1 => d.note("this tensor takes one index"),
        n => d.note(format!("this tensor takes at most {n} indices")),
    }
}

/// A mask has the sizes of the dims that it stands for; where a run tells them, what is before has compared them.
fn covers(
    cx: &mut SizeCx,
    t: &TensorType,
    dim: usize,
    mask: &TensorType,
    (base_span, span): (Span, Span),
) -> Result<(), Diagnostic> {
    for (i, (have, wanted)) in mask.shape.iter().zip(&t.shape[dim..]).enumerate() {
        let Err(verdict) = cx.require_equal(have, wanted, span) else { continue };
        let text =
            format!("a mask has the sizes of the dims that it selects from: {have} and {wanted} (dim {})", dim + i);
        let d = Diagnostic::new(Code::E0202, span, text)
            .here(format!("this is {mask}"))
            .with_label(base_span, t.to_string());
        return Err(match verdict {
            Verdict::Differ(w) | Verdict::Depends(w) if w.is_known() && !w.values.is_empty() => {
                d.witness(w.to_string())
            }
            _ => d,
        });
    }
    Ok(())
}

fn mask(t: &TensorType, p: &TensorType, span: Span, base_span: Span) -> Diagnostic {
    Diagnostic::new(Code::E0690, span, "indexing with a single bool is not supported")
        .here(format!("this is {p}"))
        .with_label(base_span, t.to_string())
        .help("`op.where(condition, x, y)` chooses one of two tensors")
}

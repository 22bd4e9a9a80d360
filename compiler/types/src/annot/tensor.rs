//! `Tensor[…]`: dims, element type, sharding.

use super::{AnnotNames, NameMeaning, resolve_size};
use tessera_base::near::nearest;
use tessera_base::{Code, DType, Diagnostic, Monoid, Sharding, Size, Span, TensorType};
use tessera_core::ty::{TensorPattern, Ty};
use tessera_grammar::ast::{Arg, BinOp, Expr, ExprKind};

/// What is read so far.
#[derive(Default)]
struct Parts {
    leading: bool,
    shape: Vec<Size>,
    axes: Vec<Vec<String>>,
    dtype: Option<DType>,
    /// The element type is named but left open.
    any: bool,
    partial: Vec<(Monoid, String)>,
    /// Every mesh axis with its place.
    used: Vec<(String, Span)>,
}

/// The type `Tensor[index]`.
pub(super) fn tensor(index: &[Arg], names: &mut dyn AnnotNames) -> Result<Ty, Diagnostic> {
    let mut parts = Parts::default();
    for (i, arg) in index.iter().enumerate() {
        part(&mut parts, i, &arg.value, names)?;
    }
    let split = parts.axes.iter().any(|a| !a.is_empty());
    let sharding = Sharding { dims: if split { parts.axes } else { vec![] }, partial: parts.partial, mesh: None };
    if parts.leading {
        return Ok(Ty::TensorPattern(TensorPattern { tail: parts.shape, dtype: parts.dtype, sharding }));
    }
    Ok(Ty::Tensor(TensorType { shape: parts.shape, dtype: parts.dtype, sharding }))
}

fn part(parts: &mut Parts, i: usize, expr: &Expr, names: &mut dyn AnnotNames) -> Result<(), Diagnostic> {
    if expr.kind == ExprKind::Ellipsis {
        if i > 0 {
            return Err(Diagnostic::new(Code::E0215, expr.span, "`...` stands only for the leading dims")
                .help("write it first: `Tensor[..., D, f32]`"));
        }
        parts.leading = true;
        return Ok(());
    }
    let (body, axes) = match &expr.kind {
        ExprKind::Binary { op: BinOp::MatMul, left, right, .. } => (&**left, Some(&**right)),
        _ => (expr, None),
    };
    if let (Some(index), Some(axes)) = (position(body), axes) {
        let index = index?;
        for (axis, span) in axis_names(axes)? {
            use_axis(parts, &axis, span)?;
            parts.partial.push((Monoid::At(index), axis));
        }
        return Ok(());
    }
    if let (ExprKind::Name(name), Some(axes)) = (&body.kind, axes) {
        if let Some(monoid) = Monoid::parse(name) {
            for (axis, span) in axis_names(axes)? {
                use_axis(parts, &axis, span)?;
                parts.partial.push((monoid, axis));
            }
            return Ok(());
        }
        if parts.dtype.is_some() {
            return Err(unknown_monoid(name, body.span));
        }
    }
    if axes.is_none() && !parts.any && parts.dtype.is_none() && is_any_dtype(body, names) {
        parts.any = true;
        return Ok(());
    }
    if let Some(dtype) = element_type(body, names)? {
        return match (axes, parts.dtype) {
            (Some(_), _) => {
                Err(Diagnostic::new(Code::E0401, expr.span, "an element type has no mesh axis").help(format!(
                    "a dim is split as in `Tensor[B@dp, {dtype}]`; a partial value is `Tensor[B, {dtype}, sum@tp]`"
                )))
            }
            (None, Some(first)) => Err(Diagnostic::new(
                Code::E0215,
                expr.span,
                format!("a second element type: the first one is `{first}`"),
            )),
            (None, None) => {
                parts.dtype = Some(dtype);
                Ok(())
            }
        };
    }
    if parts.dtype.is_some() || parts.any {
        let d = Diagnostic::new(Code::E0215, expr.span, "a dim after the element type");
        return Err(match parts.dtype {
            Some(dtype) => d.help(format!("the element type comes last: `Tensor[…, {dtype}]`")),
            None => d.help("the element type comes last"),
        });
    }
    dim(parts, body, axes, names)
}

/// The position in `at(1)`, where that is what stands there.
fn position(body: &Expr) -> Option<Result<u64, Diagnostic>> {
    let ExprKind::Call { func, args } = &body.kind else { return None };
    if !matches!(&func.kind, ExprKind::Name(name) if &**name == "at") {
        return None;
    }
    let index = match args.as_slice() {
        [Arg { name: None, value: Expr { kind: ExprKind::Int(n), .. }, .. }] => n.parse::<u64>().ok(),
        _ => None,
    };
    Some(index.ok_or_else(|| no_position(body.span)))
}

fn no_position(span: Span) -> Diagnostic {
    Diagnostic::new(Code::E0401, span, "`at` takes the number of a position, written out")
        .help("for example `at(1)@pp`: the devices at position 1 of `pp` have the value")
}

fn dim(parts: &mut Parts, body: &Expr, axes: Option<&Expr>, names: &mut dyn AnnotNames) -> Result<(), Diagnostic> {
    if let ExprKind::Binary { op: BinOp::MatMul, left, right, .. } = &body.kind {
        let (Some(outer), whole) = (axes, left.span.to(body.span)) else { return Ok(()) };
        let mut all: Vec<String> = axis_names(right)?.into_iter().map(|(a, _)| a).collect();
        all.extend(axis_names(outer)?.into_iter().map(|(a, _)| a));
        return Err(Diagnostic::new(Code::E0401, whole.to(outer.span), "a dim takes one `@`")
            .help(format!("split it over several axes, major first, with `@({})`", all.join(", "))));
    }
    let size = resolve_size(body, names)?;
    if let Some(n) = size.as_const().filter(|&n| n < 0) {
        return Err(Diagnostic::new(Code::E0215, body.span, format!("a size cannot be negative, and this is {n}")));
    }
    parts.shape.push(size);
    let mut split = vec![];
    if let Some(axes) = axes {
        for (axis, span) in axis_names(axes)? {
            use_axis(parts, &axis, span)?;
            split.push(axis);
        }
    }
    parts.axes.push(split);
    Ok(())
}

/// Whether the expression names an element type that is left open.
fn is_any_dtype(expr: &Expr, names: &mut dyn AnnotNames) -> bool {
    matches!(&expr.kind, ExprKind::Name(n) if names.name(n, expr.span) == NameMeaning::AnyDType)
}

/// The element type, if the expression is one.
fn element_type(expr: &Expr, names: &mut dyn AnnotNames) -> Result<Option<DType>, Diagnostic> {
    match &expr.kind {
        ExprKind::Str(text) => dtype_text(text, expr.span).map(Some),
        ExprKind::Name(name) => match names.name(name, expr.span) {
            NameMeaning::DType(d) => Ok(Some(d)),
            NameMeaning::Size(_) => Ok(None),
            _ => match &**name {
                "float" | "int" | "complex" => {
                    let (dtype, host) = match &**name {
                        "float" => ("f32", "host scalar type"),
                        "int" => ("i64", "host scalar type"),
                        _ => ("c64", "host type"),
                    };
                    Err(Diagnostic::new(
                        Code::E0215,
                        expr.span,
                        format!("`{name}` is a {host}, not an element type of tensors"),
                    )
                    .fix(format!("write `{dtype}`"), expr.span, dtype))
                }
                _ => Ok(DType::parse(name)),
            },
        },
        _ => Ok(None),
    }
}

/// An element type in quotes.
pub(super) fn dtype_text(text: &str, span: Span) -> Result<DType, Diagnostic> {
    DType::parse(text).ok_or_else(|| {
        let d = Diagnostic::new(Code::E0214, span, format!("`{text}` is not an element type"));
        match nearest(text, DType::ALL.iter().map(|t| t.name())) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.note(format!("element types are {}", DType::ALL.map(|t| t.name()).join(", "))),
        }
    })
}

/// `dp`, `"dp"` or `(tp, pp)`.
fn axis_names(expr: &Expr) -> Result<Vec<(String, Span)>, Diagnostic> {
    match &expr.kind {
        ExprKind::Name(name) | ExprKind::Str(name) => Ok(vec![(name.to_string(), expr.span)]),
        ExprKind::Tuple(axes) if !axes.is_empty() => {
            let mut out = vec![];
            for axis in axes {
                match &axis.kind {
                    ExprKind::Name(name) | ExprKind::Str(name) => out.push((name.to_string(), axis.span)),
                    _ => return Err(no_axis(axis.span)),
                }
            }
            Ok(out)
        }
        _ => Err(no_axis(expr.span)),
    }
}

fn no_axis(span: Span) -> Diagnostic {
    Diagnostic::new(Code::E0401, span, "after `@` stands the name of a mesh axis")
        .help("for example `B@dp`, or `D@(tp, pp)` for two axes")
}

fn use_axis(parts: &mut Parts, axis: &str, span: Span) -> Result<(), Diagnostic> {
    if let Some((_, first)) = parts.used.iter().find(|(a, _)| a == axis) {
        return Err(Diagnostic::new(Code::E0401, span, format!("the mesh axis `{axis}` is used twice in one type"))
            .here("second use")
            .with_label(*first, "first use")
            .note("a device of an axis holds one block: two dims cannot both be split over it, and a split dim is not partial over it"));
    }
    parts.used.push((axis.to_owned(), span));
    Ok(())
}

fn unknown_monoid(name: &str, span: Span) -> Diagnostic {
    if name == "at" {
        return no_position(span);
    }
    let d = Diagnostic::new(Code::E0401, span, format!("`{name}` is not a way to combine partial values"));
    match nearest(name, ["sum", "max", "min", "lse"]) {
        Some(near) => d.fix(format!("did you mean `{near}`?"), span, near),
        None => d.note("partial values combine by `sum`, `max`, `min` or `lse`; dims stand before the element type"),
    }
}

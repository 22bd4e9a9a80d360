//! Values converted to declared types.

use crate::sizes::SizeCx;
use crate::tensor::{self, Given};
use crate::unify::{Coerce, Mismatch, assignable, convert, refine};
use std::sync::Arc;
use tessera_base::{DType, Span};
use tessera_core::ir::{TExpr, TKind};
use tessera_core::ty::Ty;
use tessera_ops::surface;

/// `value` as a value of the declared type `expected`, with what that leaves open taken from
/// the value, and with the sizes that the value was found with: what has the declared ones as soon as all is
/// compared is for the caller to say. Lists, tuples and dicts that are written out convert element by element.
///
/// `name` and `annotation` are for checks at run time: what is bound, and where its type is
/// declared. `cx.unproved` is set where sizes have to be compared then. A function that is bound to a function type
/// is left as it is: the checker instantiates it ([`Coerce::Erase`]).
pub fn coerce(
    cx: &mut SizeCx,
    value: TExpr,
    expected: &Ty,
    name: &str,
    annotation: Span,
) -> Result<TExpr, Box<Mismatch>> {
    let (span, whole) = (value.span, value.ty.clone());
    let inside = |step: String| {
        let (expected, found) = (expected.clone(), whole.clone());
        move |m: Box<Mismatch>| Box::new(m.inside(step, &expected, &found))
    };
    let (kind, ty) = match (value.kind, expected) {
        (TKind::List(items), Ty::List(element)) => {
            let mut out = vec![];
            for (i, item) in items.into_iter().enumerate() {
                out.push(coerce(cx, item, element, name, annotation).map_err(inside(format!("element {i}")))?);
            }
            (TKind::List(out), convert(expected, &whole))
        }
        (TKind::Tuple(items), Ty::Tuple(types)) if items.len() == types.len() => {
            let mut out = vec![];
            for (i, (item, ty)) in items.into_iter().zip(types).enumerate() {
                out.push(coerce(cx, item, ty, name, annotation).map_err(inside(format!("element {i}")))?);
            }
            let ty = Ty::Tuple(out.iter().map(|e| e.ty.clone()).collect());
            (TKind::Tuple(out), ty)
        }
        (TKind::Dict(pairs), Ty::Dict(key, element)) => {
            let mut out = vec![];
            for (k, v) in pairs {
                let k = coerce(cx, k, key, name, annotation).map_err(inside("a key".into()))?;
                out.push((k, coerce(cx, v, element, name, annotation).map_err(inside("a value".into()))?));
            }
            (TKind::Dict(out), convert(expected, &whole))
        }
        (kind, _) => {
            let value = TExpr { kind, ty: whole, span };
            let how = assignable(cx, expected, &value.ty, span)?;
            cx.unproved |= how.compares();
            return Ok(apply(cx, value, &how, expected, name, annotation));
        }
    };
    Ok(TExpr { kind, ty, span })
}

/// Carries out what [`assignable`] found.
pub fn apply(cx: &mut SizeCx, value: TExpr, how: &Coerce, expected: &Ty, name: &str, annotation: Span) -> TExpr {
    let span = value.span;
    let (kind, ty) = match how {
        Coerce::Sizes => {
            let ty = crate::unify::fill(&value.ty, expected);
            return TExpr { ty, ..value };
        }
        Coerce::None => {
            // A literal of unknown element type takes the declared one.
            return match (&value.ty, expected) {
                (Ty::Int(_) | Ty::DType(_) | Ty::Error | Ty::Never | Ty::FnRef(_), _) => value,
                _ => TExpr { ty: convert(expected, &value.ty), ..value },
            };
        }
        Coerce::Erase => return value,
        Coerce::BoolToInt => (TKind::BoolToInt(Box::new(value)), Ty::int()),
        Coerce::IntToFloat => (TKind::IntToFloat(Box::new(value)), Ty::Float),
        Coerce::BoolToFloat => {
            let int = TExpr { kind: TKind::BoolToInt(Box::new(value)), ty: Ty::int(), span };
            (TKind::IntToFloat(Box::new(int)), Ty::Float)
        }
        Coerce::ScalarToTensor(dtype) => return scalar_to_tensor(cx, value, *dtype),
        Coerce::Check => {
            cx.note_type(expected, &format!("`{name}`"), span);
            let ty = refine(expected, &value.ty);
            (TKind::Check { value: Box::new(value), name: Arc::from(name), annotation, dims: vec![] }, ty)
        }
        Coerce::Tuple(parts) => {
            let Ty::Tuple(types) = expected else { return value };
            let found = match &value.ty {
                Ty::Tuple(found) => found.clone(),
                _ => return value,
            };
            let mut out = vec![];
            for (i, ((part, ty), found)) in parts.iter().zip(types).zip(found).enumerate() {
                let field = TExpr { kind: TKind::Field(Box::new(value.clone()), i as u32), ty: found, span };
                out.push(apply(cx, field, part, ty, name, annotation));
            }
            let ty = Ty::Tuple(out.iter().map(|e| e.ty.clone()).collect());
            (TKind::Tuple(out), ty)
        }
    };
    TExpr { kind, ty, span }
}

/// A Python scalar as a tensor of rank 0.
pub fn scalar_to_tensor(cx: &mut SizeCx, value: TExpr, dtype: DType) -> TExpr {
    let span = value.span;
    let shape = TExpr { kind: TKind::Tuple(vec![]), ty: Ty::Tuple(vec![]), span };
    let dtype = TExpr { kind: TKind::DType(dtype), ty: Ty::DType(Some(dtype)), span };
    let given = vec![Given::positional(shape), Given::positional(value), Given::positional(dtype)];
    match surface::find("full").map(|def| tensor::op_call(cx, def, given, span, span)) {
        Some(Ok(e)) => e,
        _ => tensor::error_expr(span),
    }
}

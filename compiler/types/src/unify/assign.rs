//! Is a value of one type accepted where another is declared?

use super::mismatch::{Mismatch, What};
use crate::sizes::SizeCx;
use std::sync::Arc;
use tessera_base::{DType, Sharding, Size, Span, TensorType, Verdict};
use tessera_core::ty::{TensorPattern, Ty};

/// What turns an accepted value into one of the declared type.
#[derive(Clone, PartialEq, Debug)]
pub enum Coerce {
    None,
    BoolToInt,
    IntToFloat,
    /// Through int.
    BoolToFloat,
    /// A Python scalar becomes a tensor of rank 0.
    ScalarToTensor(DType),
    /// Rank, dtype and sizes of a tensor of which nothing is known are checked at run time.
    Check,
    /// Sizes, or tensors in containers, are checked at run time.
    Sizes,
    /// A particular function becomes a value of the declared function type. That its
    /// parameters and result fit is left to the checker, which instantiates it.
    Erase,
    /// Element by element of a tuple.
    Tuple(Vec<Coerce>),
}

impl Coerce {
    /// Whether the value stays as it is and only a run can tell whether it has the type.
    pub fn is_check(&self) -> bool {
        match self {
            Coerce::Check | Coerce::Sizes => true,
            Coerce::Tuple(parts) => parts.iter().all(|p| *p == Coerce::None || p.is_check()),
            _ => false,
        }
    }

    /// Whether something has to be compared when the program runs.
    pub fn compares(&self) -> bool {
        match self {
            Coerce::Sizes => true,
            Coerce::Tuple(parts) => parts.iter().any(Coerce::compares),
            _ => false,
        }
    }
}

/// Accepts `found` where `expected` is declared, or says why not. Equalities of sizes that
/// only data decides are recorded in `cx` at `span`.
pub fn assignable(cx: &mut SizeCx, expected: &Ty, found: &Ty, span: Span) -> Result<Coerce, Mismatch> {
    let differ = |what| Err(Mismatch::new(expected, found, what));
    match (expected, found) {
        (Ty::Error | Ty::Unknown, _) | (_, Ty::Error | Ty::Never | Ty::Unknown) => Ok(Coerce::None),
        (Ty::Int(_), Ty::Int(_))
        | (Ty::Float, Ty::Float)
        | (Ty::Bool, Ty::Bool)
        | (Ty::Str, Ty::Str)
        | (Ty::None, Ty::None)
        | (Ty::DType(_), Ty::DType(_))
        | (Ty::ShardSpec(_), Ty::ShardSpec(_)) => Ok(Coerce::None),
        // A declared mesh without axes is any.
        (Ty::Mesh(e), Ty::Mesh(f)) if e.is_none() || f.is_none() || e == f => Ok(Coerce::None),
        (Ty::Int(_), Ty::Bool) => Ok(Coerce::BoolToInt),
        (Ty::Float, Ty::Int(_)) => Ok(Coerce::IntToFloat),
        (Ty::Float, Ty::Bool) => Ok(Coerce::BoolToFloat),
        (Ty::AnyTensor, Ty::Tensor(_) | Ty::AnyTensor) => Ok(Coerce::None),
        (Ty::Tensor(_) | Ty::TensorPattern(_), Ty::AnyTensor) => Ok(Coerce::Check),
        (Ty::Tensor(e), Ty::Tensor(f)) => {
            tensor(cx, (&e.shape, e.dtype, &e.sharding), f, false, span, &|what| Mismatch::new(expected, found, what))
        }
        (Ty::TensorPattern(e), Ty::Tensor(f)) => {
            tensor(cx, (&e.tail, e.dtype, &e.sharding), f, true, span, &|what| Mismatch::new(expected, found, what))
        }
        (Ty::Tensor(e), Ty::Int(_) | Ty::Float | Ty::Bool) if e.rank() == 0 => match scalar_dtype(e.dtype, found) {
            Some(dtype) => Ok(Coerce::ScalarToTensor(dtype)),
            None => differ(What::Type),
        },
        (Ty::List(e), Ty::List(f)) => part(cx, e, f, "the element", expected, found, span),
        (Ty::Dict(ek, ev), Ty::Dict(fk, fv)) => {
            let key = part(cx, ek, fk, "the key", expected, found, span)?;
            let value = part(cx, ev, fv, "the value", expected, found, span)?;
            Ok(if key == Coerce::Sizes { key } else { value })
        }
        (Ty::Tuple(es), Ty::Tuple(fs)) if es.len() == fs.len() => {
            let mut parts = vec![];
            for (i, (e, f)) in es.iter().zip(fs).enumerate() {
                let step = format!("element {i}");
                parts.push(assignable(cx, e, f, span).map_err(|m| m.inside(step, expected, found))?);
            }
            Ok(match parts.iter().all(|c| *c == Coerce::None) {
                true => Coerce::None,
                false => Coerce::Tuple(parts),
            })
        }
        (Ty::Struct(e), Ty::Struct(f)) if e.item == f.item => {
            fields(cx, &e.fields, &f.fields, "field", expected, found, span)
        }
        (Ty::FnRef(e), Ty::FnRef(f)) if e.same_function(f) => {
            fields(cx, &e.captures, &f.captures, "captured", expected, found, span)
        }
        (Ty::Fn(..), Ty::FnRef(_)) => Ok(Coerce::Erase),
        (Ty::Fn(eps, er), Ty::Fn(fps, fr)) if eps.len() == fps.len() => {
            for (i, (e, f)) in eps.iter().zip(fps).enumerate() {
                part(cx, f, e, &format!("parameter {i}"), expected, found, span)?;
            }
            part(cx, er, fr, "the result", expected, found, span)
        }
        _ => differ(What::Type),
    }
}

/// A part that must have the declared type as it is: nothing converts it inside its container.
fn part(
    cx: &mut SizeCx,
    e: &Ty,
    f: &Ty,
    step: &str,
    expected: &Ty,
    found: &Ty,
    span: Span,
) -> Result<Coerce, Mismatch> {
    match assignable(cx, e, f, span).map_err(|m| m.inside(step, expected, found))? {
        Coerce::None => Ok(Coerce::None),
        how if how.is_check() => Ok(Coerce::Sizes),
        _ => Err(Mismatch::new(expected, found, What::Type)),
    }
}

fn fields(
    cx: &mut SizeCx,
    es: &[(Arc<str>, Ty)],
    fs: &[(Arc<str>, Ty)],
    kind: &str,
    expected: &Ty,
    found: &Ty,
    span: Span,
) -> Result<Coerce, Mismatch> {
    let mut out = Coerce::None;
    for ((name, e), (_, f)) in es.iter().zip(fs) {
        if part(cx, e, f, &format!("{kind} `{name}`"), expected, found, span)? == Coerce::Sizes {
            out = Coerce::Sizes;
        }
    }
    Ok(out)
}

/// Rank, dtype, sizes and sharding. With `leading`, the declared dims are the last ones.
fn tensor(
    cx: &mut SizeCx,
    (shape, dtype, sharding): (&[Size], Option<DType>, &Sharding),
    f: &TensorType,
    leading: bool,
    span: Span,
    mismatch: &dyn Fn(What) -> Mismatch,
) -> Result<Coerce, Mismatch> {
    if if leading { f.rank() < shape.len() } else { f.rank() != shape.len() } {
        return Err(mismatch(What::Rank { expected: shape.len(), at_least: leading, found: f.rank() }));
    }
    if let Some(expected) = dtype
        && f.dtype != Some(expected)
    {
        return Err(mismatch(What::DType { expected, found: f.dtype }));
    }
    let skip = f.rank() - shape.len();
    let before = cx.checks.len();
    for (i, (e, found)) in shape.iter().zip(&f.shape[skip..]).enumerate() {
        // Any size, in each element another one.
        if e.as_var().is_some_and(|v| v.each) {
            continue;
        }
        let (proved, witness) = match cx.require_equal(e, found, span) {
            Ok(()) => continue,
            Err(Verdict::Differ(w)) => (true, Some(w)),
            Err(Verdict::Depends(w)) => (false, Some(w)),
            Err(Verdict::Equal) => (false, None),
        };
        let what = What::Size { dim: skip + i, expected: e.clone(), found: found.clone(), proved };
        let advice = if proved { None } else { cx.facts.advice_equal(e, found) };
        return Err(Mismatch { witness, advice, ..mismatch(what) });
    }
    // A type without a sharding says nothing about the layout.
    if !sharding.is_replicated() && !same_layout(sharding, &f.sharding, skip) {
        return Err(mismatch(What::Sharding));
    }
    Ok(if cx.checks.len() > before { Coerce::Sizes } else { Coerce::None })
}

fn same_layout(e: &Sharding, f: &Sharding, skip: usize) -> bool {
    let axes = |s: &Sharding, i: usize| s.dims.get(i).cloned().unwrap_or_default();
    let dims = e.dims.len().max(f.dims.len().saturating_sub(skip));
    e.partial == f.partial && (0..dims).all(|i| axes(e, i) == axes(f, skip + i))
}

/// The element type of a rank-0 tensor that takes this Python scalar.
fn scalar_dtype(declared: Option<DType>, scalar: &Ty) -> Option<DType> {
    let natural = match scalar {
        Ty::Bool => DType::Bool,
        Ty::Int(_) => DType::I64,
        _ => DType::F32,
    };
    let Some(declared) = declared else { return Some(natural) };
    let fits = match natural {
        DType::Bool => declared == DType::Bool,
        DType::I64 => declared != DType::Bool,
        _ => declared.is_float() || declared.is_complex(),
    };
    fits.then_some(declared)
}

/// Whether a declared type leaves something open that each call fills in: leading dims, an
/// element type, or everything (`Tensor`, `Mesh`, `ShardSpec`). A function with such a parameter is a template.
pub fn is_open(ty: &Ty) -> bool {
    match ty {
        Ty::TensorPattern(_) | Ty::AnyTensor | Ty::Unknown => true,
        Ty::Mesh(known) => known.is_none(),
        Ty::ShardSpec(known) => known.is_none(),
        Ty::Tensor(t) => t.dtype.is_none(),
        Ty::List(t) => is_open(t),
        Ty::Dict(k, v) => is_open(k) || is_open(v),
        Ty::Tuple(ts) => ts.iter().any(is_open),
        Ty::Struct(s) => s.fields.iter().any(|(_, t)| is_open(t)),
        Ty::Fn(ps, r) => ps.iter().any(is_open) || is_open(r),
        _ => false,
    }
}

/// Whether a declared type has a mesh or a layout in it of which the value says more.
pub fn leaves_mesh(ty: &Ty) -> bool {
    match ty {
        Ty::Mesh(known) => known.is_none(),
        Ty::ShardSpec(known) => known.is_none(),
        Ty::List(t) => leaves_mesh(t),
        Ty::Dict(k, v) => leaves_mesh(k) || leaves_mesh(v),
        Ty::Tuple(ts) => ts.iter().any(leaves_mesh),
        Ty::Struct(s) => s.fields.iter().any(|(_, t)| leaves_mesh(t)),
        _ => false,
    }
}

/// The type with every `?` in `a` replaced by what `b` has there.
pub fn fill(a: &Ty, b: &Ty) -> Ty {
    match (a, b) {
        (Ty::Unknown, _) => b.clone(),
        (Ty::List(x), Ty::List(y)) => Ty::List(Box::new(fill(x, y))),
        (Ty::Dict(xk, xv), Ty::Dict(yk, yv)) => Ty::Dict(Box::new(fill(xk, yk)), Box::new(fill(xv, yv))),
        (Ty::Tuple(xs), Ty::Tuple(ys)) if xs.len() == ys.len() => {
            Ty::Tuple(xs.iter().zip(ys).map(|(x, y)| fill(x, y)).collect())
        }
        (Ty::Struct(x), Ty::Struct(y)) if x.item == y.item => {
            let fields = x.fields.iter().zip(&y.fields).map(|((n, x), (_, y))| (n.clone(), fill(x, y))).collect();
            Ty::Struct(Arc::new(tessera_core::ty::StructTy { fields, ..(**x).clone() }))
        }
        _ => a.clone(),
    }
}

/// The declared type with what it leaves open taken from the (accepted) value's type.
pub fn refine(expected: &Ty, found: &Ty) -> Ty {
    taken(expected, found, Taken { compared: true, inside: false })
}

/// As [`refine`], with the sizes of the value's own type, which are perhaps still to be compared.
pub fn convert(expected: &Ty, found: &Ty) -> Ty {
    taken(expected, found, Taken { compared: false, inside: false })
}

#[derive(Clone, Copy)]
struct Taken {
    /// Whether the value has the declared sizes.
    compared: bool,
    /// In a list or a dict.
    inside: bool,
}

fn taken(expected: &Ty, found: &Ty, how: Taken) -> Ty {
    let refine = |e: &Ty, f: &Ty| taken(e, f, how);
    let element = |e: &Ty, f: &Ty| taken(e, f, Taken { inside: true, ..how });
    match (expected, found) {
        (Ty::Tensor(_) | Ty::TensorPattern(_), Ty::Tensor(_) | Ty::AnyTensor) if !how.compared => found.clone(),
        (_, Ty::Unknown | Ty::Never | Ty::Error) => expected.clone(),
        (Ty::Unknown | Ty::AnyTensor, _) => found.clone(),
        (Ty::Int(_), Ty::Int(_)) | (Ty::DType(_), Ty::DType(_)) => found.clone(),
        (Ty::Mesh(_), Ty::Mesh(_)) | (Ty::ShardSpec(_), Ty::ShardSpec(_)) => found.clone(),
        (Ty::Tensor(e), Ty::Tensor(f)) => {
            // Any size will do for one that is another in each element, and an element has its own.
            let own = |e: &Size| !how.inside && e.vars().iter().any(|v| v.each);
            let shape = e.shape.iter().zip(&f.shape).map(|(e, f)| if own(e) { f.clone() } else { e.clone() });
            Ty::Tensor(TensorType {
                shape: shape.collect(),
                dtype: e.dtype.or(f.dtype),
                // What is declared has been compared; the value knows its mesh, too.
                sharding: f.sharding.clone(),
            })
        }
        (Ty::TensorPattern(TensorPattern { tail, dtype, .. }), Ty::Tensor(f)) if f.rank() >= tail.len() => {
            let mut shape = f.shape[..f.rank() - tail.len()].to_vec();
            shape.extend(tail.iter().cloned());
            Ty::Tensor(TensorType { shape, dtype: dtype.or(f.dtype), sharding: f.sharding.clone() })
        }
        (Ty::List(e), Ty::List(f)) => Ty::List(Box::new(element(e, f))),
        (Ty::Dict(ek, ev), Ty::Dict(fk, fv)) => Ty::Dict(Box::new(element(ek, fk)), Box::new(element(ev, fv))),
        (Ty::Tuple(es), Ty::Tuple(fs)) if es.len() == fs.len() => {
            Ty::Tuple(es.iter().zip(fs).map(|(e, f)| refine(e, f)).collect())
        }
        (Ty::Struct(e), Ty::Struct(f)) if e.item == f.item => {
            let fields = e.fields.iter().zip(&f.fields).map(|((n, e), (_, f))| (n.clone(), refine(e, f))).collect();
            Ty::Struct(Arc::new(tessera_core::ty::StructTy { fields, ..(**e).clone() }))
        }
        _ => expected.clone(),
    }
}

//! Sizes in types: what they are, and others in their place.

use crate::ty::TensorPattern;
use crate::ty::{FnRefTy, StructTy, Ty};
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::{Size, SizeVar, TensorType};

/// The type with each size variable replaced. `None` for a variable keeps it.
pub fn subst_ty(ty: &Ty, f: &mut dyn FnMut(&SizeVar) -> Option<Size>) -> Ty {
    match ty {
        Ty::Int(Some(n)) => Ty::Int(Some(n.substitute(f))),
        Ty::Tensor(t) => Ty::Tensor(subst_tensor(t, f)),
        Ty::TensorPattern(p) => {
            Ty::TensorPattern(TensorPattern { tail: p.tail.iter().map(|s| s.substitute(f)).collect(), ..p.clone() })
        }
        Ty::List(t) => Ty::List(Box::new(subst_ty(t, f))),
        Ty::Dict(k, v) => Ty::Dict(Box::new(subst_ty(k, f)), Box::new(subst_ty(v, f))),
        Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| subst_ty(t, f)).collect()),
        Ty::Struct(s) => Ty::Struct(Arc::new(StructTy { fields: subst_fields(&s.fields, f), ..StructTy::clone(s) })),
        Ty::FnRef(r) => Ty::FnRef(Arc::new(FnRefTy { captures: subst_fields(&r.captures, f), ..FnRefTy::clone(r) })),
        Ty::Fn(ps, r) => Ty::Fn(ps.iter().map(|t| subst_ty(t, f)).collect(), Box::new(subst_ty(r, f))),
        other => other.clone(),
    }
}

/// As [`subst_ty`], of a tensor type.
pub fn subst_tensor(t: &TensorType, f: &mut dyn FnMut(&SizeVar) -> Option<Size>) -> TensorType {
    TensorType { shape: t.shape.iter().map(|s| s.substitute(f)).collect(), ..t.clone() }
}

fn subst_fields(fields: &[(Arc<str>, Ty)], f: &mut dyn FnMut(&SizeVar) -> Option<Size>) -> Vec<(Arc<str>, Ty)> {
    fields.iter().map(|(name, ty)| (name.clone(), subst_ty(ty, f))).collect()
}

/// The type with other sizes, of which nothing is known. `size` makes one; it gets whether elements of a container
/// have it, each another one.
pub fn of_any_size(ty: &Ty, size: &mut dyn FnMut(bool) -> Size) -> Ty {
    of_any(ty, false, size)
}

fn of_any(ty: &Ty, each: bool, size: &mut dyn FnMut(bool) -> Size) -> Ty {
    let fields = |fields: &[(Arc<str>, Ty)], size: &mut dyn FnMut(bool) -> Size| {
        fields.iter().map(|(n, t)| (n.clone(), of_any(t, each, size))).collect()
    };
    match ty {
        Ty::Tensor(t) => Ty::Tensor(TensorType { shape: t.shape.iter().map(|_| size(each)).collect(), ..t.clone() }),
        Ty::List(t) => Ty::List(Box::new(of_any(t, true, size))),
        Ty::Dict(k, t) => Ty::Dict(k.clone(), Box::new(of_any(t, true, size))),
        Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| of_any(t, each, size)).collect()),
        Ty::Struct(s) => Ty::Struct(Arc::new(StructTy { fields: fields(&s.fields, size), ..StructTy::clone(s) })),
        Ty::FnRef(r) => Ty::FnRef(Arc::new(FnRefTy { captures: fields(&r.captures, size), ..FnRefTy::clone(r) })),
        Ty::Int(_) => Ty::int(),
        other => other.clone(),
    }
}

/// Calls `f` on every size in the type: dims and the symbolic values of ints.
pub fn each_size(ty: &Ty, f: &mut dyn FnMut(&Size)) {
    match ty {
        Ty::Int(Some(n)) => f(n),
        Ty::Tensor(t) => t.shape.iter().for_each(f),
        Ty::TensorPattern(p) => p.tail.iter().for_each(f),
        Ty::List(t) => each_size(t, f),
        Ty::Dict(k, v) => {
            each_size(k, f);
            each_size(v, f);
        }
        Ty::Tuple(ts) => ts.iter().for_each(|t| each_size(t, f)),
        Ty::Struct(s) => s.fields.iter().for_each(|(_, t)| each_size(t, f)),
        Ty::FnRef(r) => r.captures.iter().for_each(|(_, t)| each_size(t, f)),
        Ty::Fn(ps, r) => {
            ps.iter().for_each(|t| each_size(t, f));
            each_size(r, f);
        }
        _ => {}
    }
}

/// Calls `f` on every dim in the type.
pub fn each_dim(ty: &Ty, f: &mut dyn FnMut(&Size)) {
    match ty {
        Ty::Tensor(t) => t.shape.iter().for_each(f),
        Ty::TensorPattern(p) => p.tail.iter().for_each(f),
        Ty::List(t) => each_dim(t, f),
        Ty::Dict(_, v) => each_dim(v, f),
        Ty::Tuple(ts) => ts.iter().for_each(|t| each_dim(t, f)),
        Ty::Struct(s) => s.fields.iter().for_each(|(_, t)| each_dim(t, f)),
        Ty::FnRef(r) => r.captures.iter().for_each(|(_, t)| each_dim(t, f)),
        _ => {}
    }
}

/// Every size variable in the type.
pub fn vars_of(ty: &Ty) -> BTreeSet<SizeVar> {
    let mut out = BTreeSet::new();
    each_size(ty, &mut |s| out.extend(s.vars()));
    out
}

//! Questions about types that the checker asks.

use std::sync::Arc;
use tessera_core::ty::{FnRefTy, StructTy, Ty};
pub use tessera_types::unify::fill;

/// The item of a [`FnRefTy`] that stands for a function of a built-in module, by its name.
pub const BUILTIN_ITEM: u32 = u32::MAX;

/// The type as the running program tells it apart: without sizes, element types and symbolic
/// values. Variables of one erased type share a slot.
pub fn erase(ty: &Ty) -> Ty {
    match ty {
        Ty::Int(_) => Ty::Int(None),
        Ty::DType(_) => Ty::DType(None),
        Ty::Tensor(_) | Ty::TensorPattern(_) => Ty::AnyTensor,
        Ty::List(t) => Ty::List(Box::new(erase(t))),
        Ty::Dict(k, v) => Ty::Dict(Box::new(erase(k)), Box::new(erase(v))),
        Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(erase).collect()),
        Ty::Struct(s) => Ty::Struct(Arc::new(StructTy { fields: erase_fields(&s.fields), ..StructTy::clone(s) })),
        Ty::FnRef(r) => Ty::FnRef(Arc::new(FnRefTy { captures: erase_fields(&r.captures), ..FnRefTy::clone(r) })),
        Ty::Fn(ps, r) => Ty::Fn(ps.iter().map(erase).collect(), Box::new(erase(r))),
        other => other.clone(),
    }
}

fn erase_fields(fields: &[(Arc<str>, Ty)]) -> Vec<(Arc<str>, Ty)> {
    fields.iter().map(|(n, t)| (n.clone(), erase(t))).collect()
}

/// The type without values of ints: types of functions and parameters of structs have none.
pub fn plain_ints(ty: &Ty) -> Ty {
    match ty {
        Ty::Int(_) => Ty::int(),
        Ty::List(t) => Ty::List(Box::new(plain_ints(t))),
        Ty::Dict(k, v) => Ty::Dict(Box::new(plain_ints(k)), Box::new(plain_ints(v))),
        Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(plain_ints).collect()),
        Ty::Struct(s) => {
            let fields = s.fields.iter().map(|(n, t)| (n.clone(), plain_ints(t))).collect();
            Ty::Struct(Arc::new(StructTy { fields, ..StructTy::clone(s) }))
        }
        Ty::Fn(ps, r) => Ty::Fn(ps.iter().map(plain_ints).collect(), Box::new(plain_ints(r))),
        other => other.clone(),
    }
}

/// Whether two erased types are one, where `?` (the element of an empty list) is any type.
pub fn same_slot(a: &Ty, b: &Ty) -> bool {
    match (a, b) {
        (Ty::Unknown, _) | (_, Ty::Unknown) => true,
        (Ty::List(x), Ty::List(y)) => same_slot(x, y),
        (Ty::Dict(xk, xv), Ty::Dict(yk, yv)) => same_slot(xk, yk) && same_slot(xv, yv),
        (Ty::Tuple(xs), Ty::Tuple(ys)) => xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| same_slot(x, y)),
        (Ty::Struct(x), Ty::Struct(y)) => {
            x.item == y.item && x.fields.iter().zip(&y.fields).all(|((_, x), (_, y))| same_slot(x, y))
        }
        _ => a == b,
    }
}

/// Whether a `?` is left in it.
pub fn has_unknown(ty: &Ty) -> bool {
    match ty {
        Ty::Unknown => true,
        Ty::List(t) => has_unknown(t),
        Ty::Dict(k, v) => has_unknown(k) || has_unknown(v),
        Ty::Tuple(ts) => ts.iter().any(has_unknown),
        Ty::Struct(s) => s.fields.iter().any(|(_, t)| has_unknown(t)),
        _ => false,
    }
}

/// Calls `f` on every function type in it.
pub fn each_fn_ref(ty: &Ty, f: &mut dyn FnMut(&FnRefTy)) {
    match ty {
        Ty::List(t) => each_fn_ref(t, f),
        Ty::Dict(k, v) => {
            each_fn_ref(k, f);
            each_fn_ref(v, f);
        }
        Ty::Tuple(ts) => ts.iter().for_each(|t| each_fn_ref(t, f)),
        Ty::Struct(s) => s.fields.iter().for_each(|(_, t)| each_fn_ref(t, f)),
        Ty::FnRef(r) => {
            f(r);
            r.captures.iter().for_each(|(_, t)| each_fn_ref(t, f));
        }
        _ => {}
    }
}

/// How deeply types are nested in it.
pub fn depth(ty: &Ty) -> usize {
    1 + match ty {
        Ty::List(t) => depth(t),
        Ty::Dict(k, v) => depth(k).max(depth(v)),
        Ty::Tuple(ts) => ts.iter().map(depth).max().unwrap_or(0),
        Ty::Struct(s) => s.fields.iter().map(|(_, t)| depth(t)).max().unwrap_or(0),
        Ty::FnRef(r) => r.captures.iter().map(|(_, t)| depth(t)).max().unwrap_or(0),
        Ty::Fn(ps, r) => ps.iter().map(depth).max().unwrap_or(0).max(depth(r)),
        _ => 0,
    }
}

/// A type for people: as annotations spell it, with the fields of structs.
pub fn describe(ty: &Ty) -> String {
    match ty {
        Ty::Struct(s) => {
            let fields: Vec<String> = s.fields.iter().map(|(n, t)| format!("{n}: {t}")).collect();
            format!("{}({})", s.name, fields.join(", "))
        }
        other => other.to_string(),
    }
}

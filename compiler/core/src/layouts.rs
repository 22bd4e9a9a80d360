//! Types whose tensors lie over a mesh in other ways.

use crate::ty::{StructTy, Ty};
use std::sync::Arc;
use tessera_base::{Sharding, TensorType};

/// The type with every tensor changed.
pub fn with_tensors(ty: &Ty, f: &mut dyn FnMut(&TensorType) -> TensorType) -> Ty {
    match ty {
        Ty::Tensor(t) => Ty::Tensor(f(t)),
        Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| with_tensors(t, f)).collect()),
        Ty::List(t) => Ty::List(Box::new(with_tensors(t, f))),
        Ty::Dict(k, t) => Ty::Dict(k.clone(), Box::new(with_tensors(t, f))),
        Ty::Struct(s) => {
            let fields = s.fields.iter().map(|(n, t)| (n.clone(), with_tensors(t, f))).collect();
            Ty::Struct(Arc::new(StructTy { fields, ..StructTy::clone(s) }))
        }
        _ => ty.clone(),
    }
}

/// The type on one device.
pub fn unsharded(ty: &Ty) -> Ty {
    with_tensors(ty, &mut |t| TensorType { sharding: Sharding::default(), ..t.clone() })
}

/// The tensors of a type, in depth-first order.
pub fn tensors(ty: &Ty) -> Vec<TensorType> {
    let mut out = vec![];
    with_tensors(ty, &mut |t| {
        out.push(t.clone());
        t.clone()
    });
    out
}

/// The type `a` lying as `b`, where cutting what is everywhere in full is all that has to happen for that, and
/// something has to.
pub fn sliced_like(a: &Ty, b: &Ty) -> Option<Ty> {
    let mut others = tensors(b).into_iter();
    let (mut cut, mut fits) = (false, true);
    let ty = with_tensors(a, &mut |t| {
        let Some(to) = others.next().map(|o| o.sharding) else { return t.clone() };
        cut |= to != t.sharding;
        fits &= t.sharding.settled(&to).is_some_and(|both| both == to);
        TensorType { sharding: to, ..t.clone() }
    });
    (cut && fits).then_some(ty)
}

/// The type with its tensors as those of the other lie.
pub fn with_shardings_of(a: &Ty, b: &Ty) -> Ty {
    let mut others = tensors(b).into_iter();
    with_tensors(a, &mut |t| match others.next() {
        Some(o) if o.rank() == t.rank() => TensorType { sharding: o.sharding, ..t.clone() },
        _ => t.clone(),
    })
}

/// How a value lies that is one or the other, where cutting what is everywhere in full is all that
/// has to happen. The first pair of tensors for which it is not.
pub fn settled(a: &Ty, b: &Ty) -> Result<Ty, Box<(TensorType, TensorType)>> {
    let mut others = tensors(b).into_iter();
    let mut wrong = None;
    let ty = with_tensors(a, &mut |t| {
        let Some(other) = others.next() else { return t.clone() };
        let Some(sharding) = t.sharding.settled(&other.sharding) else {
            wrong.get_or_insert_with(|| Box::new((t.clone(), other)));
            return t.clone();
        };
        TensorType { sharding, ..t.clone() }
    });
    wrong.map_or(Ok(ty), Err)
}

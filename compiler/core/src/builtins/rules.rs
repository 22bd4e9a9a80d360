//! What the rules of [`super::Builtin`] say of types.

use crate::ty::Ty;

pub fn is_text_list(ty: &Ty) -> bool {
    matches!(ty, Ty::List(t) if matches!(**t, Ty::Str | Ty::Unknown | Ty::Never))
}

pub fn is_int_list(ty: &Ty) -> bool {
    matches!(ty, Ty::List(t) if matches!(**t, Ty::Int(_) | Ty::Unknown | Ty::Never))
}

pub fn is_text_dict(ty: &Ty, value: impl Fn(&Ty) -> bool) -> bool {
    matches!(ty, Ty::Dict(k, v) if matches!(**k, Ty::Str | Ty::Unknown) && (value(v) || matches!(**v, Ty::Unknown)))
}

pub fn is_number(ty: &Ty) -> bool {
    matches!(ty, Ty::Int(_) | Ty::Float)
}

pub fn is_ordered(ty: &Ty) -> bool {
    is_number(ty) || matches!(ty, Ty::Str | Ty::Bool)
}

/// An element of what `any` and `all` take; that of `[]` may be an int.
pub fn is_truth(ty: &Ty) -> bool {
    matches!(ty, Ty::Bool | Ty::Int(_) | Ty::Unknown | Ty::Never | Ty::Error)
}

//! Equality and order of two values of one type.

use crate::context::Context;
use crate::tensor::Tensor;
use crate::tensor_print::element;
use crate::value::{DictObj, TypeId, TypeInfo, list_words, object, record_words, tensor, text};
use std::cmp::Ordering;

/// `a == b`, down to the elements; the order of a dict's entries does not matter.
pub fn equal(cx: &Context, a: u64, b: u64, ty: TypeId) -> bool {
    let info = cx.types.get(ty);
    match info {
        TypeInfo::Float => f64::from_bits(a) == f64::from_bits(b),
        // SAFETY: words of these types are live objects of their kinds.
        TypeInfo::Str => unsafe { text(a) == text(b) },
        // SAFETY: as above.
        TypeInfo::Tensor => unsafe { tensors_equal(tensor(a), tensor(b)) },
        TypeInfo::List(elem) => {
            // SAFETY: as above.
            let (a, b) = unsafe { (list_words(a), list_words(b)) };
            a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| equal(cx, a, b, *elem))
        }
        TypeInfo::Tuple(_) | TypeInfo::Function { .. } | TypeInfo::Struct { .. } => {
            // SAFETY: as above.
            let (a, b) = unsafe { (record_words(a), record_words(b)) };
            a.iter().zip(b).enumerate().all(|(i, (&a, &b))| equal(cx, a, b, cx.types.field(ty, i)))
        }
        TypeInfo::Dict(_, value) => {
            // SAFETY: as above.
            let (a, b) = unsafe { (object::<DictObj>(a), object::<DictObj>(b)) };
            let same = |(key, &x)| b.map.get(key).is_some_and(|&y| equal(cx, x, y, *value));
            a.map.len() == b.map.len() && a.map.iter().all(same)
        }
        TypeInfo::Int | TypeInfo::Bool | TypeInfo::DType | TypeInfo::Fn { .. } => a == b,
        TypeInfo::None | TypeInfo::Known(_) => true,
    }
}

/// Same shape and equal elements.
pub fn tensors_equal(a: &Tensor, b: &Tensor) -> bool {
    a.shape == b.shape && (0..a.elems()).all(|i| element(a, i) == element(b, i))
}

/// The order of two values; NaN comes after every number. Types without an order are equal.
pub fn compare(cx: &Context, a: u64, b: u64, ty: TypeId) -> Ordering {
    match cx.types.get(ty) {
        TypeInfo::Int => (a as i64).cmp(&(b as i64)),
        TypeInfo::Float => floats(f64::from_bits(a), f64::from_bits(b)),
        // SAFETY: words of type str are live strings.
        TypeInfo::Str => unsafe { text(a).cmp(text(b)) },
        TypeInfo::Bool | TypeInfo::DType => a.cmp(&b),
        TypeInfo::List(elem) => {
            // SAFETY: words of type list are live lists.
            let (a, b) = unsafe { (list_words(a), list_words(b)) };
            let parts = a.iter().zip(b).map(|(&a, &b)| compare(cx, a, b, *elem));
            first_difference(parts).then(a.len().cmp(&b.len()))
        }
        TypeInfo::Tuple(_) | TypeInfo::Function { .. } | TypeInfo::Struct { .. } => {
            // SAFETY: words of record types are live records.
            let (a, b) = unsafe { (record_words(a), record_words(b)) };
            first_difference(a.iter().zip(b).enumerate().map(|(i, (&a, &b))| compare(cx, a, b, cx.types.field(ty, i))))
        }
        TypeInfo::None | TypeInfo::Known(_) | TypeInfo::Tensor | TypeInfo::Dict(..) | TypeInfo::Fn { .. } => {
            Ordering::Equal
        }
    }
}

fn first_difference(mut parts: impl Iterator<Item = Ordering>) -> Ordering {
    parts.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

fn floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

//! Values that go into tensor regions and come out of them, as trees that safe code can use.

use crate::tensor::Tensor;
use crate::value::{
    ClosureObj, DictObj, Header, Key, RecordObj, StrKey, StrObj, TensorObj, TypeId, TypeInfo, TypeTable, list_words,
    new_closure, new_dict, new_list, new_record, new_str, new_tensor, object, record_words, text,
};
use std::sync::Arc;
use tessera_base::DType;

/// A host value. Leaves in depth-first order are what regions number.
#[derive(Clone)]
pub enum HostValue {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(Arc<str>),
    None,
    DType(DType),
    Tensor(Tensor),
    List(Vec<HostValue>),
    /// A tuple or a struct.
    Record(Vec<HostValue>),
    Dict(Vec<(HostKey, HostValue)>),
    /// Code address and captures.
    Closure(usize, Vec<HostValue>),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum HostKey {
    Int(i64),
    Bool(bool),
    Str(Arc<str>),
}

/// An empty tensor that stands where a dying one was taken out.
fn gone() -> Option<Tensor> {
    Tensor::new(DType::U8, &[0], false).ok()
}

/// Reads a word. With `dying`, the caller gives the word up: tensors that no one else holds are
/// moved out, so that their memory can be used again.
///
/// # Safety
/// `word` is a live value of type `ty`; with `dying`, no one reads it afterwards but to
/// release it.
pub unsafe fn read(types: &TypeTable, word: u64, ty: TypeId, dying: bool) -> HostValue {
    // SAFETY: words of counted types start with a header.
    let last = dying && types.counted(ty) && word != 0 && unsafe { (*(word as *const Header)).count.get() == 1 };
    match types.get(ty) {
        TypeInfo::Int => HostValue::Int(word as i64),
        TypeInfo::Float => HostValue::Float(f64::from_bits(word)),
        TypeInfo::Bool => HostValue::Bool(word != 0),
        TypeInfo::None | TypeInfo::Known(_) => HostValue::None,
        TypeInfo::DType => HostValue::DType(DType::ALL.get(word as usize).copied().unwrap_or(DType::F32)),
        // SAFETY: a live string.
        TypeInfo::Str => HostValue::Str(unsafe { text(word) }.into()),
        TypeInfo::Tensor => {
            if let (true, Some(empty)) = (last, gone()) {
                // SAFETY: the only reference, given up by the caller.
                let t = unsafe { &mut (*(word as *mut TensorObj)).tensor };
                return HostValue::Tensor(std::mem::replace(t, empty));
            }
            // SAFETY: a live tensor.
            HostValue::Tensor(unsafe { crate::value::tensor(word) }.clone())
        }
        TypeInfo::List(elem) => {
            // SAFETY: a live list, whose words are of its element type.
            HostValue::List(
                unsafe { list_words(word) }.iter().map(|&w| unsafe { read(types, w, *elem, last) }).collect(),
            )
        }
        TypeInfo::Tuple(items) | TypeInfo::Function { captures: items, .. } => {
            // SAFETY: a live record of these fields.
            HostValue::Record(
                unsafe { record_words(word) }
                    .iter()
                    .zip(items)
                    .map(|(&w, &t)| unsafe { read(types, w, t, last) })
                    .collect(),
            )
        }
        TypeInfo::Struct { fields, .. } => {
            // SAFETY: a live record of these fields.
            let words = unsafe { record_words(word) };
            // SAFETY: as above.
            HostValue::Record(
                words.iter().zip(fields).map(|(&w, (_, t))| unsafe { read(types, w, *t, last) }).collect(),
            )
        }
        TypeInfo::Dict(_, value) => {
            // SAFETY: a live dict with values of this type.
            let d: &DictObj = unsafe { object(word) };
            let entry = |(k, &w): (&Key, &u64)| {
                let key = match k {
                    Key::Int(i) => HostKey::Int(*i),
                    Key::Bool(b) => HostKey::Bool(*b),
                    Key::Str(s) => HostKey::Str(s.get().text().into()),
                };
                // SAFETY: as above.
                (key, unsafe { read(types, w, *value, last) })
            };
            HostValue::Dict(d.map.iter().map(entry).collect())
        }
        TypeInfo::Fn { .. } => {
            // SAFETY: a live closure, whose captures are of the types it names.
            let c: &ClosureObj = unsafe { object(word) };
            let (words, ids) = c.parts();
            // SAFETY: as above.
            HostValue::Closure(
                c.code,
                words.iter().zip(ids).map(|(&w, &t)| unsafe { read(types, w, t as TypeId, last) }).collect(),
            )
        }
    }
}

/// Whether a value has the form of a type, so that [`write`] makes one of it. An empty list or
/// dict has that of any.
pub fn fits(types: &TypeTable, value: &HostValue, ty: TypeId) -> bool {
    match (value, types.get(ty)) {
        (HostValue::Int(_), TypeInfo::Int)
        | (HostValue::Float(_), TypeInfo::Float)
        | (HostValue::Bool(_), TypeInfo::Bool)
        | (HostValue::None, TypeInfo::None | TypeInfo::Known(_))
        | (HostValue::DType(_), TypeInfo::DType)
        | (HostValue::Str(_), TypeInfo::Str)
        | (HostValue::Tensor(_), TypeInfo::Tensor) => true,
        (HostValue::List(items), TypeInfo::List(elem)) => items.iter().all(|v| fits(types, v, *elem)),
        (HostValue::Record(items), TypeInfo::Tuple(tys) | TypeInfo::Function { captures: tys, .. }) => {
            items.len() == tys.len() && items.iter().zip(tys).all(|(v, t)| fits(types, v, *t))
        }
        (HostValue::Record(items), TypeInfo::Struct { fields, .. }) => {
            items.len() == fields.len() && items.iter().zip(fields).all(|(v, (_, t))| fits(types, v, *t))
        }
        (HostValue::Dict(entries), TypeInfo::Dict(key, value)) => {
            let of_key = types.get(*key);
            let fits_key = |k: &HostKey| match k {
                HostKey::Int(_) => *of_key == TypeInfo::Int,
                HostKey::Bool(_) => *of_key == TypeInfo::Bool,
                HostKey::Str(_) => *of_key == TypeInfo::Str,
            };
            entries.iter().all(|(k, v)| fits_key(k) && fits(types, v, *value))
        }
        (HostValue::Closure(_, captures), TypeInfo::Fn { .. }) => captures.is_empty(),
        _ => false,
    }
}

/// The owned word of a value as a type. A value of another form than the type's gives 0, which
/// the compiler never asks for.
pub fn write(types: &TypeTable, value: HostValue, ty: TypeId) -> u64 {
    match (value, types.get(ty)) {
        (HostValue::Int(n), _) => n as u64,
        (HostValue::Float(x), _) => x.to_bits(),
        (HostValue::Bool(b), _) => u64::from(b),
        (HostValue::DType(d), _) => DType::ALL.iter().position(|o| *o == d).unwrap_or(0) as u64,
        (HostValue::Str(s), _) => new_str(&*s),
        (HostValue::Tensor(t), _) => new_tensor(t),
        (HostValue::List(items), TypeInfo::List(elem)) => {
            let words = items.into_iter().map(|v| write(types, v, *elem)).collect();
            new_list(types, *elem, words)
        }
        (HostValue::Record(items), info) => {
            let field = |i: usize| match info {
                TypeInfo::Tuple(ts) | TypeInfo::Function { captures: ts, .. } => ts.get(i).copied(),
                TypeInfo::Struct { fields, .. } => fields.get(i).map(|f| f.1),
                _ => None,
            };
            let words: Vec<u64> =
                items.into_iter().enumerate().map(|(i, v)| field(i).map_or(0, |t| write(types, v, t))).collect();
            let record = new_record(ty, words.len());
            // SAFETY: just made, with as many fields.
            unsafe { RecordObj::fill(record, &words) };
            record
        }
        (HostValue::Dict(entries), TypeInfo::Dict(_, value)) => dict(types, entries, ty, *value),
        (HostValue::Closure(code, captures), _) if captures.is_empty() => new_closure(code, 0),
        _ => 0,
    }
}

fn dict(types: &TypeTable, entries: Vec<(HostKey, HostValue)>, ty: TypeId, value: TypeId) -> u64 {
    let word = new_dict(types, ty);
    // SAFETY: just made, and no one else holds it.
    let mut made = unsafe { crate::value::Own::<DictObj>::of(word) }.unbox(types);
    for (key, v) in entries {
        let key = match key {
            HostKey::Int(i) => Key::Int(i),
            HostKey::Bool(b) => Key::Bool(b),
            HostKey::Str(s) => {
                let word = new_str(&*s);
                // SAFETY: just made; the key takes a reference of its own and the first is given up.
                unsafe {
                    let key = StrKey::new(object::<StrObj>(word));
                    crate::value::release(types, word);
                    Key::Str(key)
                }
            }
        };
        made.map.insert(key, write(types, v, value));
    }
    crate::value::into_word(made)
}

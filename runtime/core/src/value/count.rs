//! Counting owners, and what happens when there are none.

use super::{
    ClosureObj, DictObj, Header, Kind, ListObj, RecordObj, StrObj, TensorObj, TypeId, TypeTable, object,
    trailing_layout,
};
use std::alloc::dealloc;

/// Objects that are never freed start with this many owners.
const IMMORTAL: u64 = 1 << 62;

/// Makes an object that is never freed by counting.
///
/// # Safety
/// `word` is a live object.
pub unsafe fn make_immortal(word: u64) {
    // SAFETY: the caller's promise.
    unsafe { (*(word as *const Header)).count.set(IMMORTAL) }
}

/// One more owner; null is allowed.
pub fn retain(object: Option<&Header>) {
    if let Some(h) = object {
        h.count.set(h.count.get() + 1);
    }
}

/// [`retain`] of a word of a counted type.
///
/// # Safety
/// `word` is null or a live object.
pub unsafe fn retain_word(word: u64) {
    // SAFETY: the caller's promise; null is `None`.
    retain(unsafe { (word as *const Header).as_ref() });
}

/// One owner less; the last one frees the object and releases its parts. Null is allowed.
///
/// # Safety
/// `word` is null or an owned reference to an object whose type ids belong to `types`.
pub unsafe fn release(types: &TypeTable, word: u64) {
    // SAFETY: the caller's promise.
    let Some(header) = (unsafe { (word as *const Header).as_ref() }) else { return };
    let count = header.count.get();
    if count > 1 {
        header.count.set(count - 1);
        return;
    }
    // SAFETY: this was the last reference, so the object may be taken apart; boxes were made
    // by `boxed`, trailing objects by `trailing` with as many words.
    unsafe {
        match header.kind {
            Kind::Str => drop(Box::from_raw(word as *mut StrObj)),
            Kind::Tensor => drop(Box::from_raw(word as *mut TensorObj)),
            Kind::List => free_list(types, &Box::from_raw(word as *mut ListObj)),
            Kind::Dict => free_dict(types, &Box::from_raw(word as *mut DictObj)),
            Kind::Record => free_record(types, word),
            Kind::Closure => free_closure(types, word),
        }
    }
}

/// # Safety
/// The words of the list are owned references of its element type.
unsafe fn free_list(types: &TypeTable, list: &ListObj) {
    if list.counted {
        for &w in list.words() {
            // SAFETY: the caller's promise.
            unsafe { release(types, w) }
        }
    }
}

/// # Safety
/// As for [`free_list`].
unsafe fn free_dict(types: &TypeTable, dict: &DictObj) {
    if types.counted(dict.value) {
        for &w in dict.map.values() {
            // SAFETY: the caller's promise.
            unsafe { release(types, w) }
        }
    }
}

/// # Safety
/// `word` is a record without owners.
unsafe fn free_record(types: &TypeTable, word: u64) {
    // SAFETY: the caller's promise.
    let record = unsafe { object::<RecordObj>(word) };
    for (i, &w) in record.words().iter().enumerate() {
        if types.counted(types.field(record.ty, i)) {
            // SAFETY: fields are owned references of their types.
            unsafe { release(types, w) }
        }
    }
    // SAFETY: allocated by `trailing` with this layout.
    unsafe { dealloc(word as *mut u8, trailing_layout::<RecordObj>(record.len as usize)) }
}

/// # Safety
/// `word` is a closure without owners.
unsafe fn free_closure(types: &TypeTable, word: u64) {
    // SAFETY: the caller's promise.
    let closure = unsafe { object::<ClosureObj>(word) };
    let (words, ids) = closure.parts();
    for (&w, &ty) in words.iter().zip(ids) {
        if types.counted(ty as TypeId) {
            // SAFETY: captures are owned references of their types.
            unsafe { release(types, w) }
        }
    }
    // SAFETY: allocated by `trailing` with this layout.
    unsafe { dealloc(word as *mut u8, trailing_layout::<ClosureObj>(2 * closure.len)) }
}

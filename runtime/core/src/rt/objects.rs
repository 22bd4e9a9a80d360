//! Counting, records, closures, printing, equality.

use super::{AnyObject, rows, settle};
use crate::context::Context;
use crate::value::{
    ClosureObj, DictObj, Header, Kind, ListObj, Own, RecordObj, StrObj, TensorObj, TypeId, into_word, new_closure,
    new_record, new_str, retain as add_owner,
};
use crate::{order, show};
use tessera_abi::layout;
use tessera_abi::rt::RtFn;

pub fn rows() -> Vec<(RtFn, *const u8)> {
    rows! {
        takes_1 retain release unique closure_code;
        takes_2 record_new record_slot closure_new closure_slot to_str to_repr print_text;
        takes_3 closure_set_type print_value;
        takes_4 format_value value_eq value_compare;
    }
}

extern "C" fn retain(_: &mut Context, object: AnyObject) -> u64 {
    add_owner(object);
    object.map_or(0, |h| &raw const *h as u64)
}

extern "C" fn release(cx: &mut Context, object: AnyObject) {
    if let Some(header) = object {
        // SAFETY: the caller gives up the reference it owns.
        unsafe { crate::value::release(&cx.types, &raw const *header as u64) }
    }
}

extern "C" fn unique(cx: &mut Context, object: AnyObject) -> u64 {
    let Some(header) = object else { return 0 };
    let word = &raw const *header as u64;
    if header.count.get() == 1 {
        return word;
    }
    copy(cx, header, word)
}

#[cold]
fn copy(cx: &mut Context, header: &Header, word: u64) -> u64 {
    // SAFETY: the caller owns the reference, and the kind says what the object is.
    unsafe {
        match header.kind {
            Kind::List => into_word(Own::<ListObj>::of(word).unbox()),
            Kind::Dict => into_word(Own::<DictObj>::of(word).unbox(&cx.types)),
            Kind::Tensor => into_word(Own::<TensorObj>::of(word).unbox()),
            Kind::Record => Own::<RecordObj>::of(word).unique(&cx.types),
            // Neither is ever changed through a place.
            Kind::Str | Kind::Closure => word,
        }
    }
}

extern "C" fn record_new(_: &mut Context, ty: i64, len: i64) -> u64 {
    new_record(ty as TypeId, len.max(0) as usize)
}

extern "C" fn record_slot(_: &mut Context, record: &RecordObj, index: i64) -> i64 {
    &raw const *record as i64 + i64::from(layout::record::WORDS) + 8 * index
}

extern "C" fn closure_new(_: &mut Context, code: i64, captures: i64) -> u64 {
    new_closure(code as usize, captures.max(0) as usize)
}

extern "C" fn closure_slot(_: &mut Context, closure: &ClosureObj, index: i64) -> i64 {
    &raw const *closure as i64 + i64::from(layout::closure::WORDS) + 8 * index
}

extern "C" fn closure_code(_: &mut Context, closure: &ClosureObj) -> i64 {
    closure.code as i64
}

extern "C" fn closure_set_type(cx: &mut Context, closure: &ClosureObj, index: i64, ty: i64) {
    let slot = closure_slot(cx, closure, closure.len as i64 + index);
    // SAFETY: the words of the types follow those of the captures.
    unsafe { *(slot as *mut u64) = ty as u64 }
}

extern "C" fn to_str(cx: &mut Context, word: u64, ty: i64) -> u64 {
    let mut out = String::new();
    show::str(cx, word, ty as TypeId, &mut out);
    new_str(out)
}

extern "C" fn to_repr(cx: &mut Context, word: u64, ty: i64) -> u64 {
    let mut out = String::new();
    show::repr(cx, word, ty as TypeId, &mut out);
    new_str(out)
}

extern "C" fn print_value(cx: &mut Context, word: u64, ty: i64, span: i64) {
    let mut out = String::new();
    show::str(cx, word, ty as TypeId, &mut out);
    cx.print(&out, span as u32);
}

extern "C" fn print_text(cx: &mut Context, text: &StrObj, span: i64) {
    cx.print(text.text(), span as u32);
}

extern "C" fn format_value(cx: &mut Context, word: u64, ty: i64, spec: &StrObj, span: i64) -> u64 {
    let text = show::format(cx, word, ty as TypeId, spec.text()).map(new_str);
    settle(cx, span, text)
}

extern "C" fn value_eq(cx: &mut Context, a: u64, b: u64, ty: i64, _span: i64) -> i64 {
    i64::from(order::equal(cx, a, b, ty as TypeId))
}

extern "C" fn value_compare(cx: &mut Context, a: u64, b: u64, ty: i64, _span: i64) -> i64 {
    order::compare(cx, a, b, ty as TypeId) as i64
}

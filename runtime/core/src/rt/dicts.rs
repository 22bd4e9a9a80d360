//! Dicts.

use super::{rows, settle, settle_own};
use crate::context::Context;
use crate::dict;
use crate::value::{DictObj, Own, TypeId};
use tessera_abi::rt::RtFn;

pub fn rows() -> Vec<(RtFn, *const u8)> {
    rows! {
        takes_1 dict_new dict_len dict_keys dict_values dict_clear;
        takes_2 dict_contains dict_items;
        takes_3 dict_update dict_get dict_get_or dict_delete dict_slot;
        takes_4 dict_set;
    }
}

type Dict<'a> = &'a DictObj;

extern "C" fn dict_new(cx: &mut Context, ty: i64) -> u64 {
    dict::new(cx, ty as TypeId)
}

extern "C" fn dict_set(cx: &mut Context, dict: Own<DictObj>, key: u64, value: u64, span: i64) -> u64 {
    let set = dict::set(cx, dict, key, value);
    settle_own(cx, span, set)
}

extern "C" fn dict_get(cx: &mut Context, dict: Dict, key: u64, span: i64) -> u64 {
    let word = dict::get(cx, dict, key);
    settle(cx, span, word)
}

extern "C" fn dict_get_or(cx: &mut Context, dict: Dict, key: u64, default: u64) -> u64 {
    dict::get_or(cx, dict, key, default)
}

extern "C" fn dict_contains(cx: &mut Context, dict: Dict, key: u64) -> i64 {
    i64::from(dict::contains(cx, dict, key))
}

extern "C" fn dict_len(_: &mut Context, dict: Dict) -> i64 {
    dict.map.len() as i64
}

extern "C" fn dict_keys(cx: &mut Context, dict: Dict) -> u64 {
    dict::keys(cx, dict)
}

extern "C" fn dict_values(cx: &mut Context, dict: Dict) -> u64 {
    dict::values(cx, dict)
}

extern "C" fn dict_items(cx: &mut Context, dict: Dict, items: i64) -> u64 {
    dict::items(cx, dict, items as TypeId)
}

extern "C" fn dict_delete(cx: &mut Context, dict: Own<DictObj>, key: u64, span: i64) -> u64 {
    dict::delete(cx, dict, key).unwrap_or_else(|(fault, dict)| {
        cx.fail(fault, span as u32);
        dict
    })
}

extern "C" fn dict_slot(cx: &mut Context, dict: &mut DictObj, key: u64, span: i64) -> i64 {
    let slot = dict::slot(cx, dict, key);
    settle(cx, span, slot)
}

extern "C" fn dict_update(cx: &mut Context, dict: Own<DictObj>, more: Dict, span: i64) -> u64 {
    let updated = dict::update(cx, dict, more);
    settle_own(cx, span, updated)
}

extern "C" fn dict_clear(cx: &mut Context, dict: Own<DictObj>) -> u64 {
    dict::clear(cx, dict)
}

//! Lists.

use super::{rows, settle, settle_own};
use crate::context::Context;
use crate::list;
use crate::value::{ListObj, Own, TypeId, into_word, new_list};
use tessera_abi::rt::RtFn;

pub fn rows() -> Vec<(RtFn, *const u8)> {
    rows! {
        takes_1 list_len list_reversed list_clear list_reverse list_sum_float list_any list_all;
        takes_2 list_new list_sum_int list_min list_max;
        takes_3 list_push list_concat list_extend list_get list_repeat list_contains list_index list_count list_sorted list_sort list_remove list_delete list_slot;
        takes_4 list_insert range_list list_sorted_by;
        takes_5 list_slice;
    }
}

type List<'a> = &'a ListObj;

/// What was made of a list, or the list itself after a failure.
fn kept(cx: &mut Context, list: Own<ListObj>, span: i64, at: Result<usize, crate::fault::Fault>) -> u64 {
    match at {
        Ok(at) => list::remove_at(cx, list.unbox(), at),
        Err(fault) => {
            cx.fail(fault, span as u32);
            list.word()
        }
    }
}

extern "C" fn list_new(cx: &mut Context, elem: i64, capacity: i64) -> u64 {
    new_list(&cx.types, elem as TypeId, Vec::with_capacity(capacity.clamp(0, 1 << 20) as usize))
}

extern "C" fn list_push(cx: &mut Context, list: Own<ListObj>, word: u64, span: i64) -> u64 {
    settle_own(cx, span, list::push(list, word))
}

extern "C" fn list_len(_: &mut Context, list: List) -> i64 {
    list.words().len() as i64
}

extern "C" fn list_get(cx: &mut Context, list: List, index: i64, span: i64) -> u64 {
    settle(cx, span, list::get(list, index))
}

extern "C" fn list_concat(cx: &mut Context, a: List, b: List, span: i64) -> u64 {
    let whole = list::concat(cx, a, b);
    settle(cx, span, whole)
}

extern "C" fn list_repeat(cx: &mut Context, list: List, times: i64, span: i64) -> u64 {
    let repeated = list::repeat(cx, list, times);
    settle(cx, span, repeated)
}

extern "C" fn list_slice(cx: &mut Context, list: List, start: i64, stop: i64, step: i64, span: i64) -> u64 {
    let slice = list::slice(cx, list, start, stop, step);
    settle(cx, span, slice)
}

extern "C" fn list_contains(cx: &mut Context, list: List, word: u64, _span: i64) -> i64 {
    i64::from(list::contains(cx, list, word))
}

extern "C" fn list_index(cx: &mut Context, list: List, word: u64, span: i64) -> i64 {
    let index = list::index(cx, list, word).map(|i| i as i64);
    settle(cx, span, index)
}

extern "C" fn list_count(cx: &mut Context, list: List, word: u64, _span: i64) -> i64 {
    list::occurrences(cx, list, word)
}

extern "C" fn list_sorted(cx: &mut Context, list: List, reverse: i64, _span: i64) -> u64 {
    list::sorted(cx, list, reverse != 0)
}

extern "C" fn list_reversed(cx: &mut Context, list: List) -> u64 {
    list::reversed(cx, list)
}

extern "C" fn list_insert(cx: &mut Context, list: Own<ListObj>, index: i64, word: u64, span: i64) -> u64 {
    settle_own(cx, span, list::insert(list, index, word))
}

extern "C" fn list_extend(cx: &mut Context, list: Own<ListObj>, more: List, span: i64) -> u64 {
    settle_own(cx, span, list::extend(list, more))
}

extern "C" fn list_clear(cx: &mut Context, list: Own<ListObj>) -> u64 {
    list::clear(cx, list.unbox())
}

extern "C" fn list_reverse(_: &mut Context, list: Own<ListObj>) -> u64 {
    let mut list = list.unbox();
    list.edit(|words| words.reverse());
    into_word(list)
}

extern "C" fn list_sort(cx: &mut Context, list: Own<ListObj>, reverse: i64, _span: i64) -> u64 {
    let mut list = list.unbox();
    list::sort(cx, &mut list, reverse != 0);
    into_word(list)
}

extern "C" fn list_remove(cx: &mut Context, list: Own<ListObj>, word: u64, span: i64) -> u64 {
    let at = list::index(cx, list.get(), word);
    kept(cx, list, span, at)
}

extern "C" fn list_delete(cx: &mut Context, list: Own<ListObj>, index: i64, span: i64) -> u64 {
    let at = crate::slice::position(index, list.get().words().len(), "list");
    kept(cx, list, span, at)
}

extern "C" fn list_slot(cx: &mut Context, list: List, index: i64, span: i64) -> i64 {
    settle(cx, span, list::slot(list, index))
}

extern "C" fn range_list(cx: &mut Context, start: i64, stop: i64, step: i64, span: i64) -> u64 {
    let range = list::range(cx, start, stop, step);
    settle(cx, span, range)
}

extern "C" fn list_sum_int(cx: &mut Context, list: List, span: i64) -> i64 {
    settle(cx, span, list::sum_int(list))
}

extern "C" fn list_sum_float(_: &mut Context, list: List) -> f64 {
    list::sum_float(list)
}

extern "C" fn list_min(cx: &mut Context, list: List, span: i64) -> u64 {
    let word = list::extreme(cx, list, false);
    settle(cx, span, word)
}

extern "C" fn list_max(cx: &mut Context, list: List, span: i64) -> u64 {
    let word = list::extreme(cx, list, true);
    settle(cx, span, word)
}

extern "C" fn list_any(_: &mut Context, list: List) -> i64 {
    i64::from(list.words().iter().any(|&w| w != 0))
}

extern "C" fn list_all(_: &mut Context, list: List) -> i64 {
    i64::from(list.words().iter().all(|&w| w != 0))
}

extern "C" fn list_sorted_by(cx: &mut Context, list: List, keys: List, reverse: i64, span: i64) -> u64 {
    let sorted = list::sorted_by(cx, list, keys, reverse != 0);
    settle(cx, span, sorted)
}

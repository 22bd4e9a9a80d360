//! Operations on lists.

use crate::context::Context;
use crate::fault;
use crate::fault::{Fault, check_memory};
use crate::order::{compare, equal};
use crate::show::repr;
use crate::slice::position;
use crate::value::{ListObj, Own, TypeInfo, TypeTable, into_word, new_list, retain_word};
use tessera_abi::check::Check;

/// One more owner of an element.
fn shared(list: &ListObj, word: u64) -> u64 {
    if list.counted {
        // SAFETY: elements of a counted type are live objects.
        unsafe { retain_word(word) }
    }
    word
}

/// A list of the same type, with words that are shared with `list`.
fn like(cx: &Context, list: &ListObj, words: impl Iterator<Item = u64>) -> u64 {
    new_list(&cx.types, list.elem, words.map(|w| shared(list, w)).collect())
}

pub fn get(list: &ListObj, index: i64) -> Result<u64, Fault> {
    Ok(shared(list, list.words()[position(index, list.words().len(), "list")?]))
}

/// The list for changing, with room for more elements; the list as it is where there is none.
fn grown(list: Own<ListObj>, more: usize) -> Result<Box<ListObj>, (Fault, u64)> {
    if let Err(fault) = fault::room(list.copied_bytes()) {
        return Err((fault, list.word()));
    }
    let mut list = list.unbox();
    match list.edit(|words| fault::reserve(words, more)) {
        Ok(()) => Ok(list),
        Err(fault) => Err((fault, into_word(list))),
    }
}

pub fn push(list: Own<ListObj>, word: u64) -> Result<u64, (Fault, u64)> {
    let mut list = grown(list, 1)?;
    let word = shared(&list, word);
    list.edit(|words| words.push(word));
    Ok(into_word(list))
}

pub fn concat(cx: &Context, a: &ListObj, b: &ListObj) -> Result<u64, Fault> {
    check_memory(a.words().len() as u128 + b.words().len() as u128, 8)?;
    Ok(like(cx, a, a.words().iter().chain(b.words()).copied()))
}

pub fn repeat(cx: &Context, list: &ListObj, times: i64) -> Result<u64, Fault> {
    // Nothing, however often, is nothing.
    let times = if list.words().is_empty() { 0 } else { times.max(0) as usize };
    check_memory(list.words().len() as u128 * 8, times as u128)?;
    Ok(like(cx, list, std::iter::repeat_n(list.words(), times).flatten().copied()))
}

pub fn slice(cx: &Context, list: &ListObj, start: i64, stop: i64, step: i64) -> Result<u64, Fault> {
    let range = crate::slice::slice(start, stop, step, list.words().len())?;
    check_memory(range.count as u128, 8)?;
    Ok(like(cx, list, range.positions().map(|p| list.words()[p])))
}

fn find(cx: &Context, list: &ListObj, word: u64) -> Option<usize> {
    list.words().iter().position(|&w| equal(cx, w, word, list.elem))
}

pub fn contains(cx: &Context, list: &ListObj, word: u64) -> bool {
    find(cx, list, word).is_some()
}

/// The position of the first equal element.
pub fn index(cx: &Context, list: &ListObj, word: u64) -> Result<usize, Fault> {
    find(cx, list, word).ok_or_else(|| {
        let mut text = String::new();
        repr(cx, word, list.elem, &mut text);
        Fault::new(711, format!("{text} is not in the list"))
    })
}

pub fn occurrences(cx: &Context, list: &ListObj, word: u64) -> i64 {
    list.words().iter().filter(|&&w| equal(cx, w, word, list.elem)).count() as i64
}

/// Stable; NaN last.
pub fn sort(cx: &Context, list: &mut ListObj, reverse: bool) {
    let elem = list.elem;
    list.edit(|words| match cx.types.get(elem) {
        TypeInfo::Int if !reverse => words.sort_unstable_by_key(|&w| w as i64),
        _ if reverse => words.sort_by(|&a, &b| compare(cx, b, a, elem)),
        _ => words.sort_by(|&a, &b| compare(cx, a, b, elem)),
    });
}

pub fn sorted(cx: &Context, list: &ListObj, reverse: bool) -> u64 {
    let word = like(cx, list, list.words().iter().copied());
    // SAFETY: a list that was just made.
    let mut copy = unsafe { crate::value::Own::<ListObj>::of(word) }.unbox();
    sort(cx, &mut copy, reverse);
    into_word(copy)
}

/// In the order of the keys, stable.
pub fn sorted_by(cx: &Context, list: &ListObj, keys: &ListObj, reverse: bool) -> Result<u64, Fault> {
    let (words, keys, key_type) = (list.words(), keys.words(), keys.elem);
    if words.len() != keys.len() {
        return Err(Fault::new(708, format!("{} keys for {} elements", keys.len(), words.len())));
    }
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = if reverse { (b, a) } else { (a, b) };
        compare(cx, keys[a], keys[b], key_type)
    });
    Ok(like(cx, list, order.into_iter().map(|i| words[i])))
}

pub fn reversed(cx: &Context, list: &ListObj) -> u64 {
    like(cx, list, list.words().iter().rev().copied())
}

/// Before the position, which is clamped.
pub fn insert(list: Own<ListObj>, index: i64, word: u64) -> Result<u64, (Fault, u64)> {
    let mut list = grown(list, 1)?;
    let word = shared(&list, word);
    let len = list.words().len() as i64;
    let at = if index < 0 { index.saturating_add(len).max(0) } else { index.min(len) };
    list.edit(|words| words.insert(at as usize, word));
    Ok(into_word(list))
}

pub fn extend(list: Own<ListObj>, more: &ListObj) -> Result<u64, (Fault, u64)> {
    let mut list = grown(list, more.words().len())?;
    list.edit(|words| words.extend(more.words().iter().map(|&w| shared(more, w))));
    Ok(into_word(list))
}

pub fn clear(cx: &mut Context, mut list: Box<ListObj>) -> u64 {
    let elem = list.elem;
    for word in list.edit(std::mem::take) {
        cx.release(word, elem);
    }
    into_word(list)
}

/// Without the element at a position that is in range.
pub fn remove_at(cx: &mut Context, mut list: Box<ListObj>, at: usize) -> u64 {
    let gone = list.edit(|words| words.remove(at));
    cx.release(gone, list.elem);
    into_word(list)
}

/// `list(range(start, stop, step))`.
pub fn range(cx: &Context, start: i64, stop: i64, step: i64) -> Result<u64, Fault> {
    let zero = || crate::math::step_zero();
    let n = tessera_abi::slice::count(start, stop, step).ok_or_else(zero)?;
    check_memory(n.into(), 8)?;
    let words = (0..n as i64).map(|i| start.wrapping_add(i.wrapping_mul(step)) as u64).collect();
    Ok(new_list(&cx.types, TypeTable::INT, words))
}

/// From left to right, each step an int.
pub fn sum_int(list: &ListObj) -> Result<i64, Fault> {
    list.words().iter().try_fold(0i64, |sum, &w| {
        sum.checked_add(w as i64).ok_or_else(|| crate::math::refused(Check::Add, [sum as u64, w]))
    })
}

/// Left to right, as Python up to 3.11 adds.
pub fn sum_float(list: &ListObj) -> f64 {
    list.words().iter().fold(0.0, |sum, &w| sum + f64::from_bits(w))
}

/// The first least (or greatest) element.
pub fn extreme(cx: &Context, list: &ListObj, greatest: bool) -> Result<u64, Fault> {
    let name = if greatest { "max" } else { "min" };
    let mut words = list.words().iter().copied();
    let first = words.next().ok_or_else(|| Fault::new(711, format!("`{name}` of an empty list")))?;
    let best = words.fold(first, |best, w| {
        let better = if greatest { less(cx, best, w, list) } else { less(cx, w, best, list) };
        if better { w } else { best }
    });
    Ok(shared(list, best))
}

fn less(cx: &Context, a: u64, b: u64, list: &ListObj) -> bool {
    match cx.types.get(list.elem) {
        TypeInfo::Float => f64::from_bits(a) < f64::from_bits(b),
        _ => compare(cx, a, b, list.elem).is_lt(),
    }
}

/// The address of an element's word.
pub fn slot(list: &ListObj, index: i64) -> Result<i64, Fault> {
    let at = position(index, list.words().len(), "list")?;
    Ok(&raw const list.words()[at] as i64)
}

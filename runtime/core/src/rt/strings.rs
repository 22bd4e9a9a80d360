//! Strings.

use super::{rows, settle, settle_own};
use crate::case;
use crate::context::Context;
use crate::fault::check_memory;
use crate::text::{self, Ends};
use crate::value::{ListObj, Own, StrObj, TypeTable, new_list, new_str};
use crate::{number, value};
use tessera_abi::rt::RtFn;

pub fn rows() -> Vec<(RtFn, *const u8)> {
    rows! {
        takes_1 str_len str_upper str_lower str_isdigit str_splitlines;
        takes_2 str_chars str_compare str_contains str_strip str_lstrip str_rstrip str_is str_case;
        takes_2 str_startswith str_endswith str_find str_rfind str_count str_to_int str_to_float chr ord;
        takes_3 str_concat str_append str_join str_repeat str_index str_split str_strip_chars str_index_of str_zfill;
        takes_4 str_split_max str_replace;
        takes_5 str_slice str_pad str_replace_count;
    }
}

type Str<'a> = &'a StrObj;

extern "C" fn str_concat(cx: &mut Context, a: Str, b: Str, span: i64) -> u64 {
    settle(cx, span, text::concat(a, b))
}

extern "C" fn str_append(cx: &mut Context, a: Own<StrObj>, b: Str, span: i64) -> u64 {
    settle_own(cx, span, a.append(b))
}

extern "C" fn str_repeat(cx: &mut Context, s: Str, times: i64, span: i64) -> u64 {
    settle(cx, span, text::repeat(s, times))
}

extern "C" fn str_len(_: &mut Context, s: Str) -> i64 {
    s.chars() as i64
}

extern "C" fn str_index(cx: &mut Context, s: Str, index: i64, span: i64) -> u64 {
    settle(cx, span, text::index(s, index))
}

extern "C" fn str_slice(cx: &mut Context, s: Str, start: i64, stop: i64, step: i64, span: i64) -> u64 {
    settle(cx, span, text::slice(s, start, stop, step))
}

extern "C" fn str_compare(_: &mut Context, a: Str, b: Str) -> i64 {
    text::compare(a.text(), b.text())
}

extern "C" fn str_contains(_: &mut Context, s: Str, part: Str) -> i64 {
    i64::from(s.text().contains(part.text()))
}

extern "C" fn str_split(cx: &mut Context, s: Str, separator: Option<Str>, span: i64) -> u64 {
    split(cx, s, separator.map(StrObj::text), -1, span)
}

/// An empty separator means white space.
extern "C" fn str_split_max(cx: &mut Context, s: Str, separator: Option<Str>, most: i64, span: i64) -> u64 {
    split(cx, s, separator.map(StrObj::text).filter(|t| !t.is_empty()), most, span)
}

fn split(cx: &mut Context, s: Str, separator: Option<&str>, most: i64, span: i64) -> u64 {
    let parts = text::split(s.text(), separator, most).map(|parts| new_list(&cx.types, TypeTable::STR, parts));
    settle(cx, span, parts)
}

extern "C" fn str_join(cx: &mut Context, separator: Str, parts: &ListObj, span: i64) -> u64 {
    // SAFETY: `join` takes a list of strings.
    let texts: Vec<&str> = parts.words().iter().map(|&w| unsafe { value::text(w) }).collect();
    let whole: u128 = texts.iter().map(|t| t.len() as u128).sum();
    let between = separator.text().len() as u128 * texts.len().saturating_sub(1) as u128;
    let joined = check_memory(whole + between, 1).map(|()| new_str(texts.join(separator.text())));
    settle(cx, span, joined)
}

extern "C" fn str_strip(_: &mut Context, s: Str, set: Option<Str>) -> u64 {
    new_str(text::strip(s.text(), set.map(StrObj::text), Ends::Both))
}

extern "C" fn str_lstrip(_: &mut Context, s: Str, set: Option<Str>) -> u64 {
    new_str(text::strip(s.text(), set.map(StrObj::text), Ends::Left))
}

extern "C" fn str_rstrip(_: &mut Context, s: Str, set: Option<Str>) -> u64 {
    new_str(text::strip(s.text(), set.map(StrObj::text), Ends::Right))
}

/// An empty set means white space. 0 both ends, 1 start, 2 end.
extern "C" fn str_strip_chars(_: &mut Context, s: Str, set: Option<Str>, ends: i64) -> u64 {
    let ends = match ends {
        1 => Ends::Left,
        2 => Ends::Right,
        _ => Ends::Both,
    };
    new_str(text::strip(s.text(), set.map(StrObj::text).filter(|t| !t.is_empty()), ends))
}

extern "C" fn str_replace_count(cx: &mut Context, s: Str, old: Str, new: Str, most: i64, span: i64) -> u64 {
    settle(cx, span, text::replace(s.text(), old.text(), new.text(), most).map(new_str))
}

extern "C" fn str_replace(cx: &mut Context, s: Str, old: Str, new: Str, span: i64) -> u64 {
    settle(cx, span, text::replace(s.text(), old.text(), new.text(), -1).map(new_str))
}

extern "C" fn str_startswith(_: &mut Context, s: Str, part: Str) -> i64 {
    i64::from(s.text().starts_with(part.text()))
}

extern "C" fn str_endswith(_: &mut Context, s: Str, part: Str) -> i64 {
    i64::from(s.text().ends_with(part.text()))
}

extern "C" fn str_upper(_: &mut Context, s: Str) -> u64 {
    new_str(s.text().to_uppercase())
}

extern "C" fn str_lower(_: &mut Context, s: Str) -> u64 {
    new_str(s.text().to_lowercase())
}

extern "C" fn str_find(_: &mut Context, s: Str, part: Str) -> i64 {
    text::find(s, part.text())
}

extern "C" fn str_count(_: &mut Context, s: Str, part: Str) -> i64 {
    text::occurrences(s, part.text())
}

extern "C" fn str_isdigit(_: &mut Context, s: Str) -> i64 {
    i64::from(case::test(s.text(), 0))
}

extern "C" fn str_is(_: &mut Context, s: Str, test: i64) -> i64 {
    i64::from(case::test(s.text(), test))
}

extern "C" fn str_case(_: &mut Context, s: Str, case: i64) -> u64 {
    new_str(case::convert(s.text(), case))
}

extern "C" fn str_pad(cx: &mut Context, s: Str, width: i64, fill: Str, side: i64, span: i64) -> u64 {
    settle(cx, span, case::pad(s, width, fill, side))
}

extern "C" fn str_zfill(cx: &mut Context, s: Str, width: i64, span: i64) -> u64 {
    settle(cx, span, case::zero_fill(s, width))
}

extern "C" fn str_chars(cx: &mut Context, s: Str, span: i64) -> u64 {
    // Each is an object with a text of its own.
    let room = check_memory(s.chars() as u128, size_of::<StrObj>() as u128 + 16);
    let list = room.map(|()| new_list(&cx.types, TypeTable::STR, case::characters(s.text())));
    settle(cx, span, list)
}

extern "C" fn str_rfind(_: &mut Context, s: Str, part: Str) -> i64 {
    text::rfind(s, part.text())
}

extern "C" fn str_index_of(cx: &mut Context, s: Str, part: Str, span: i64) -> i64 {
    settle(cx, span, text::position_of(s, part.text()))
}

extern "C" fn str_splitlines(cx: &mut Context, s: Str) -> u64 {
    new_list(&cx.types, TypeTable::STR, text::splitlines(s.text()))
}

extern "C" fn str_to_int(cx: &mut Context, s: Str, span: i64) -> i64 {
    settle(cx, span, number::parse_int(s.text()))
}

extern "C" fn str_to_float(cx: &mut Context, s: Str, span: i64) -> f64 {
    settle(cx, span, number::parse_float(s.text()))
}

extern "C" fn chr(cx: &mut Context, code: i64, span: i64) -> u64 {
    settle(cx, span, text::chr(code))
}

extern "C" fn ord(cx: &mut Context, s: Str, span: i64) -> i64 {
    settle(cx, span, text::ord(s.text()))
}

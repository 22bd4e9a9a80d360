//! Operations on strings. Lengths and positions count characters.

use crate::fault;
use crate::fault::{Fault, check_memory};
use crate::number::{is_space, quoted};
use crate::slice::position;
use crate::value::{StrObj, new_str, new_str_counted};

/// The byte at which a character starts; the length in bytes for one past the end.
fn byte_at(s: &StrObj, character: usize) -> usize {
    if s.is_ascii() {
        return character.min(s.text().len());
    }
    s.text().char_indices().nth(character).map_or(s.text().len(), |(i, _)| i)
}

pub fn concat(a: &StrObj, b: &StrObj) -> Result<u64, Fault> {
    let mut text = String::new();
    fault::reserve_text(&mut text, a.text().len() + b.text().len())?;
    text.push_str(a.text());
    text.push_str(b.text());
    Ok(new_str_counted(text, a.chars() + b.chars()))
}

pub fn repeat(s: &StrObj, times: i64) -> Result<u64, Fault> {
    let times = times.max(0) as usize;
    check_memory(s.text().len() as u128, times as u128)?;
    Ok(new_str_counted(s.text().repeat(times), s.chars() * times))
}

/// One character as a string.
pub fn index(s: &StrObj, index: i64) -> Result<u64, Fault> {
    let start = byte_at(s, position(index, s.chars(), "string")?);
    let c: String = s.text()[start..].chars().take(1).collect();
    Ok(new_str_counted(c, 1))
}

pub fn slice(s: &StrObj, start: i64, stop: i64, step: i64) -> Result<u64, Fault> {
    let range = crate::slice::slice(start, stop, step, s.chars())?;
    let count = range.count as usize;
    if range.step == 1 {
        let from = byte_at(s, range.start as usize);
        let to = if s.is_ascii() { from + count } else { byte_at(s, range.start as usize + count) };
        return Ok(new_str_counted(s.text()[from..to].to_string(), count));
    }
    let text: String = if s.is_ascii() {
        range.positions().map(|p| s.text().as_bytes()[p] as char).collect()
    } else {
        let chars: Vec<char> = s.text().chars().collect();
        range.positions().map(|p| chars[p]).collect()
    };
    Ok(new_str_counted(text, count))
}

/// By code points, which is the order of the UTF-8 bytes.
pub fn compare(a: &str, b: &str) -> i64 {
    a.cmp(b) as i64
}

/// The parts between separators, at most `most` splits (all of them if negative); without a
/// separator, the words between white space.
pub fn split(s: &str, separator: Option<&str>, most: i64) -> Result<Vec<u64>, Fault> {
    let parts = usize::try_from(most).map_or(usize::MAX, |n| n.saturating_add(1));
    match separator {
        Some("") => Err(Fault::new(711, "the separator of `split` is empty")),
        Some(by) => Ok(s.splitn(parts, by).map(new_str).collect()),
        None => Ok(words(s, parts)),
    }
}

/// Words between white space; the last of `parts` is the rest.
fn words(s: &str, parts: usize) -> Vec<u64> {
    let mut out = vec![];
    let mut rest = s.trim_start_matches(is_space);
    while !rest.is_empty() {
        if out.len() + 1 == parts {
            out.push(new_str(rest.trim_end_matches(is_space)));
            break;
        }
        let (word, after) = rest.split_at(rest.find(is_space).unwrap_or(rest.len()));
        out.push(new_str(word));
        rest = after.trim_start_matches(is_space);
    }
    out
}

/// With occurrences replaced, at most `most` of them (all if negative).
pub fn replace(s: &str, old: &str, new: &str, most: i64) -> Result<String, Fault> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let places = s.matches(old).take(most).count();
    check_memory(s.len() as u128 + places as u128 * new.len().saturating_sub(old.len()) as u128, 1)?;
    Ok(s.replacen(old, new, most))
}

/// The lines without their ends; an end at the end of the text opens no further line.
pub fn splitlines(s: &str) -> Vec<u64> {
    let mut lines = vec![];
    let mut rest = s;
    let is_end =
        |c: char| matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
    while let Some(end) = rest.find(is_end) {
        lines.push(new_str(&rest[..end]));
        let after = &rest[end..];
        let skip = if after.starts_with("\r\n") { 2 } else { after.chars().next().map_or(1, char::len_utf8) };
        rest = &after[skip..];
    }
    if !rest.is_empty() {
        lines.push(new_str(rest));
    }
    lines
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    Both,
    Left,
    Right,
}

/// Without the characters of a set (white space by default) at the ends.
pub fn strip<'a>(s: &'a str, set: Option<&str>, ends: Ends) -> &'a str {
    let gone = |c: char| match set {
        Some(set) => set.contains(c),
        None => is_space(c),
    };
    match ends {
        Ends::Both => s.trim_matches(gone),
        Ends::Left => s.trim_start_matches(gone),
        Ends::Right => s.trim_end_matches(gone),
    }
}

/// Position of the first occurrence in characters, or -1.
pub fn find(s: &StrObj, wanted: &str) -> i64 {
    match s.text().find(wanted) {
        None => -1,
        Some(byte) if s.is_ascii() => byte as i64,
        Some(byte) => s.text()[..byte].chars().count() as i64,
    }
}

/// Position of the last occurrence in characters, or -1.
pub fn rfind(s: &StrObj, wanted: &str) -> i64 {
    s.text().rfind(wanted).map_or(-1, |byte| s.text()[..byte].chars().count() as i64)
}

/// [`find`] that fails where there is none.
pub fn position_of(s: &StrObj, wanted: &str) -> Result<i64, Fault> {
    match find(s, wanted) {
        -1 => Err(Fault::new(711, format!("{} does not occur in {}", quoted(wanted), quoted(s.text())))),
        at => Ok(at),
    }
}

/// Occurrences that do not overlap.
pub fn occurrences(s: &StrObj, wanted: &str) -> i64 {
    if wanted.is_empty() { s.chars() as i64 + 1 } else { s.text().matches(wanted).count() as i64 }
}

pub fn chr(code: i64) -> Result<u64, Fault> {
    let c = u32::try_from(code).ok().and_then(char::from_u32);
    c.map(|c| new_str_counted(c.to_string(), 1))
        .ok_or_else(|| Fault::new(711, format!("{code} is not the number of a character")))
}

pub fn ord(s: &str) -> Result<i64, Fault> {
    let mut chars = s.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c as i64),
        _ => Err(Fault::new(711, format!("`ord` takes one character, not {}", quoted(s)))),
    }
}

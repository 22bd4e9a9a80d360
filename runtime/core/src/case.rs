//! Strings by the classes of their characters: tests, case, padding.

use crate::fault::{Fault, check_memory};
use crate::number::is_space;
use crate::value::{StrObj, new_str, new_str_counted};

/// The tests by the numbers of the row `str_is`: 0 isdigit 1 isalpha 2 isalnum 3 isspace
/// 4 isupper 5 islower. An empty string passes none.
pub fn test(s: &str, number: i64) -> bool {
    let all = |class: fn(char) -> bool| !s.is_empty() && s.chars().all(class);
    match number {
        0 => all(is_digit),
        1 => all(char::is_alphabetic),
        2 => all(char::is_alphanumeric),
        3 => all(is_space),
        4 => s.chars().any(char::is_uppercase) && !s.chars().any(char::is_lowercase),
        5 => s.chars().any(char::is_lowercase) && !s.chars().any(char::is_uppercase),
        _ => false,
    }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || (!c.is_ascii() && c.is_numeric())
}

/// By the numbers of the row `str_case`: 0 upper 1 lower 2 title 3 capitalize.
pub fn convert(s: &str, number: i64) -> String {
    match number {
        0 => s.to_uppercase(),
        1 => s.to_lowercase(),
        2 => words(s, |before| !before.is_some_and(char::is_alphabetic)),
        _ => words(s, |before| before.is_none()),
    }
}

/// Upper case where `starts` says so of the character before, lower case elsewhere.
fn words(s: &str, starts: fn(Option<char>) -> bool) -> String {
    let mut out = String::with_capacity(s.len());
    let mut before = None;
    for c in s.chars() {
        if starts(before) {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        before = Some(c);
    }
    out
}

/// 0 ljust, 1 rjust, 2 center.
pub fn pad(s: &StrObj, width: i64, fill: &StrObj, side: i64) -> Result<u64, Fault> {
    let mut fills = fill.text().chars();
    let (Some(fill), None) = (fills.next(), fills.next()) else {
        return Err(Fault::new(711, "the fill of a padded string is one character"));
    };
    let missing = (width.max(0) as usize).saturating_sub(s.chars());
    check_memory(missing as u128, fill.len_utf8() as u128)?;
    let left = match side {
        0 => 0,
        1 => missing,
        // As in CPython: the odd one goes left where the width is odd.
        _ => missing / 2 + (missing & width as usize & 1),
    };
    let mut out: String = std::iter::repeat_n(fill, left).collect();
    out.push_str(s.text());
    out.extend(std::iter::repeat_n(fill, missing - left));
    Ok(new_str_counted(out, s.chars() + missing))
}

/// Zeros on the left, after a sign.
pub fn zero_fill(s: &StrObj, width: i64) -> Result<u64, Fault> {
    let missing = (width.max(0) as usize).saturating_sub(s.chars());
    check_memory(missing as u128, 1)?;
    let sign = usize::from(s.text().starts_with(['+', '-']));
    let (sign, rest) = s.text().split_at(sign);
    Ok(new_str_counted(format!("{sign}{}{rest}", "0".repeat(missing)), s.chars() + missing))
}

/// The characters as strings.
pub fn characters(s: &str) -> Vec<u64> {
    s.chars().map(new_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_cases() {
        assert!(test("12", 0) && !test("", 0) && !test("1a", 0));
        assert!(test("aé", 1) && test("a1", 2) && test(" \t", 3));
        assert!(test("A1", 4) && !test("Aa", 4) && !test("1", 4) && test("a", 5));
        assert_eq!(convert("they're bill's", 2), "They'Re Bill'S");
        assert_eq!(convert("hELLO wORLD", 3), "Hello world");
    }
}

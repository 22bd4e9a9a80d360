//! Words and marks of a PTX text, each with its place.

use crate::{Error, Kind};

/// A word, a mark or a string of the text.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub text: &'a str,
    /// Offset of the first byte.
    pub at: usize,
    pub line: u32,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

/// Splits the text; comments vanish here. `::` inside a word belongs to the word (`.L2::128B`), a single `:` is a mark.
pub fn tokens(text: &str) -> Result<Vec<Token<'_>>, Error> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == b'\n' {
            line += 1;
            at += 1;
        } else if byte.is_ascii_whitespace() {
            at += 1;
        } else if bytes[at..].starts_with(b"//") {
            while at < bytes.len() && bytes[at] != b'\n' {
                at += 1;
            }
        } else if bytes[at..].starts_with(b"/*") {
            let end = text[at..].find("*/").ok_or_else(|| Error::text(line, "/*", "the comment has no end"))?;
            line += bytes[at..at + end].iter().filter(|b| **b == b'\n').count() as u32;
            at += end + 2;
        } else {
            let end = token_end(bytes, at).ok_or_else(|| {
                let what = text[at..].chars().next().map(String::from).unwrap_or_default();
                Error::text(line, &what, "unexpected character")
            })?;
            found.push(Token { text: &text[at..end], at, line });
            line += bytes[at..end].iter().filter(|b| **b == b'\n').count() as u32;
            at = end;
        }
    }
    Ok(found)
}

/// Where the token that starts at `at` ends; None for a byte no token starts with, or a string without an end.
fn token_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes[at] == b'"' {
        return bytes[at + 1..].iter().position(|b| *b == b'"').map(|n| at + n + 2);
    }
    if !is_word(bytes[at]) {
        return b"{}[]()<>,;:@!|+-=".contains(&bytes[at]).then_some(at + 1);
    }
    let mut end = at;
    while end < bytes.len() {
        if is_word(bytes[end]) {
            end += 1;
        } else if bytes[end..].starts_with(b"::") && bytes.get(end + 2).is_some_and(|b| is_word(*b)) {
            end += 2;
        } else {
            break;
        }
    }
    Some(end)
}

impl Error {
    /// The error of a wrong text.
    pub(crate) fn text(line: u32, statement: &str, what: &str) -> Error {
        Error { kind: Kind::Text, message: format!("line {line} `{statement}`: {what}") }
    }
}

/// An integer as PTX writes it: decimal, hexadecimal, octal or binary, with an optional `U`.
pub fn integer(word: &str) -> Option<u64> {
    let word = word.strip_suffix('U').unwrap_or(word);
    let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok();
    if let Some(digits) = word.strip_prefix("0x").or(word.strip_prefix("0X")) {
        return radix(digits, 16);
    }
    if let Some(digits) = word.strip_prefix("0b") {
        return radix(digits, 2);
    }
    if word.len() > 1 && word.starts_with('0') {
        return radix(&word[1..], 8);
    }
    word.bytes().all(|b| b.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}

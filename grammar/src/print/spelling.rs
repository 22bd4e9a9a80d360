//! The canonical spelling of numbers and strings.

use crate::{
    literal::quoted,
    token::{Tok, Token},
};
use std::borrow::Cow;

/// How a token is written.
pub(super) fn spelled<'t>(token: &Token, text: &'t str) -> Cow<'t, str> {
    let source = token.text(text);
    match token.kind {
        Tok::Number => number(source),
        Tok::Str => string(source),
        Tok::NotIn => "not in".into(),
        Tok::IsNot => "is not".into(),
        _ => source.into(),
    }
}

/// Small letters, except for hexadecimal digits.
fn number(source: &str) -> Cow<'_, str> {
    if !source.bytes().any(|b| b.is_ascii_alphabetic()) {
        return source.into();
    }
    let small = source.to_ascii_lowercase();
    match small.strip_prefix("0x") {
        Some(digits) => format!("0x{}", digits.to_ascii_uppercase()).into(),
        None => small.into(),
    }
}

/// A space between `#` and a word, none at the end. Marks such as `#!` and `#>` stay.
pub(super) fn comment(source: &str) -> Cow<'_, str> {
    let source = source.trim_end();
    match source[1..].chars().next() {
        Some(c) if c.is_alphanumeric() => format!("# {}", &source[1..]).into(),
        _ => source.into(),
    }
}

/// The prefix in small letters, without `u`.
fn prefix(source: &str) -> String {
    source.chars().filter(|c| !c.eq_ignore_ascii_case(&'u')).map(|c| c.to_ascii_lowercase()).collect()
}

fn string(source: &str) -> Cow<'_, str> {
    let parts = quoted(source, true);
    let prefix = prefix(parts.prefix);
    let raw = prefix.contains('r');
    match parts.quotes {
        "'" if !parts.body.contains('"') => {
            let body = if raw { None } else { Some(without_escaped_quotes(parts.body)) };
            // In a raw string a backslash before a quote stays part of the text.
            let body = match body {
                Some(body) => body,
                None if parts.body.contains('\'') => return format!("{prefix}'{}'", parts.body).into(),
                None => parts.body.to_string(),
            };
            format!("{prefix}\"{body}\"").into()
        }
        "'''" if !parts.body.contains('"') => format!("{prefix}\"\"\"{}\"\"\"", parts.body).into(),
        quotes => format!("{prefix}{quotes}{}{quotes}", parts.body).into(),
    }
}

/// `\'` needs no backslash between double quotes.
fn without_escaped_quotes(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    let mut chars = body.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\'')) => {}
            ('\\', Some(_)) => {
                out.push(c);
                out.extend(chars.next());
            }
            _ => out.push(c),
        }
    }
    out
}

/// A whole f-string, from its opening to its closing quote. Only the outer quotes change, and
/// only where nothing inside is a quote or a backslash.
pub(super) fn f_string(source: &str) -> String {
    let parts = quoted(source, true);
    let prefix = prefix(parts.prefix);
    let plain = !parts.body.contains(['"', '\'', '\\']);
    let quotes = match parts.quotes {
        "'" if plain => "\"",
        "'''" if plain => "\"\"\"",
        quotes => quotes,
    };
    format!("{prefix}{quotes}{}{quotes}", parts.body)
}

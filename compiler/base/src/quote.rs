//! Expressions of the program inside messages. Who writes a message knows spans, who shows it knows texts:
//! a message carries the span, and its text is put in when it is shown.

use crate::{ItemId, Span};
use std::borrow::Cow;

/// Around what stands for an expression. No text that a person writes has them.
const OPEN: char = '\u{2}';
const CLOSE: char = '\u{3}';

/// Longer expressions are called by their names in the text.
const CHARS_MAX: usize = 32;

/// A text in which `{NAME}` stands for the expression at a span. Names that are not given stay, without
/// their braces.
pub fn about(text: &str, names: &[(&str, Span)]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, name, after)) = next_name(rest) {
        out.push_str(before);
        match names.iter().find(|(n, span)| *n == name && !span.is_none()) {
            Some((_, s)) => out.push_str(&format!("{OPEN}{}:{}:{}:{name}{CLOSE}", s.item.0, s.start, s.end)),
            None => out.push_str(name),
        }
        rest = after;
    }
    out + rest
}

/// The next `{NAME}`, with what is before and behind it.
fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let is_name = |n: &str| {
        n.starts_with(|c: char| c.is_ascii_lowercase()) && n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    text.match_indices('{').find_map(|(at, _)| {
        let (name, after) = text[at + 1..].split_once('}')?;
        is_name(name).then_some((&text[..at], name, after))
    })
}

/// The text with its expressions, as `read` gives them: in parentheses where what follows needs it, and
/// by name where they are long or have several lines.
pub fn spelled<'a, 'b>(text: &'a str, read: impl Fn(Span) -> Option<&'b str>) -> Cow<'a, str> {
    if !text.contains(OPEN) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split(OPEN);
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let Some((token, after)) = part.split_once(CLOSE) else { continue };
        let mut fields = token.splitn(4, ':');
        let mut number = || fields.next().and_then(|n| n.parse().ok()).unwrap_or_default();
        let span = Span { item: ItemId(number()), start: number(), end: number() };
        let name = fields.next().unwrap_or("");
        let fits = |t: &&str| !t.is_empty() && t.chars().count() <= CHARS_MAX && !t.contains('\n');
        match read(span).filter(fits) {
            Some(expr) if after.starts_with(['.', '[', '(']) && !is_closed(expr) => out.push_str(&format!("({expr})")),
            // `w.T.T` is `w`.
            Some(expr) if after.starts_with(".T`") && expr.ends_with(".T") => {
                out.push_str(&expr[..expr.len() - 2]);
                out.push_str(&after[2..]);
                continue;
            }
            Some(expr) => out.push_str(expr),
            None => out.push_str(name),
        }
        out.push_str(after);
    }
    Cow::Owned(out)
}

/// Whether an attribute of the expression can be written right behind it.
fn is_closed(expr: &str) -> bool {
    let mut depth = 0;
    expr.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '(' | '['))
        && expr.chars().all(|c| {
            depth += i32::from(matches!(c, '(' | '[' | '{')) - i32::from(matches!(c, ')' | ']' | '}'));
            depth > 0 || c.is_alphanumeric() || matches!(c, '_' | '.' | ')' | ']' | '}')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_stand_in_messages_as_they_are_written() {
        let span = |start| Span { item: ItemId(7), start, end: start + 1 };
        let text =
            about("`{y}.T`, `{x}`, {z}, f\"{n:.2f}\", `{}`", &[("x", span(1)), ("y", span(2)), ("z", Span::NONE)]);
        let shown = |y| spelled(&text, |s| Some(if s.start == 1 { "a + b" } else { y })).into_owned();
        assert_eq!(shown("w"), "`w.T`, `a + b`, z, f\"{n:.2f}\", `{}`");
        assert_eq!(shown("f(a + b)[0].c"), "`f(a + b)[0].c.T`, `a + b`, z, f\"{n:.2f}\", `{}`");
        assert_eq!(shown("a @ b"), "`(a @ b).T`, `a + b`, z, f\"{n:.2f}\", `{}`");
        assert_eq!(shown("-a"), "`(-a).T`, `a + b`, z, f\"{n:.2f}\", `{}`");
        assert_eq!(shown("f(\n)"), "`y.T`, `a + b`, z, f\"{n:.2f}\", `{}`");
        assert_eq!(spelled(&text, |_| None), "`y.T`, `x`, z, f\"{n:.2f}\", `{}`");
        assert_eq!(spelled("plain {x}", |_| None), "plain {x}");
    }
}

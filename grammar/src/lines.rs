//! Logical lines: physical lines joined inside brackets and behind backslashes.
//!
//! A bracket that is never closed must not swallow the rest of the file. So at each line break
//! inside brackets this module asks whether the next line can still belong to the bracket, or
//! begins a statement.

use crate::token::{Tok, Token};
use std::ops::Range;

/// One logical line, as a range of the token buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// The first token that is not trivia.
    pub first: u32,
    /// One past the last token that is not trivia.
    pub end: u32,
    /// The bytes of white space before it.
    pub indent: Range<u32>,
    /// A bracket was still open where it was taken to end.
    pub unclosed: bool,
}

/// How a closing bracket meets the open ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Close {
    /// It closes the innermost one.
    Match,
    /// It closes one further out; so many inside it stay open.
    Through(usize),
    /// It is of another kind than the innermost, which it is taken to close.
    Wrong(Tok),
    /// Nothing is open.
    Stray,
}

/// The open brackets, each by its closer and a payload of the user.
#[derive(Default, Debug)]
pub struct Brackets<P> {
    pub stack: Vec<(Tok, P)>,
    f_strings: usize,
}

impl<P> Brackets<P> {
    pub fn new() -> Self {
        Brackets { stack: vec![], f_strings: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    pub fn in_f_string(&self) -> bool {
        self.f_strings > 0
    }

    pub fn open(&mut self, closer: Tok, payload: P) {
        self.f_strings += usize::from(closer == Tok::FEnd);
        self.stack.push((closer, payload));
    }

    pub fn pop(&mut self) -> Option<(Tok, P)> {
        let top = self.stack.pop()?;
        self.f_strings -= usize::from(top.0 == Tok::FEnd);
        Some(top)
    }

    /// What `closer` does here. The caller pops accordingly.
    pub fn close(&self, closer: Tok) -> Close {
        for (depth, (open, _)) in self.stack.iter().rev().enumerate() {
            if *open == closer {
                return if depth == 0 { Close::Match } else { Close::Through(depth) };
            }
            // An ordinary bracket cannot reach out of the braces of an f-string.
            if matches!(open, Tok::FEnd | Tok::FClose) && !matches!(closer, Tok::FEnd | Tok::FClose) {
                break;
            }
        }
        match self.stack.last() {
            Some((open, _)) if !matches!(open, Tok::FEnd | Tok::FClose) => Close::Wrong(*open),
            _ => Close::Stray,
        }
    }

    /// Keeps the stack right without saying anything.
    pub fn step(&mut self, kind: Tok, payload: P) {
        if let Some(closer) = kind.closer() {
            return self.open(closer, payload);
        }
        let kind = if kind == Tok::FBroken { Tok::FEnd } else { kind };
        if kind.is_closer() {
            let count = match self.close(kind) {
                Close::Match | Close::Wrong(_) => 1,
                Close::Through(n) => n + 1,
                Close::Stray => 0,
            };
            for _ in 0..count {
                self.pop();
            }
        }
    }
}

/// The width of indentation; a tab goes to the next multiple of eight, as in Python.
pub fn width(indent: &str) -> usize {
    indent.bytes().fold(0, |w, b| match b {
        b'\t' => w / 8 * 8 + 8,
        b'\x0C' => 0,
        _ => w + 1,
    })
}

/// Finds the logical lines. Linear time.
pub fn logical_lines(text: &str, tokens: &[Token]) -> Vec<Line> {
    let mut lines = Vec::with_capacity(tokens.len() / 8 + 1);
    let mut brackets: Brackets<()> = Brackets::new();
    let mut first: Option<usize> = None;
    let mut end = 0;
    let mut line_start = 0;
    let mut indent = 0..0;
    for (i, token) in tokens.iter().enumerate() {
        match token.kind {
            Tok::Space | Tok::Comment | Tok::Join => {}
            Tok::Break => {
                let Some(start) = first else {
                    line_start = token.end;
                    continue;
                };
                let unclosed = !brackets.is_empty();
                if unclosed
                    && (brackets.in_f_string() || !gives_up(text, tokens, start, &indent, end - 1, i, &brackets))
                {
                    continue;
                }
                brackets = Brackets::new();
                lines.push(Line { first: start as u32, end: end as u32, indent: indent.clone(), unclosed });
                first = None;
                line_start = token.end;
            }
            kind => {
                if first.is_none() {
                    first = Some(i);
                    let space = &text[line_start as usize..token.start as usize];
                    let blank = space.bytes().take_while(|b| matches!(b, b' ' | b'\t' | b'\x0C')).count() as u32;
                    indent = line_start..line_start + blank;
                }
                brackets.step(kind, ());
                end = i + 1;
            }
        }
    }
    if let Some(start) = first {
        lines.push(Line { first: start as u32, end: end as u32, indent, unclosed: !brackets.is_empty() });
    }
    lines
}

/// What one physical line looks like from a token on.
struct Shape {
    /// It closes a bracket that it did not open.
    closes: bool,
    /// It leaves one open that it opened.
    opens: bool,
    last: Tok,
    /// The token that ends it (its line break, or the number of tokens).
    stop: usize,
}

fn shape(tokens: &[Token], from: usize) -> Shape {
    let mut depth = 0i32;
    let mut shape = Shape { closes: false, opens: false, last: Tok::Bad, stop: tokens.len() };
    for (i, token) in tokens.iter().enumerate().skip(from) {
        match token.kind {
            Tok::Break => {
                shape.stop = i;
                break;
            }
            kind if kind.is_trivia() => continue,
            kind if kind.closer().is_some() => depth += 1,
            kind if kind.is_closer() => depth -= 1,
            _ => {}
        }
        shape.closes |= depth < 0;
        shape.last = token.kind;
    }
    shape.opens = depth > 0;
    shape
}

/// The next token that is not trivia.
fn next_word(tokens: &[Token], from: usize) -> Option<usize> {
    (from..tokens.len()).find(|i| !tokens[*i].kind.is_trivia())
}

/// Whether the physical line from `from` on ends with `:`, all its brackets closed: the head of a
/// block.
fn is_head(tokens: &[Token], from: usize) -> bool {
    let shape = shape(tokens, from);
    shape.last == Tok::Colon && !shape.closes && !shape.opens
}

/// Words that no expression contains.
fn is_statement(kind: Tok) -> bool {
    use Tok::*;
    kind.is_keyword()
        && !matches!(
            kind,
            As | If | Else | For | In | And | Or | Not | Is | Lambda | True | False | None_ | Async | Await | Yield
        )
}

/// Whether a line that begins so cannot go on with the expression of the line before. The end of
/// the text ([`Tok::Bad`]) counts.
fn begins_anew(kind: Tok) -> bool {
    is_statement(kind) || matches!(kind, Tok::Bad | Tok::Name | Tok::Number)
}

/// Whether the line behind the break `at` begins a statement although a bracket is open.
/// `first` begins the statement that holds the bracket, `last` is its latest token.
fn gives_up(
    text: &str,
    tokens: &[Token],
    first: usize,
    indent: &Range<u32>,
    last: usize,
    at: usize,
    brackets: &Brackets<()>,
) -> bool {
    use Tok::*;
    // Blank lines are passed over; the break before a word decides.
    let Some(next) = (at + 1..tokens.len()).find(|i| !matches!(tokens[*i].kind, Space | Comment | Join)) else {
        return false;
    };
    let kind = tokens[next].kind;
    if kind == Break || kind.is_closer() {
        return false;
    }
    if is_statement(kind) {
        return true;
    }
    if matches!(kind, If | For | Else) {
        return is_head(tokens, next);
    }
    let head = tokens[first].kind;
    let line = text[..tokens[next].start as usize].rfind(['\n', '\r']).map_or(0, |n| n + 1);
    let column = width(&text[line..tokens[next].start as usize]);
    let outside = column <= width(&text[indent.start as usize..indent.end as usize]);
    let header = head.opens_block();
    if !outside && !header {
        return false;
    }
    let shape = shape(tokens, next);
    let after = next_word(tokens, next + 1).map_or(Bad, |i| tokens[i].kind);
    let below = next_word(tokens, shape.stop);
    let next_line = below.map_or(Bad, |i| tokens[i].kind);
    let anew = begins_anew(next_line) || below.is_some_and(|i| matches!(next_line, If | For) && is_head(tokens, i));
    let whole = !shape.closes && !shape.opens && shape.last.ends_operand();
    match kind {
        At => return outside && matches!(next_line, Def | Struct | At),
        Name if after.is_aug_assign() => return true,
        Name if after == Assign && whole && anew => return true,
        Name if after == Colon && whole && outside && head != Def => {
            return brackets.stack.last().is_some_and(|(closer, ())| *closer == RParen);
        }
        _ => {}
    }
    // Two operands side by side are an error anyway; a bracket that was not closed explains it.
    let previous = tokens[last].kind;
    let adjacent = previous.ends_operand()
        && match kind {
            LParen | LBracket => false,
            Str | OpenStr | FStart => !matches!(previous, Str | OpenStr | FEnd | FBroken),
            _ => kind.begins_operand(),
        };
    adjacent && !shape.closes && (outside || shape.last != Comma)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    fn lines(text: &str) -> Vec<String> {
        let tokens = lex(text);
        let line = |l: &Line| {
            text[tokens[l.first as usize].start as usize..tokens[l.end as usize - 1].end as usize].to_string()
        };
        logical_lines(text, &tokens).iter().map(line).collect()
    }

    #[test]
    fn brackets_and_backslashes_join_lines() {
        assert_eq!(lines("a = [1,\n2] # c\n\n# note\nb\\\n+1\nc"), ["a = [1,\n2]", "b\\\n+1", "c"]);
        assert_eq!(lines("f(\nx=1,\ny=2\n)\ng"), ["f(\nx=1,\ny=2\n)", "g"]);
        assert_eq!(lines("x = [a\nfor a in b\nif a]"), ["x = [a\nfor a in b\nif a]"]);
        assert_eq!(lines("def f(\n  a=[\n    1\n  ],\n): b"), ["def f(\n  a=[\n    1\n  ],\n): b"]);
        assert_eq!(lines("m = [\n1, 2,\n3, 4\n]"), ["m = [\n1, 2,\n3, 4\n]"]);
    }

    #[test]
    fn an_open_bracket_ends_where_a_statement_begins() {
        assert_eq!(lines("y = (x + 2\nprint(y)"), ["y = (x + 2", "print(y)"]);
        assert_eq!(lines("f(a,\nb = 3\nc"), ["f(a,", "b = 3", "c"]);
        assert_eq!(lines("f(a,\n  b\ndef g(): pass"), ["f(a,\n  b", "def g(): pass"]);
        assert_eq!(lines("def f(a:\n    x = a\n    return x"), ["def f(a:", "x = a", "return x"]);
        assert_eq!(lines("x = [1, 2\nfor i in x:\n  i"), ["x = [1, 2", "for i in x:", "i"]);
        assert_eq!(
            lines("for i in f((4):\n  x = 0\n  for j in i:\n    y"),
            ["for i in f((4):", "x = 0", "for j in i:", "y"]
        );
        assert_eq!(lines("x = (1 +\n@op.kernel\ndef f(): pass"), ["x = (1 +", "@op.kernel", "def f(): pass"]);
        assert_eq!(lines("f(a\nx += 1"), ["f(a", "x += 1"]);
    }
}

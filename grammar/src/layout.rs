//! The layout pass: NEWLINE, INDENT and DEDENT, and tokens that are always well nested.
//!
//! Everything that concerns structure is reported and repaired here: indentation, brackets,
//! missing colons and blocks, characters that begin no token. So the grammar sees lines whose
//! brackets close and blocks that open and close, and can recover inside one line.

mod brackets;
mod indent;

use crate::{
    lines::{Brackets, logical_lines},
    token::{Tok, Token},
};
use std::ops::Range;
use tessera_base::{Code, Diagnostic, ItemId, Span};

/// What the grammar reads.
#[derive(Debug)]
pub struct Layout {
    /// Tokens without trivia, with those that the layout makes. Never empty.
    pub tokens: Vec<Token>,
    /// Where each logical line begins in `tokens`.
    pub lines: Vec<u32>,
    /// What was wrong, each with the token that it concerns.
    pub problems: Vec<(u32, Diagnostic)>,
}

impl Layout {
    /// The logical line that holds a token.
    pub fn line_of(&self, token: u32) -> usize {
        self.lines.partition_point(|first| *first <= token).saturating_sub(1)
    }

    /// The first token that begins at or behind a byte.
    pub fn token_at(&self, byte: u32) -> u32 {
        self.tokens.partition_point(|t| t.start < byte) as u32
    }

    /// The tokens of a logical line, without the marks at its end.
    pub fn line(&self, line: usize) -> Range<u32> {
        let start = self.lines.get(line).copied().unwrap_or(0);
        let stop = self.lines.get(line + 1).copied().unwrap_or(self.tokens.len() as u32);
        let mark = |t: &Token| matches!(t.kind, Tok::Newline | Tok::Indent | Tok::Dedent | Tok::Missing);
        let count = self.tokens[start as usize..stop as usize].iter().take_while(|t| !mark(t)).count();
        start..start + count as u32
    }
}

/// Lays `tokens` (from [`crate::token::lex`]) out. `start` is the marker put first.
pub fn layout(text: &str, tokens: &[Token], item: ItemId, start: Tok) -> Layout {
    let lines = logical_lines(text, tokens);
    let mut pass = Pass {
        text,
        item,
        out: Vec::with_capacity(tokens.len()),
        lines: Vec::with_capacity(lines.len() + 1),
        problems: vec![],
        levels: vec![indent::Level::default()],
        previous: None,
    };
    pass.out.push(Token { kind: start, start: 0, end: 0 });
    for line in &lines {
        pass.indent_line(line);
        pass.line(&tokens[line.first as usize..line.end as usize], line.unclosed);
    }
    pass.finish();
    Layout { tokens: pass.out, lines: pass.lines, problems: pass.problems }
}

/// The logical line before the current one.
#[derive(Clone, Copy)]
struct Previous {
    /// Its first token in `out`.
    first: usize,
    /// The last one that has a place in the text.
    last: usize,
    /// It has a `:` outside brackets that could end a header.
    colon: bool,
    /// It is reported already.
    flagged: bool,
}

struct Pass<'t> {
    text: &'t str,
    item: ItemId,
    out: Vec<Token>,
    lines: Vec<u32>,
    problems: Vec<(u32, Diagnostic)>,
    levels: Vec<indent::Level>,
    previous: Option<Previous>,
}

impl Pass<'_> {
    fn span(&self, start: u32, end: u32) -> Span {
        Span { item: self.item, start, end }
    }

    fn report(&mut self, token: usize, diagnostic: Diagnostic) {
        self.problems.push((token as u32, diagnostic));
    }

    /// The end of the last token: where made tokens stand.
    fn here(&self) -> u32 {
        self.out.last().map_or(0, |t| t.end)
    }

    fn made(&self, kind: Tok) -> Token {
        Token { kind, start: self.here(), end: self.here() }
    }

    fn push_made(&mut self, kind: Tok) {
        let token = self.made(kind);
        self.out.push(token);
    }

    /// Copies one logical line, mending what can be mended.
    fn line(&mut self, tokens: &[Token], unclosed: bool) {
        let first = self.out.len();
        let problems = self.problems.len();
        self.lines.push(first as u32);
        let mut brackets = Brackets::new();
        let mut colon = false;
        let mut lambdas = 0;
        for (i, token) in tokens.iter().enumerate() {
            if brackets.is_empty() {
                match token.kind {
                    Tok::Lambda => lambdas += 1,
                    Tok::Colon if lambdas > 0 => lambdas -= 1,
                    Tok::Colon => colon = true,
                    _ => {}
                }
            }
            self.token(*token, &tokens[i + 1..], first, &mut brackets);
        }
        if unclosed || !brackets.is_empty() {
            colon |= self.close_all(&mut brackets, first);
        }
        let flagged = self.problems.len() > problems;
        if self.out.len() == first {
            // Nothing of the line is left; the error stands for it.
            self.push_made(Tok::Missing);
        }
        self.previous = Some(Previous { first, last: self.out.len() - 1, colon, flagged });
        self.push_made(Tok::Newline);
    }

    fn token(&mut self, token: Token, rest: &[Token], first: usize, brackets: &mut Brackets<usize>) {
        let last = if self.out.len() > first { self.out.last_mut() } else { None };
        match token.kind {
            kind if kind.is_trivia() => {}
            Tok::In if last.as_ref().is_some_and(|t| t.kind == Tok::Not) => merge(last, Tok::NotIn, token.end),
            Tok::Not if last.as_ref().is_some_and(|t| t.kind == Tok::Is) => merge(last, Tok::IsNot, token.end),
            Tok::Bad => self.bad(token),
            Tok::AmpAmp => self.instead(token, Tok::And, "and"),
            Tok::BarBar => self.instead(token, Tok::Or, "or"),
            Tok::EqEqEq => self.instead(token, Tok::EqEq, "=="),
            Tok::NeEq | Tok::LtGt => self.instead(token, Tok::Ne, "!="),
            Tok::Bang => self.bang(token, rest),
            Tok::OpenStr | Tok::FBroken => self.open_string(token, brackets),
            kind if kind.closer().is_some() => {
                brackets.open(kind.closer().unwrap_or(Tok::Bad), self.out.len());
                self.out.push(token);
            }
            kind if kind.is_closer() => self.close(token, brackets),
            _ => self.out.push(token),
        }
    }

    /// An operator of another language, read as the one that was meant.
    fn instead(&mut self, token: Token, meant: Tok, word: &str) {
        let found = token.text(self.text);
        let span = self.span(token.start, token.end);
        let mut text = word.to_string();
        // `a&&b` needs spaces around the word.
        if word.starts_with(char::is_alphabetic) {
            let before = self.text[..token.start as usize].chars().next_back();
            let after = self.text[token.end as usize..].chars().next();
            text.insert_str(0, if before.is_some_and(|c| !c.is_whitespace()) { " " } else { "" });
            text.push_str(if after.is_some_and(|c| !c.is_whitespace()) { " " } else { "" });
        }
        let diagnostic = Diagnostic::new(Code::E0002, span, format!("`{found}` is not an operator of Tessera"))
            .here(format!("`{word}` is meant"))
            .fix(format!("write `{word}`"), span, text);
        self.report(self.out.len(), diagnostic);
        self.out.push(Token { kind: meant, ..token });
    }

    fn bang(&mut self, token: Token, rest: &[Token]) {
        let next = rest.iter().find(|t| !t.kind.is_trivia()).map_or(Tok::Bad, |t| t.kind);
        let prefix =
            next.begins_operand() || matches!(next, Tok::Not | Tok::Minus | Tok::Plus | Tok::Tilde | Tok::Bang);
        let ends = self.out.last().is_some_and(|t| t.kind.ends_operand());
        if prefix && !ends {
            let span = self.span(token.start, token.end);
            let diagnostic = Diagnostic::new(Code::E0002, span, "`!` is not an operator of Tessera")
                .here("`not` is meant")
                .fix("write `not`", span, "not ");
            self.report(self.out.len(), diagnostic);
            self.out.push(Token { kind: Tok::Not, ..token });
        } else {
            self.bad(token);
        }
    }

    /// A character that begins no token is reported and left out.
    fn bad(&mut self, token: Token) {
        let found = token.text(self.text);
        let span = self.span(token.start, token.end);
        let mut diagnostic = Diagnostic::new(Code::E0001, span, format!("`{}` begins no token", found.escape_debug()));
        if let Some((plain, what)) = look_alike(found) {
            diagnostic.message = format!("`{}` is {what}", found.escape_debug());
            diagnostic = diagnostic.fix(format!("write `{plain}`"), span, plain);
        } else {
            diagnostic = match found {
                "?" => diagnostic.help("a choice between two values is written `a if test else b`"),
                "$" => diagnostic.help("names consist of letters, digits and `_`"),
                "`" => diagnostic.help("strings are written in `\"` or `'`"),
                "!" => diagnostic.help("negation is `not x`, inequality is `!=`"),
                "\\" => diagnostic.help("a backslash joins two lines only as the last character of a line"),
                _ => diagnostic.fix("remove it", span, ""),
            };
        }
        self.report(self.out.len(), diagnostic);
    }

    fn open_string(&mut self, token: Token, brackets: &mut Brackets<usize>) {
        let f_string = token.kind == Tok::FBroken;
        let opener = match brackets.stack.iter().rev().find(|(closer, _)| f_string && *closer == Tok::FEnd) {
            Some((_, at)) => self.out[*at],
            None => token,
        };
        let quotes = crate::literal::quoted(opener.text(self.text), false).quotes;
        let begin = opener.start + opener.text(self.text).find(quotes).unwrap_or(0) as u32;
        let span = self.span(begin, begin + quotes.len() as u32);
        let mut diagnostic =
            Diagnostic::new(Code::E0006, span, "this string does not end").here(format!("no closing `{quotes}`"));
        // Quotes that stand behind an open brace begin a string inside of it.
        let brace = brackets.stack.last().filter(|(closer, _)| *closer == Tok::FClose).map(|(_, at)| self.out[*at]);
        let quote = |from: Token| self.text.get(from.end as usize..token.end as usize)?.find(quotes);
        let inside = brace.and_then(|b| match f_string {
            true => Some((b, b.end + quote(b)? as u32)),
            false => Some((b, token.start)),
        });
        diagnostic = if let Some((brace, close)) = inside {
            let open = Diagnostic::new(Code::E0006, self.span(brace.start, brace.end), "this brace is not closed");
            open.fix("close it with `}`", self.span(close, close), "}")
        } else if quotes.len() == 3 {
            diagnostic.help(format!("close it with `{quotes}`"))
        } else {
            let line_end = token.end;
            diagnostic
                .fix(format!("close it with `{quotes}`"), self.span(line_end, line_end), quotes)
                .help(format!("a string over several lines stands between `{0}{0}{0}` and `{0}{0}{0}`", quotes))
        };
        self.report(self.out.len(), diagnostic);
        if f_string {
            self.close_quietly(Token { kind: Tok::FEnd, ..token }, brackets);
        } else {
            self.out.push(token);
        }
    }
}

fn merge(last: Option<&mut Token>, kind: Tok, end: u32) {
    if let Some(last) = last {
        last.kind = kind;
        last.end = end;
    }
}

/// The ASCII spelling of a character that editors and word processors put in its place.
fn look_alike(found: &str) -> Option<(&'static str, &'static str)> {
    Some(match found {
        "“" | "”" | "„" | "«" | "»" => ("\"", "a typographic quotation mark"),
        "‘" | "’" | "‚" | "´" => ("'", "a typographic quotation mark"),
        "−" | "–" | "—" => ("-", "a dash, not a minus sign"),
        "×" | "⋅" | "·" | "∗" => ("*", "a multiplication sign that Tessera does not read"),
        "÷" => ("/", "a division sign that Tessera does not read"),
        "≤" => ("<=", "a comparison sign that Tessera does not read"),
        "≥" => (">=", "a comparison sign that Tessera does not read"),
        "≠" => ("!=", "a comparison sign that Tessera does not read"),
        "→" => ("->", "an arrow that Tessera does not read"),
        "…" => ("...", "a typographic ellipsis"),
        "\u{A0}" | "\u{2009}" | "\u{202F}" | "\u{3000}" => (" ", "a space of another width"),
        "（" => ("(", "a full-width bracket"),
        "）" => (")", "a full-width bracket"),
        "，" => (",", "a full-width comma"),
        "：" => (":", "a full-width colon"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    fn run(text: &str) -> (String, Vec<String>) {
        let out = layout(text, &lex(text), ItemId(0), Tok::StartStmts);
        let word = |t: &Token| match t.kind {
            Tok::Newline => "NL".to_string(),
            Tok::Indent => "IN".into(),
            Tok::Dedent => "DE".into(),
            Tok::Missing => "MISSING".into(),
            kind if t.start == t.end => format!("<{kind:?}>"),
            _ => t.text(text).to_string(),
        };
        let words: Vec<String> = out.tokens[1..].iter().map(word).collect();
        (words.join(" "), out.problems.iter().map(|(_, d)| format!("{} {}", d.code, d.message)).collect())
    }

    fn clean(text: &str) -> String {
        let (words, problems) = run(text);
        assert_eq!(problems, Vec::<String>::new());
        words
    }

    #[test]
    fn blocks() {
        assert_eq!(clean("if a:\n    b\n\n    # c\n    d\ne\n"), "if a : IN b NL d NL DE e NL");
        assert_eq!(clean("def f():\n  if a:\n    b\n"), "def f ( ) : IN if a : IN b NL DE DE");
        assert_eq!(clean("x = [1,\n  2]\ny"), "x = [ 1 , 2 ] NL y NL");
        assert_eq!(clean("a not in b is not c"), "a not in b is not c NL");
    }

    fn one(text: &str, code: &str, words: &str) {
        let (found, problems) = run(text);
        assert_eq!(problems.len(), 1, "{text:?}: {problems:?}");
        assert!(problems[0].starts_with(code), "{text:?}: {problems:?}");
        assert_eq!(found, words, "{text:?}");
    }

    #[test]
    fn broken_layout_is_reported_once_and_mended() {
        one("if a\n  b\n", "E0008", "if a <BlockColon> IN b NL DE");
        one("if a:\nb\n", "E0004", "if a : IN MISSING NL DE b NL");
        one("if a:\n", "E0004", "if a : IN MISSING NL DE");
        one("a\n  b\n  c\nd", "E0004", "a NL b NL c NL d NL");
        one("  a\nb", "E0004", "a NL b NL");
        one("if a:\n    b\n  c\n  d\ne", "E0004", "if a : IN b NL c NL d NL DE e NL");
        one("if a:\n\tb\n        c\n        d\ne", "E0005", "if a : IN b NL c NL d NL DE e NL");
        one("(a]\nb", "E0003", "( a ] NL b NL");
        one("([a)\nb", "E0003", "( [ a <RBracket> ) NL b NL");
        one("a)\nb", "E0003", "a NL b NL");
        one("y = (x\nprint(y)", "E0003", "y = ( x <RParen> NL print ( y ) NL");
        one("def f(a:\n    return a", "E0003", "def f ( a <RParen> : IN return a NL DE");
        one("a && b", "E0002", "a && b NL");
        one("!a", "E0002", "! a NL");
        one("a $ b", "E0001", "a b NL");
        one("$", "E0001", "MISSING NL");
        one("x = 'abc\ny", "E0006", "x = 'abc NL y NL");
        one("x = f'a{b}\ny", "E0006", "x = f' a { b } <FEnd> NL y NL");
    }
}

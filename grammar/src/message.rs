//! Syntax errors in words: what was meant, never what the parser expected.
//!
//! A rule looks at the tokens around the place where the grammar could not go on. The first
//! rule that knows the mistake speaks; the last one always does.

mod blocks;
mod collections;
mod operands;
mod signs;
mod words;

use crate::{
    layout::Layout,
    token::Tok,
    tree::{Found, Tree},
};
use lalrpop_util::ParseError;
use std::ops::Range;
use tessera_base::{Code, Diagnostic, Span};

/// The token that an error concerns.
pub fn error_token(layout: &Layout, found: &Found) -> u32 {
    let last = layout.tokens.len().saturating_sub(1) as u32;
    match found {
        Found::Said(at, _) => *at,
        Found::Syntax(
            ParseError::UnrecognizedToken { token: (at, _, _), .. } | ParseError::ExtraToken { token: (at, _, _) },
        ) => *at,
        Found::Syntax(_) => last,
    }
}

/// What a rule makes of an error.
pub(crate) enum Verdict {
    Say(Diagnostic),
    /// It follows from an error that is reported elsewhere.
    Silent,
}

type Rule = fn(&Site) -> Option<Verdict>;

/// In the order in which they are asked.
const RULES: &[Rule] = &[
    words::foreign_keyword,
    words::foreign_statement,
    words::print_statement,
    blocks::else_if,
    blocks::orphan,
    blocks::decorator,
    blocks::field,
    signs::walrus,
    signs::fat_arrow,
    signs::torn_operator,
    signs::increment,
    words::reserved_name,
    collections::set_or_dict,
    collections::spread,
    collections::generator,
    collections::empty_index,
    collections::keyword_colon,
    blocks::import,
    blocks::for_header,
    blocks::signature,
    blocks::lambda,
    signs::equals,
    operands::conditional,
    operands::missing,
    blocks::missing_colon,
    blocks::unwanted_colon,
    words::statement_inside,
    operands::adjacent,
];

/// Puts the error at token `at` into words; nothing if another error explains it.
pub fn explain(tree: &Tree, at: u32) -> Option<Diagnostic> {
    let line = tree.layout.line(tree.layout.line_of(at));
    let site = Site { tree, at, line };
    for rule in RULES {
        match rule(&site) {
            Some(Verdict::Say(diagnostic)) => return Some(diagnostic),
            Some(Verdict::Silent) => return None,
            None => {}
        }
    }
    Some(operands::unexpected(&site))
}

/// The surroundings of an error.
pub(crate) struct Site<'a, 't> {
    pub tree: &'a Tree<'t>,
    /// Where the grammar could not go on.
    pub at: u32,
    /// The tokens of the logical line, without the marks at its end.
    pub line: Range<u32>,
}

impl<'t> Site<'_, 't> {
    /// The kind of a token; [`Tok::Newline`] for whatever ends the line.
    pub fn kind(&self, at: u32) -> Tok {
        match self.tree.layout.tokens.get(at as usize).map(|t| t.kind) {
            Some(Tok::Indent | Tok::Dedent | Tok::Missing) | None => Tok::Newline,
            Some(kind) => kind,
        }
    }

    pub fn found(&self) -> Tok {
        self.kind(self.at)
    }

    /// The token before the error, if it is in the same line.
    pub fn before(&self) -> Option<u32> {
        (self.at > self.line.start).then(|| self.at - 1)
    }

    pub fn before_kind(&self) -> Option<Tok> {
        self.before().map(|i| self.kind(i))
    }

    pub fn first(&self) -> Tok {
        self.kind(self.line.start)
    }

    pub fn at_start(&self) -> bool {
        self.at == self.line.start
    }

    pub fn text(&self, at: u32) -> &'t str {
        self.tree.layout.tokens.get(at as usize).map_or("", |t| t.text(self.tree.text))
    }

    pub fn span(&self, at: u32) -> Span {
        self.tree.layout.tokens.get(at as usize).map_or(Span::NONE, |t| Span {
            item: self.tree.item,
            start: t.start,
            end: t.end,
        })
    }

    /// The empty place right behind a token.
    pub fn behind(&self, at: u32) -> Span {
        let span = self.span(at);
        Span { start: span.end, ..span }
    }

    /// Where the error shows: the found token, or the end of what stands before it.
    pub fn here(&self) -> Span {
        if self.found() == Tok::Newline {
            self.before().map_or(self.span(self.at), |i| self.behind(i))
        } else {
            self.span(self.at)
        }
    }

    /// A token in words.
    pub fn shown(&self, at: u32) -> String {
        match self.kind(at) {
            Tok::Newline => "the end of the line".into(),
            Tok::Str | Tok::OpenStr | Tok::FStart => "a string".into(),
            Tok::FEnd => "the string".into(),
            _ if self.text(at).is_empty() => "the end of the line".into(),
            _ => format!("`{}`", self.text(at)),
        }
    }

    /// The innermost bracket of the line that is open at the error.
    pub fn bracket(&self) -> Option<u32> {
        let mut depth = 0;
        (self.line.start..self.at).rev().find(|i| {
            let kind = self.kind(*i);
            depth += i32::from(kind.is_closer()) - i32::from(kind.closer().is_some());
            depth < 0
        })
    }

    /// Whether a bracket belongs to a call (or to a parameter list).
    pub fn is_call(&self, bracket: u32) -> bool {
        self.kind(bracket) == Tok::LParen && bracket > self.line.start && self.kind(bracket - 1).ends_operand()
    }

    /// The tokens since the innermost open bracket (or the start of the line), nested brackets
    /// left out, nearest first.
    pub fn beside(&self) -> impl Iterator<Item = u32> + '_ {
        let mut depth = 0;
        let from = self.bracket().map_or(self.line.start, |b| b + 1);
        (from..self.at).rev().filter(move |i| {
            let kind = self.kind(*i);
            depth += i32::from(kind.is_closer());
            let outside = depth == 0;
            depth -= i32::from(kind.closer().is_some());
            outside
        })
    }

    /// Whether there is nothing but spaces around the border of two tokens.
    pub fn touch(&self, left: u32, right: u32) -> bool {
        self.span(left).end == self.span(right).start
    }

    /// The first token of the line whose block holds this line.
    pub fn block_head(&self) -> Option<u32> {
        let mut depth = 0;
        for i in (0..self.line.start).rev() {
            match self.tree.layout.tokens[i as usize].kind {
                Tok::Dedent => depth += 1,
                Tok::Indent if depth > 0 => depth -= 1,
                Tok::Indent => return self.tree.layout.lines.get(self.tree.layout.line_of(i)).copied(),
                _ => {}
            }
        }
        None
    }

    pub fn error(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, span, message)
    }
}

/// A rule's usual answer.
pub(crate) fn say(diagnostic: Diagnostic) -> Option<Verdict> {
    Some(Verdict::Say(diagnostic))
}

#[cfg(test)]
mod tests;

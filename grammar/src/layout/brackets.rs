//! Brackets that do not match: reported at the opener, closed where that does least harm.

use super::Pass;
use crate::{
    lines::{Brackets, Close},
    token::{Tok, Token},
};
use tessera_base::{Code, Diagnostic, Span};

fn written(closer: Tok) -> &'static str {
    match closer {
        Tok::RParen => ")",
        Tok::RBracket => "]",
        Tok::RBrace | Tok::FClose => "}",
        _ => "\"",
    }
}

impl Pass<'_> {
    fn opener(&self, at: usize) -> (Span, &str) {
        let token = self.out[at];
        (self.span(token.start, token.end), token.text(self.text))
    }

    /// A closing bracket.
    pub(super) fn close(&mut self, token: Token, brackets: &mut Brackets<usize>) {
        let at = self.span(token.start, token.end);
        let found = token.text(self.text);
        let index = self.out.len();
        match brackets.close(token.kind) {
            Close::Match => {
                brackets.pop();
                self.out.push(token);
            }
            Close::Through(_) => {
                if let Some((closer, opener)) = brackets.stack.last().copied() {
                    let (span, text) = self.opener(opener);
                    let diagnostic = Diagnostic::new(Code::E0003, span, format!("this `{text}` is never closed"))
                        .here("opened here")
                        .with_label(at, format!("`{}` is missing before this `{found}`", written(closer)))
                        .fix(
                            format!("insert `{}`", written(closer)),
                            self.span(token.start, token.start),
                            written(closer),
                        );
                    self.report(index, diagnostic);
                }
                self.close_quietly(token, brackets);
            }
            Close::Wrong(expected) => {
                if let Some((_, opener)) = brackets.pop() {
                    let (span, text) = self.opener(opener);
                    let diagnostic = Diagnostic::new(Code::E0003, at, format!("`{found}` does not close `{text}`"))
                        .here(format!("`{}` is meant", written(expected)))
                        .with_label(span, "opened here")
                        .fix(format!("write `{}`", written(expected)), at, written(expected));
                    self.report(index, diagnostic);
                }
                self.out.push(Token { kind: expected, ..token });
            }
            Close::Stray => {
                let diagnostic = Diagnostic::new(Code::E0003, at, format!("this `{found}` closes nothing"))
                    .here("no bracket is open here")
                    .fix("remove it", at, "");
                self.report(index, diagnostic);
            }
        }
    }

    /// Closes everything inside the bracket that `token` closes, then that one.
    pub(super) fn close_quietly(&mut self, token: Token, brackets: &mut Brackets<usize>) {
        while let Some((closer, _)) = brackets.pop() {
            if closer == token.kind {
                break;
            }
            self.push_made(closer);
        }
        self.out.push(token);
    }

    /// The line ends with brackets open. `first` is its first token. True if its last token is
    /// the `:` of a header.
    pub(super) fn close_all(&mut self, brackets: &mut Brackets<usize>, first: usize) -> bool {
        let Some((_, opener)) = brackets.stack.last().copied() else { return false };
        // The colon of `def f(a, b:` belongs behind the bracket.
        let header = self.out[first].kind.opens_block() && self.out.last().is_some_and(|t| t.kind == Tok::Colon);
        let colon = if header { self.out.pop() } else { None };
        let end = self.here();
        let (span, text) = self.opener(opener);
        let closers: String = brackets.stack.iter().rev().map(|(closer, _)| written(*closer)).collect();
        let mut diagnostic = Diagnostic::new(Code::E0003, span, format!("this `{text}` is never closed"))
            .here("opened here")
            .fix(format!("insert `{closers}`"), self.span(end, end), closers);
        for (_, outer) in brackets.stack.iter().rev().skip(1).take(3) {
            diagnostic = diagnostic.with_label(self.opener(*outer).0, "this one is open too");
        }
        self.report(self.out.len().saturating_sub(1), diagnostic);
        while let Some((closer, _)) = brackets.pop() {
            self.push_made(closer);
        }
        self.out.extend(colon);
        header
    }
}

//! Syntax errors in words: what was meant, never what the parser expected.

use crate::{
    layout::Layout,
    token::Tok,
    tree::{Fatal, Found, Tree},
};
use lalrpop_util::ParseError;
use tessera_base::{Code, Diagnostic};

/// The token that an error concerns.
pub fn place(layout: &Layout, found: &Found) -> u32 {
    let last = layout.tokens.len().saturating_sub(1) as u32;
    match found {
        Found::Said(at, _) => *at,
        Found::Syntax(ParseError::UnrecognizedToken { token: (at, _, _), .. } | ParseError::ExtraToken { token: (at, _, _) }) => *at,
        Found::Syntax(_) => last,
    }
}

pub fn explain(tree: &Tree, at: u32, _error: &Fatal) -> Option<Diagnostic> {
    let _ = Tok::Newline;
    Some(Diagnostic::new(Code::E0002, tree.token_span(at), "unexpected"))
}

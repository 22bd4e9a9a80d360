//! Text of one item to statements and diagnostics.

use crate::{
    ast::*,
    check, depth,
    layout::{Layout, layout},
    message,
    tessera::RootParser,
    token::{Tok, lex},
    tree::{Found, Root, Tree},
};
use std::collections::BTreeSet;
use tessera_base::{Code, Diagnostic, ItemId, Span};

/// The statements of one item and what is wrong with them. Spans count from the item's first
/// byte.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ParsedItem {
    /// One for a `def` or `struct`; several where a line holds several statements.
    pub stmts: Vec<Stmt>,
    /// At most one error per logical line, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Texts beyond this many bytes are refused: places are 32-bit numbers.
const BYTES_MAX: usize = 1 << 30;

/// Parses the text of one item, as cut out by `split`. Never fails: what cannot be
/// read becomes [`StmtKind::Error`] or [`ExprKind::Error`]. Linear time.
pub fn parse_item(text: &str, id: ItemId) -> ParsedItem {
    match read(text, id, Tok::StartStmts) {
        (Some(Root::Stmts(stmts)), diagnostics) => ParsedItem { stmts, diagnostics },
        (_, diagnostics) => {
            let span = Span::new(id, 0, text.len().min(BYTES_MAX));
            ParsedItem { stmts: vec![Stmt { kind: StmtKind::Error, span }], diagnostics }
        }
    }
}

/// Parses what was typed at a prompt: any number of statements, all in one text.
pub fn parse_expr_or_stmts(text: &str, id: ItemId) -> ParsedItem {
    parse_item(text, id)
}

/// Parses a text that is one expression (or bare tuple).
pub fn parse_expr(text: &str, id: ItemId) -> (Expr, Vec<Diagnostic>) {
    match read(text, id, Tok::StartExpr) {
        (Some(Root::Expr(expr)), diagnostics) => (expr, diagnostics),
        (_, diagnostics) => {
            (Expr { kind: ExprKind::Error, span: Span::new(id, 0, text.len().min(BYTES_MAX)) }, diagnostics)
        }
    }
}

/// The diagnostic for a text that is too long to be read.
pub(crate) fn too_long(text: &str, id: ItemId) -> Option<Diagnostic> {
    (text.len() > BYTES_MAX).then(|| {
        Diagnostic::new(Code::E0901, Span::new(id, 0, 0), format!("a source file of {} bytes is too long", text.len()))
            .help(format!("at most {BYTES_MAX} bytes are read; keep data in files of its own"))
    })
}

fn read(text: &str, id: ItemId, start: Tok) -> (Option<Root>, Vec<Diagnostic>) {
    if let Some(diagnostic) = too_long(text, id) {
        return (None, vec![diagnostic]);
    }
    let tokens = lex(text);
    let mut layout = layout(text, &tokens, id, start);
    let problems = std::mem::take(&mut layout.problems);
    if let Some(diagnostic) = depth::too_deep(&layout, id) {
        return (None, vec![diagnostic]);
    }
    let tree = Tree::new(text, &layout, id);
    let sentence = layout.tokens.iter().enumerate().map(|(i, t)| (i as u32, t.kind, i as u32 + 1));
    let mut found = vec![];
    let mut root = match RootParser::new().parse(&tree, sentence) {
        Ok(root) => Some(root),
        Err(error) => {
            found.push(Found::Syntax(error));
            None
        }
    };
    let mut all = tree.take_found();
    all.append(&mut found);
    if let Some(Root::Stmts(stmts)) = &mut root {
        check::forget_garbled(stmts, &layout, &tree.take_garbled());
        let mut misplaced = vec![];
        check::misplaced(stmts, &mut misplaced);
        all.extend(misplaced.into_iter().map(|d| Found::Said(layout.token_at(d.span.start), d)));
    }
    (root, one_per_line(&tree, &layout, problems, all))
}

/// Puts everything into words and keeps the first error of each logical line: what the layout
/// found comes first, since the rest may follow from it.
fn one_per_line(tree: &Tree, layout: &Layout, problems: Vec<(u32, Diagnostic)>, found: Vec<Found>) -> Vec<Diagnostic> {
    if problems.is_empty() && found.is_empty() {
        return vec![];
    }
    let mut lines = BTreeSet::new();
    let mut out = vec![];
    for (token, diagnostic) in problems {
        if lines.insert(layout.line_of(token)) {
            out.push(diagnostic);
        }
    }
    // In the order in which they were found: what comes later in a line may follow from it.
    for found in found {
        let at = message::error_token(layout, &found);
        let line = layout.line_of(at);
        if lines.contains(&line) {
            continue;
        }
        let diagnostic = match found {
            Found::Said(_, diagnostic) => Some(diagnostic),
            Found::Syntax(_) => message::explain(tree, at),
        };
        if let Some(diagnostic) = diagnostic {
            lines.insert(line);
            out.push(diagnostic);
        }
    }
    out.sort_by_key(|d| d.span.start);
    out
}

#[cfg(test)]
mod tests;

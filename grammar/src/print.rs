//! The formatter: one canonical form for every program.
//!
//! It works on tokens, not on the tree: all words and comments stay, in their order. Only
//! white space, quotes, the spelling of numbers, trailing commas and `;` change, so the tree
//! stays the same. Formatting what was formatted changes nothing.
//!
//! The form: indents of 4 spaces, lines of at most [`WIDTH`] columns where they can be broken,
//! `"` for strings where that needs no escape, two blank lines around top-level definitions, one
//! around inner ones, and at most one inside a body. A bracket that does not fit is broken after
//! each comma and gets a trailing comma; a bracket that has one stays broken. Inside brackets,
//! lines break before operators, loosest first.

mod spelling;
mod pieces;
mod breaks;
mod rows;

use crate::{
    layout::layout,
    parse::parse_item,
    token::{Tok, lex},
};
use tessera_base::{Diagnostic, ItemId};

/// Columns of a line.
pub const WIDTH: usize = 100;
/// Columns of an indent.
const INDENT: usize = 4;

/// Formats a whole file. With syntax errors nothing is changed and the errors are returned; their
/// spans are of item 0 and count from the start of the file.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let item = ItemId(0);
    let errors = parse_item(text, item).diagnostics;
    if !errors.is_empty() {
        return Err(errors);
    }
    let laid_out = layout(text, &lex(text), item, Tok::StartStmts);
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for row in rows::rows(text, &laid_out.tokens) {
        for _ in 0..row.blank {
            out.push('\n');
        }
        let indent = row.level * INDENT;
        out.extend(std::iter::repeat_n(' ', indent));
        match row.content {
            rows::Content::Comment(comment) => out.push_str(&comment),
            rows::Content::Code { pieces, trailing } => {
                breaks::write(&pieces, indent, &mut out);
                if let Some(comment) = trailing {
                    out.push_str("  ");
                    out.push_str(&comment);
                }
            }
        }
        out.push('\n');
    }
    Ok(out)
}

#[cfg(test)]
mod tests;

//! Text to syntax and back: tokens, layout, the grammar, recovery, the formatter.
//! The only crate that knows logos or lalrpop.

pub mod ast;
pub mod show;
pub mod token;
pub mod literal;
pub mod lines;
pub mod layout;
pub mod depth;
mod tree;
lalrpop_util::lalrpop_mod!(
    #[allow(clippy::all, unused, reason = "written by the parser generator")]
    tessera,
    "/tessera.rs"
);
mod message;
mod check;
pub mod parse;
pub mod split;
pub mod prompt;
pub mod print;

pub use parse::{ParsedItem, parse_expr, parse_expr_or_stmts, parse_item};
pub use print::format;
pub use prompt::{TokenClass, highlight, needs_more};
pub use show::show;
pub use split::{RawItem, RawKind, SplitFile, split, split_again};

#[cfg(test)]
mod fuzz;

//! Text to syntax and back: tokens, layout, the grammar, recovery, the formatter.
//! The only crate that knows logos or lalrpop.

pub mod ast;

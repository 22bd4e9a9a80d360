//! The `tessera` program: the command line, the pipeline from text to running code, the caches,
//! the interactive session.

/// As that of the standard library, which panics where standard error is full or closed: what the program does is worth more
/// than what is said about it.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($text)*);
    }};
}

/// The same of a part of a line.
macro_rules! eprint {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr().lock(), $($text)*);
    }};
}

pub mod render;
pub mod files;
pub mod cli;
pub mod cache;
pub mod format;
pub mod doctor;
mod tune;
mod native_kernels;
pub mod target;
pub mod backend;
mod check_nan;
pub mod mesh_run;
mod tiers;
mod called;
mod leaves;
pub mod regions;
mod kernel_table;
mod sum_order;
mod choice_facts;
mod graph_facts;
pub mod interrupt;
mod roof;
mod profile;
mod advise;
pub mod program;
mod ask;
mod budget;
pub mod explain;
pub mod interpret;
pub mod emit;
mod tuning;
mod plan;
pub mod repl;
pub mod testing;
mod help;
mod new;
mod lsp;
#[cfg(feature = "jupyter")]
mod jupyter;
mod view;
pub mod commands;

//! When a value of one type is accepted where another type is declared, what a call's
//! arguments say about the callee's size variables, and what type two paths agree on.

mod mismatch;
mod assign;
mod bind;
mod join;

pub use assign::{Coerce, assignable, convert, fill, is_open, leaves_mesh, refine};
pub use bind::{Bindings, ParamMismatch, bind_signature, param_mismatch_diagnostic};
pub use join::{JoinKind, join, join_diagnostic};
pub use mismatch::{Mismatch, Role, What, mismatch_diagnostic};

#[cfg(test)]
mod tests;

//! From syntax to a typed program, and from there to host code and graphs.

mod stack;
pub mod source;
pub mod rules;
pub mod law;
pub mod session;
pub mod db;
pub mod check;
mod texts;
pub mod lower;
pub mod trace;

pub use check::types::describe;
pub use session::{
    Checked, Last, Session, Visible, check_only, check_text as check_program, check_text_only as check_program_only,
};
pub use stack::deep;

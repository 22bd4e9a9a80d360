//! From syntax to Core: names, types, sizes, layouts, effects.

mod circles;
mod known_elsewhere;
pub mod members;
mod lost_values;
mod mistaken;
pub mod careless;
pub mod session;
pub mod db;
pub mod check;
pub mod of_item;
pub mod asked;
mod texts;

pub use check::types::describe;
pub use session::{
    Checked, Last, Session, Visible, check_only, check_text as check_program, check_text_only as check_program_only,
};

//! What the tests share: the golden file format and running the `tessera` program.

pub mod program;
pub mod golden;
pub mod bench;

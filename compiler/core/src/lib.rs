//! Core: the typed program, what the checker yields and everything below starts from.
//!
//! [`builtins`]: functions of the host. [`ty`]: types. [`ir`]: the forms. [`text`]: how they are written. [`walk`]: over them. [`verify`]: whether a program
//! agrees with itself.

pub mod builtins;
pub mod ty;
pub mod ir;
pub mod text;
pub mod walk;
pub mod verify;

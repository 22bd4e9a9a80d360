//! Core: the typed program, what the checker yields and everything below starts from.
//!
//! [`ty`]: types. [`ir`]: the forms. [`builtins`]: functions of the host; [`symbols`]: what runs them. [`text`]: how they are written. [`walk`]: over
//! them. [`verify`]: whether a program agrees with itself.

pub mod ty;
pub mod ir;
pub mod builtins;
pub mod symbols;
pub mod text;
pub mod walk;
pub mod verify;

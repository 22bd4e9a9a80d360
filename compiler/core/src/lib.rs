//! Core: the typed program, what the checker yields and everything below starts from.
//!
//! [`ty`]: types; [`sizes`], [`layouts`]: of what they are made. [`builtins`]: functions of the host. [`budget`]: what a function may need. [`ir`]: the forms.
//! [`text`]: how they are written. [`walk`], [`live`]: over them. [`renumber`]: the numbers of a program in bodies that were checked one
//! by one. [`verify`]: whether a program agrees with itself. [`type_assertions`]: whether values
//! agree with their types. [`region`]: what of a program is tensor code. [`build`]: Core written
//! out by hand, for tests.

pub mod ty;
pub mod sizes;
pub mod layouts;
pub mod builtins;
pub mod budget;
pub mod ir;
pub mod text;
pub mod walk;
pub mod assertions;
pub mod live;
pub mod renumber;
pub mod verify;
pub mod type_assertions;
pub mod region;
pub mod build;

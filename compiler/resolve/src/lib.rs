//! Names: what the syntax of an item says of them, and what each of them stands for.
//!
//! [`source`]: where texts come from. [`syntax`]: walks over syntax. [`facts`]: what an item mentions, assigns and
//! imports. [`kernel_signature`], [`functions`]: the functions in it. [`names`]: what every name refers to.

pub mod source;
pub mod syntax;
pub mod facts;
pub mod kernel_signature;
pub mod functions;
pub mod names;

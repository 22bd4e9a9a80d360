//! From syntax to a typed program, and from there to host code and graphs.

pub mod ty;
pub mod thir;
pub mod rules;
pub mod lower;
pub mod trace;

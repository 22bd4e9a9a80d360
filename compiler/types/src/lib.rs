//! Typing rules as pure functions over checked sub-expressions.
//!
//! The checker walks the syntax and owns names, scopes and control flow; what a type
//! annotation means, when one type is accepted for another, what a call of an operator or an
//! index yields, and how each of these fails, is decided here.

pub mod sizes;
pub mod annot;
pub mod unify;
pub mod tensor;
pub mod coerce;

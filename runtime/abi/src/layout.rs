//! Offsets, in bytes, of what compiled host code reads and writes without a call.
//!
//! The runtime asserts that its structures have these offsets.

/// The context, whose address every function takes first.
pub mod context {
    /// Nonzero: a failure or an exit is on its way out.
    pub const STATUS: i32 = 0;
    /// Lowest address that the stack pointer may have at a function's entry.
    pub const STACK_LIMIT: i32 = 8;
    /// Address of a byte that is nonzero when the user interrupts.
    pub const INTERRUPT: i32 = 16;
    /// Address of the words of the globals, by `GlobalId`.
    pub const GLOBALS: i32 = 24;
}

/// Every heap object.
pub mod object {
    /// Number of owners.
    pub const COUNT: i32 = 0;
}

pub mod string {
    /// Length in characters.
    pub const CHARS: i32 = 16;
}

pub mod list {
    /// Address of the words of the elements.
    pub const DATA: i32 = 16;
    pub const LEN: i32 = 24;
}

/// Tuples and structs.
pub mod record {
    /// The first field's word; the others follow.
    pub const WORDS: i32 = 24;
}

pub mod closure {
    pub const CODE: i32 = 16;
    /// The first capture's word; after the captures follow the words of their type ids.
    pub const WORDS: i32 = 32;
}

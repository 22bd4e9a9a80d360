//! What a program is compiled against.

use std::fmt;
use tessera_abi::rt::RtFn;

/// The addresses and numbers that a program's own numbers stand for. In a session with several
/// programs (REPL) each is compiled on its own, and values pass between them; so types, spans
/// and regions are numbered for the whole session.
pub struct Link<'a> {
    pub symbols: &'a [(RtFn, *const u8)],
    /// Address of the constant string object by `StrId`.
    pub strings: &'a [u64],
    /// Number of the type in the context by `TypeId`.
    pub types: &'a [u32],
    /// Added to every `SpanId`.
    pub span_base: u32,
    /// Added to every `RegionId`.
    pub region_base: u32,
    /// Globals are read again after a failure (REPL): a tensor region that changes one works on
    /// a copy, so that the old value is there if it fails.
    pub keep_globals: bool,
}

/// Why there is no machine code. Every case is a fault of the compiler or of the machine, none
/// of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostError {
    /// There is no code generator for this machine.
    Machine(String),
    /// Cranelift refused a function.
    Function { name: String, reason: String },
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            HostError::Machine(reason) => write!(f, "host code cannot be compiled on this machine: {reason}"),
            HostError::Function { name, reason } => write!(f, "the function `{name}` cannot be compiled: {reason}"),
        }
    }
}

impl std::error::Error for HostError {}

//! A functional interpreter of PTX text on the CPU, and behind the names of the CUDA driver API ([`driver`]) a
//! stand-in for `libcuda.so`: what CUDA code does is tested where no GPU is.
//!
//! The text is decoded once ([`parse`]) and executed thread by thread ([`launch`]). Nothing is timed; what is modelled
//! is what a program may rely on: threads of a warp run in any order, copies that are not waited for arrive as late as
//! they may, memory that nobody wrote is poisoned, and every access is checked.

mod lex;
mod types;
mod inst;
mod ops;
mod decode;
mod module;
mod memory;
mod exec;
pub mod driver;

pub use exec::launch;
pub use memory::Memory;
pub use module::{Module, parse};

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The PTX text is wrong or holds what the interpreter does not know.
    Text,
    /// The launch does not fit the kernel.
    Launch,
    /// An address outside of what is allocated.
    Address,
    /// An address that is not a multiple of the access's size.
    Misaligned,
    /// Anything else a kernel did wrong: a trap, a deadlock, a race.
    Fault,
}

/// A failure, with the kernel, block, thread, line and statement where there are such.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: Kind,
    pub message: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// One launch of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    pub kernel: &'a str,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// The bytes of each parameter.
    pub params: &'a [&'a [u8]],
}

/// How a launch is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Chooses which thread goes first: 0 ascending, 1 descending, others shuffled.
    pub seed: u64,
    /// Whether accesses without a synchronisation between them are reported.
    pub races: bool,
    /// Cores to use at most; 0 for all.
    pub workers: usize,
    /// Instructions of all threads of a block after which it is said not to end; 0 for no such limit.
    pub limit: u64,
}

/// What a launch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions of all threads; a statement that packs, unpacks or combines may count as several.
    pub instructions: u64,
    pub global_bytes_read: u64,
    pub global_bytes_written: u64,
    /// Bytes read and written in shared memory.
    pub shared_bytes: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.instructions += other.instructions;
        self.global_bytes_read += other.global_bytes_read;
        self.global_bytes_written += other.global_bytes_written;
        self.shared_bytes += other.shared_bytes;
    }
}

//! The end of the process.

use crate::fault::Fault;
use std::io::Write;

/// Ends the process where the bytes of a tensor cannot be had and nobody can be told any more: its device is lost.
pub fn lost(fault: &Fault) -> ! {
    eprintln!("error[E{:04}]: {}", fault.code, fault.message);
    fault.notes.iter().for_each(|note| eprintln!("  = note: {note}"));
    exit(1)
}

/// Ends the process without giving back memory and without the functions that libraries want called at its end: the
/// system takes everything at once. What was printed is written before.
pub fn exit(code: u8) -> ! {
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
    // SAFETY: asks for all streams of C that libraries may have written to; nothing of this process runs after the second.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(i32::from(code))
    }
}

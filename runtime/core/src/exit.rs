//! The end of the process.

use std::io::Write;

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

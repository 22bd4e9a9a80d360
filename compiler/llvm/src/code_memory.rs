//! Executable pages.

use crate::LlvmError;

/// Machine code in pages of its own, written once, then read-only and executable.
pub struct CodeMemory {
    base: *mut u8,
    len: usize,
}

// SAFETY: the pages are read-only for the life of the value.
unsafe impl Send for CodeMemory {}
// SAFETY: as above.
unsafe impl Sync for CodeMemory {}

impl CodeMemory {
    /// A copy of `image` at a page boundary. Errors: `E0603` where the system refuses pages.
    pub fn new(image: &[u8]) -> Result<CodeMemory, LlvmError> {
        let fail = |what: &str| LlvmError::internal(format!("{what}: {}", std::io::Error::last_os_error()));
        let len = image.len().max(1).next_multiple_of(4096);
        // SAFETY: a fresh private mapping, filled before it becomes executable.
        unsafe {
            let p = libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if p == libc::MAP_FAILED {
                return Err(fail("no memory for machine code"));
            }
            let code = CodeMemory { base: p.cast(), len };
            std::ptr::copy_nonoverlapping(image.as_ptr(), code.base, image.len());
            #[cfg(target_arch = "aarch64")]
            fetch_anew(code.base, len);
            if libc::mprotect(p, len, libc::PROT_READ | libc::PROT_EXEC) != 0 {
                return Err(fail("memory cannot be made executable"));
            }
            Ok(code)
        }
    }

    pub fn address(&self, offset: usize) -> Option<*const u8> {
        // SAFETY: inside the mapping.
        (offset < self.len).then(|| unsafe { self.base.add(offset).cast_const() })
    }
}

/// Makes what was written visible to the fetching of instructions, which has a cache of its own here. Source: Arm Architecture
/// Reference Manual, B2.4.4.
///
/// # Safety
/// The bytes are mapped.
#[cfg(target_arch = "aarch64")]
unsafe fn fetch_anew(start: *mut u8, len: usize) {
    use std::arch::asm;
    let types: usize;
    // SAFETY: reads the sizes of lines, which programs may.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) types) };
    let (data, code) = (4usize << (types >> 16 & 15), 4usize << (types & 15));
    for line in (0..len).step_by(data) {
        // SAFETY: the line is mapped.
        unsafe { asm!("dc cvau, {}", in(reg) start.wrapping_add(line)) };
    }
    // SAFETY: waits for the writes.
    unsafe { asm!("dsb ish") };
    for line in (0..len).step_by(code) {
        // SAFETY: the line is mapped.
        unsafe { asm!("ic ivau, {}", in(reg) start.wrapping_add(line)) };
    }
    // SAFETY: waits for the invalidations and drops what was fetched ahead.
    unsafe { asm!("dsb ish", "isb") };
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; kernels keep the value alive while they run.
        unsafe {
            libc::munmap(self.base.cast(), self.len);
        }
    }
}

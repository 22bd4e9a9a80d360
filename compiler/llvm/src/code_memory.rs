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

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; kernels keep the value alive while they run.
        unsafe {
            libc::munmap(self.base.cast(), self.len);
        }
    }
}

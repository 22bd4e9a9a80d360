//! Memory that stays where it is.

use std::alloc::{Layout, alloc_zeroed, dealloc};

/// Zeroed memory with an alignment.
#[derive(Debug)]
pub struct Storage {
    start: *mut u8,
    layout: Layout,
    bytes: usize,
}

// SAFETY: the memory belongs to this value alone, and kernels access it by atomic operations only.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// So many bytes; None where the size is absurd or the memory is not there.
    pub fn new(bytes: usize, align: usize) -> Option<Storage> {
        let layout = Layout::from_size_align(bytes.max(1), align.max(16)).ok()?;
        if bytes > 1 << 34 {
            return None;
        }
        // SAFETY: the layout has a size above 0.
        let start = unsafe { alloc_zeroed(layout) };
        (!start.is_null()).then_some(Storage { start, layout, bytes })
    }

    pub fn address(&self) -> u64 {
        self.start as u64
    }

    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// The memory, while nothing else uses it.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `start` points to `bytes` initialised bytes, and `&mut self` says that nobody else uses them.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout and is given back once.
        unsafe { dealloc(self.start, self.layout) }
    }
}

//! The global memory that kernels may access.

/// Allocations by their addresses, which are addresses of this process: copies are plain copies.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    ranges: Vec<(u64, u64)>,
}

impl Memory {
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Lets kernels read and write `bytes` bytes at `address`.
    ///
    /// # Safety
    ///
    /// Until the last launch with this value, the range must be memory of this process that may be read and written,
    /// and while a launch runs nothing else accesses it other than by atomic operations.
    pub unsafe fn register(&mut self, address: u64, bytes: u64) {
        let at = self.ranges.partition_point(|(start, _)| *start < address);
        self.ranges.insert(at, (address, bytes));
    }

    /// Start and size of every allocation, in ascending order.
    pub(crate) fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }
}

//! Who does the work.

/// Threads that take parts of the work, or none.
pub trait Workers: Sync {
    fn threads(&self) -> usize;
    /// Calls `work` for every chunk of `size` elements (the last may be shorter) with its number.
    fn each_chunk<T: Send>(&self, items: &mut [T], size: usize, work: &(dyn Fn(usize, &mut [T]) + Sync));
}

/// The calling thread.
pub struct Alone;

impl Workers for Alone {
    fn threads(&self) -> usize {
        1
    }

    fn each_chunk<T: Send>(&self, items: &mut [T], size: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
        items.chunks_mut(size.max(1)).enumerate().for_each(|(i, chunk)| work(i, chunk));
    }
}

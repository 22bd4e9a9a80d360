//! Memory of the host: aligned, counted, used again.

use crate::memory::{self, OutOfMemory, memory_limit};
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

/// Every buffer starts at a multiple of this many bytes (one cache line, one AVX-512 vector).
pub const ALIGN: usize = 64;

/// A file mapped privately: what is written to it stays in this process.
pub struct Mapping {
    base: NonNull<u8>,
    map: memmap2::MmapMut,
}

// SAFETY: the base is the mapping's own address; the mapping may be used from any thread.
unsafe impl Send for Mapping {}
// SAFETY: see `Send`; parts are written through the buffers that own them only.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub fn new(mut map: memmap2::MmapMut) -> Mapping {
        Mapping { base: NonNull::from(&mut map[..]).cast(), map }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.map
    }
}

/// Aligned bytes with one owner; shared through [`Arc`].
pub struct Buffer {
    ptr: NonNull<u8>,
    len: usize,
    /// Bytes that were allocated: more than `len` in a buffer that was used before.
    capacity: usize,
    /// Whose the bytes are, where they were not allocated.
    map: Option<Arc<Mapping>>,
}

// SAFETY: the buffer owns its bytes; writes go through `&mut` or through kernels that the
// plan proves disjoint.
unsafe impl Send for Buffer {}
// SAFETY: see `Send`.
unsafe impl Sync for Buffer {}

impl Buffer {
    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.max(1).checked_next_multiple_of(ALIGN)?, ALIGN).ok()
    }

    /// `len` bytes. Zeroed memory comes from fresh pages and is not touched until used.
    pub fn new(len: u64, zeroed: bool) -> Result<Buffer, OutOfMemory> {
        let fail = OutOfMemory { bytes: len };
        let size = usize::try_from(len).map_err(|_| fail.clone())?;
        if len > memory_limit() {
            return Err(fail);
        }
        if !zeroed && let Some(mut found) = recycle::take(size) {
            poison::spoil(found.bytes_mut());
            return Ok(found);
        }
        if !memory::has_room(len) {
            recycle::give_back();
            if !memory::has_room(len) {
                return Err(fail);
            }
        }
        let layout = Self::layout(size).ok_or(fail.clone())?;
        // SAFETY: the layout has a size above zero.
        let ptr = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        let ptr = NonNull::new(ptr).ok_or(fail)?;
        recycle::prefer_large_pages(ptr, Layout::size(&layout));
        let mut new = Buffer { ptr, len: size, capacity: size, map: None };
        if !zeroed {
            poison::spoil(new.bytes_mut());
        }
        Ok(new)
    }

    /// A part of a mapped file, aligned as it lies there; `None` beyond its end. Each part is
    /// given out once, so that buffers do not overlap.
    pub fn mapped(map: &Arc<Mapping>, part: std::ops::Range<usize>) -> Option<Buffer> {
        let len = map.bytes().get(part.clone())?.len();
        // SAFETY: inside the mapping, as just looked up.
        let ptr = unsafe { map.base.add(part.start) };
        Some(Buffer { ptr, len, capacity: len, map: Some(map.clone()) })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes are owned; memory that was not zeroed is filled by its producer
        // before anyone reads.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.map.is_some() || recycle::keep(self.ptr, self.capacity) {
            return;
        }
        if let Some(layout) = Self::layout(self.capacity) {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.ptr.as_ptr(), layout) }
        }
    }
}

/// What has not been written yet shows in debug builds and under `--checked`: it is no zero and no number that a
/// program meets, and of most dtypes no number at all.
pub mod poison {
    use std::sync::atomic::{AtomicBool, Ordering};

    static SHOWS: AtomicBool = AtomicBool::new(cfg!(debug_assertions));
    /// A signalling NaN of f32 and bf16, a NaN of f16.
    pub const WORD: [u8; 4] = 0x7fa5_a5a5_u32.to_le_bytes();

    /// From here on, in this process.
    pub fn show() {
        SHOWS.store(true, Ordering::Relaxed);
    }

    /// Whether it shows.
    pub fn shows() -> bool {
        SHOWS.load(Ordering::Relaxed)
    }

    /// Bytes whose value nobody may read before they are written.
    pub fn spoil(bytes: &mut [u8]) {
        if shows() {
            for part in bytes.chunks_mut(WORD.len()) {
                part.copy_from_slice(&WORD[..part.len()]);
            }
        }
    }
}

/// Large buffers that were given up, for the next tensor of about that size. Fresh memory costs
/// a page fault every few kilobytes, more than computing what is written there.
mod recycle {
    use super::Buffer;
    use crate::memory::memory_limit;
    use std::ptr::NonNull;
    use std::sync::Mutex;

    /// Smaller ones are the allocator's business.
    const BYTES_MIN: usize = 1 << 20;

    struct Kept {
        ptr: NonNull<u8>,
        capacity: usize,
    }
    // SAFETY: memory that no one refers to.
    unsafe impl Send for Kept {}

    static KEPT: Mutex<Vec<Kept>> = Mutex::new(vec![]);

    /// Keeps the memory unless there is enough kept already: at most an eighth of the machine's.
    pub fn keep(ptr: NonNull<u8>, capacity: usize) -> bool {
        if capacity < BYTES_MIN {
            return false;
        }
        let Ok(mut kept) = KEPT.lock() else { return false };
        let total: u64 = kept.iter().map(|k| k.capacity as u64).sum();
        let room = total + capacity as u64 <= memory_limit() / 8;
        if room {
            kept.push(Kept { ptr, capacity });
        }
        room
    }

    /// The smallest kept memory that holds `len` bytes and is not much larger.
    pub fn take(len: usize) -> Option<Buffer> {
        if len < BYTES_MIN {
            return None;
        }
        let mut kept = KEPT.lock().ok()?;
        let fits = kept.iter().enumerate().filter(|(_, k)| k.capacity >= len && k.capacity - len <= len / 4);
        let at = fits.min_by_key(|(_, k)| k.capacity)?.0;
        let Kept { ptr, capacity } = kept.swap_remove(at);
        Some(Buffer { ptr, len, capacity, map: None })
    }

    /// Frees what was kept.
    pub fn give_back() {
        let kept = KEPT.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default();
        for Kept { ptr, capacity } in kept {
            if let Some(layout) = Buffer::layout(capacity) {
                // SAFETY: allocated with this layout, and no one refers to it.
                unsafe { std::alloc::dealloc(ptr.as_ptr(), layout) }
            }
        }
    }

    /// Asks the system for large pages: fewer faults, fewer address translations.
    pub fn prefer_large_pages(ptr: NonNull<u8>, bytes: usize) {
        const LARGE: usize = 2 << 20;
        #[cfg(target_os = "linux")]
        if bytes >= 2 * LARGE {
            let start = (ptr.as_ptr() as usize).next_multiple_of(LARGE);
            let end = (ptr.as_ptr() as usize + bytes) / LARGE * LARGE;
            if end > start {
                // SAFETY: the range is ours; the advice changes no content.
                unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (ptr, bytes, LARGE);
    }
}

//! How much memory the program's values take, and whether there is room for more.
//!
//! The tool's allocator counts: large pieces for the whole process, small ones for the thread that runs host code,
//! where all its lists, strings and dicts are made. What grows asks for room first, so that too much is a diagnostic
//! and no abort.

use libmimalloc_sys::{mi_malloc, mi_zalloc};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

/// Memory that cannot be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutOfMemory {
    pub bytes: u64,
}

/// What the command line allows.
static BOUND: std::sync::OnceLock<u64> = std::sync::OnceLock::new();

/// Allows this many bytes from here on; the first one counts.
pub fn bound_memory(bytes: u64) {
    let _ = BOUND.set(bytes);
}

/// Bytes that the command line allows, where it says so.
pub fn memory_bound() -> Option<u64> {
    BOUND.get().copied()
}

/// Bytes that one allocation may ask for: those that are allowed, of the machine's memory (Linux overcommits,
/// so an allocation beyond it would succeed and kill the process later).
pub fn memory_limit() -> u64 {
    static LIMIT: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let machine = *LIMIT.get_or_init(|| {
        std::fs::read_to_string("/proc/meminfo")
            .ok()
            .and_then(|text| {
                let line = text.lines().find(|l| l.starts_with("MemTotal:"))?;
                line.split_whitespace().nth(1)?.parse::<u64>().ok()
            })
            .map_or(u64::MAX >> 1, |kib| kib * 1024)
    });
    memory_bound().map_or(machine, |bound| bound.min(machine))
}

/// Makes ready for threads of which each takes a little memory: no large pages from here on. Each thread would get some of
/// its own, and a thousand of them would fill gigabytes with zeros.
pub fn expect_many_threads() {
    #[cfg(target_os = "linux")]
    // SAFETY: sets a flag of this process; where the system does not know it, nothing happens.
    unsafe {
        let (yes, no): (libc::c_ulong, libc::c_ulong) = (1, 0);
        libc::prctl(libc::PR_SET_THP_DISABLE, yes, no, no, no);
    }
}

/// Pieces of so many bytes are counted for the process, and come from the system's allocator: it hands the memory of
/// tensors back and forth without asking for new pages. Smaller ones come from one made for many of them.
const LARGE: usize = 1 << 15;
/// What the tool itself may take besides, where the command line sets the bound: programs are compiled while they run.
const OWN_BYTES: i64 = 64 << 20;

static LARGE_BYTES: AtomicI64 = AtomicI64::new(0);
thread_local! {
    static SMALL_BYTES: Cell<i64> = const { Cell::new(0) };
}

fn add(bytes: i64, size: usize) {
    if size >= LARGE {
        LARGE_BYTES.fetch_add(bytes, Ordering::Relaxed);
    } else {
        // A thread that ends frees the last of its memory when its count is gone.
        let _ = SMALL_BYTES.try_with(|n| n.set(n.get() + bytes));
    }
}

fn taken(size: usize) {
    add(size as i64, size);
}

fn given_back(size: usize) {
    add(-(size as i64), size);
}

/// The tool's allocator: two others, with a count of the bytes.
pub struct Counting;

// SAFETY: every request is passed on as it is; which allocator a piece belongs to follows from its size alone, which
// the caller gives again with it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let p = unsafe { if layout.size() < LARGE { small(layout) } else { System.alloc(layout) } };
        if !p.is_null() {
            taken(layout.size());
        }
        p
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let p = unsafe { if layout.size() < LARGE { small_zeroed(layout) } else { System.alloc_zeroed(layout) } };
        if !p.is_null() {
            taken(layout.size());
        }
        p
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { if layout.size() < LARGE { MiMalloc.dealloc(p, layout) } else { System.dealloc(p, layout) } };
        given_back(layout.size());
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let new = match (layout.size() < LARGE, size < LARGE) {
            // SAFETY: the caller's promise, and the piece is of this allocator.
            (true, true) => unsafe { MiMalloc.realloc(p, layout, size) },
            // SAFETY: as above.
            (false, false) => unsafe { System.realloc(p, layout, size) },
            // SAFETY: the caller's promise. What it takes and gives is counted there.
            _ => return unsafe { self.moved(p, layout, size) },
        };
        if !new.is_null() {
            given_back(layout.size());
            taken(size);
        }
        new
    }
}

/// Whether mimalloc aligns a piece so anyway: pieces of 16 bytes and more to 16, smaller ones to 8 (`MI_MAX_ALIGN_SIZE`).
/// Asked for an alignment it takes more room than that for sizes that are no powers of two.
fn aligned_anyway(layout: Layout) -> bool {
    layout.align() <= 8 || (layout.align() == 16 && layout.size() >= 16)
}

/// # Safety
/// As of [`GlobalAlloc::alloc`].
unsafe fn small(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise; both give pieces of one allocator.
    unsafe { if aligned_anyway(layout) { mi_malloc(layout.size()).cast() } else { MiMalloc.alloc(layout) } }
}

/// # Safety
/// As of [`GlobalAlloc::alloc_zeroed`].
unsafe fn small_zeroed(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise; both give pieces of one allocator.
    unsafe { if aligned_anyway(layout) { mi_zalloc(layout.size()).cast() } else { MiMalloc.alloc_zeroed(layout) } }
}

impl Counting {
    /// A piece that goes from one allocator to the other.
    ///
    /// # Safety
    /// As of [`GlobalAlloc::realloc`].
    unsafe fn moved(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller of `realloc` has promised that the size with this alignment makes a layout; the pieces are
        // two, and each has the bytes that are copied.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(p, new, size.min(layout.size()));
                self.dealloc(p, layout);
            }
            new
        }
    }
}

/// Adds to what this thread counts in small pieces; what it counted before.
pub fn count_here(bytes: i64) -> i64 {
    SMALL_BYTES.replace(SMALL_BYTES.get() + bytes)
}

/// Bytes that are in use, as far as this thread knows.
pub fn in_use() -> u64 {
    (LARGE_BYTES.load(Ordering::Relaxed) + SMALL_BYTES.try_with(Cell::get).unwrap_or(0).max(0)).max(0) as u64
}

/// Whether there is room for so many bytes more.
pub fn has_room(bytes: u64) -> bool {
    let limit = memory_limit();
    let own = if memory_bound().is_some() { OWN_BYTES } else { 0 };
    bytes <= limit && i128::from(in_use()) + i128::from(bytes) <= i128::from(limit) + i128::from(own)
}

//! How much memory the program's values take, and whether there is room for more.
//!
//! The tool's allocator counts: large pieces for the whole process, small ones for the thread that runs host code,
//! where all its lists, strings and dicts are made. What grows asks for room first, so that too much is a diagnostic
//! and no abort.

use crate::fault::Fault;
use crate::tensor::{OutOfMemory, memory_bound, memory_limit};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

/// Pieces of so many bytes are counted for the process.
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

/// The system's allocator with a count of the bytes.
pub struct Counting;

// SAFETY: every request is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let p = unsafe { System.alloc(layout) };
        if !p.is_null() {
            taken(layout.size());
        }
        p
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let p = unsafe { System.alloc_zeroed(layout) };
        if !p.is_null() {
            taken(layout.size());
        }
        p
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(p, layout) };
        given_back(layout.size());
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let new = unsafe { System.realloc(p, layout, size) };
        if !new.is_null() {
            given_back(layout.size());
            taken(size);
        }
        new
    }
}

/// Bytes that are in use.
fn live() -> i64 {
    LARGE_BYTES.load(Ordering::Relaxed) + SMALL_BYTES.try_with(Cell::get).unwrap_or(0).max(0)
}

/// Fails where the values of the program and so many bytes more are too much.
///
/// # Errors
/// E0710.
pub fn room(bytes: u64) -> Result<(), Fault> {
    if has_room(bytes) { Ok(()) } else { Err(OutOfMemory { bytes }.into()) }
}

/// Whether there is room for so many bytes more.
pub fn has_room(bytes: u64) -> bool {
    let limit = memory_limit();
    let own = if memory_bound().is_some() { OWN_BYTES } else { 0 };
    bytes <= limit && i128::from(live()) + i128::from(bytes) <= i128::from(limit) + i128::from(own)
}

/// Room for more elements. A vector grows to twice its length, so asking costs little.
///
/// # Errors
/// E0710.
pub fn reserve<T>(v: &mut Vec<T>, more: usize) -> Result<(), Fault> {
    if v.capacity() - v.len() >= more {
        return Ok(());
    }
    let elems = v.len().saturating_add(more).max(v.capacity().saturating_mul(2));
    let bytes = (elems as u64).saturating_mul(size_of::<T>() as u64);
    room(bytes)?;
    v.try_reserve(more).map_err(|_| OutOfMemory { bytes }.into())
}

/// The same of a text.
///
/// # Errors
/// E0710.
pub fn reserve_text(s: &mut String, more: usize) -> Result<(), Fault> {
    if s.capacity() - s.len() >= more {
        return Ok(());
    }
    let bytes = (s.len() as u64).saturating_add(more as u64).max((s.capacity() as u64).saturating_mul(2));
    room(bytes)?;
    s.try_reserve(more).map_err(|_| OutOfMemory { bytes }.into())
}

//! Memory of a GPU: pieces that are taken and given back in the order of the work that uses them.

use super::{Gpu, stopped};
use crate::device::{Address, DeviceId, Memory};
use crate::fault::{Fault, human_bytes};
use cudarc::driver::{result, sys};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is given back stays with the process: the next piece is there at once.
pub fn keep_what_is_freed(device: sys::CUdevice) {
    let mut all = u64::MAX;
    // SAFETY: a device that was found; the driver reads one number. Where it has no such pool, pieces take longer.
    unsafe {
        if let Ok(pool) = result::device::get_default_mem_pool(device) {
            let name = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            let _ = result::mem_pool::set_attribute(pool, name, (&raw mut all).cast());
        }
    }
}

/// An order of work on a GPU, and the bytes that were taken in it.
pub struct Stream {
    pub gpu: Arc<Gpu>,
    pub raw: sys::CUstream,
    pub held: AtomicU64,
}

// SAFETY: a handle that the driver allows any thread to use.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    pub fn new(gpu: Arc<Gpu>) -> Result<Stream, Fault> {
        gpu.enter()?;
        let raw = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(|e| stopped(&gpu, "takes no more work", e))?;
        Ok(Stream { gpu, raw, held: AtomicU64::new(0) })
    }

    /// Everything that was started has ended.
    pub fn wait(&self) -> Result<(), Fault> {
        self.gpu.enter()?;
        // SAFETY: a stream that is there.
        unsafe { result::stream::synchronize(self.raw) }.map_err(|e| stopped(&self.gpu, "stopped", e))
    }

    /// New memory.
    ///
    /// # Errors
    /// E0710, with what is held.
    pub fn take(self: &Arc<Stream>, id: DeviceId, bytes: u64) -> Result<Piece, Fault> {
        self.gpu.enter()?;
        // A piece of nothing has an address too.
        // SAFETY: the stream is there; the piece is given back in its order.
        let taken = unsafe { result::malloc_async(self.raw, (bytes as usize).max(1)) };
        let start = taken.map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => self.no_room(bytes),
            _ => stopped(&self.gpu, "gives no memory", e),
        })?;
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Ok(Piece { id, stream: self.clone(), start, bytes })
    }

    fn no_room(&self, bytes: u64) -> Fault {
        let asked = format!("{} ({bytes} bytes) of memory of the GPU cannot be had", human_bytes(bytes));
        let held = human_bytes(self.held.load(Ordering::Relaxed));
        let all = human_bytes(self.gpu.facts().memory);
        let free = match result::mem_get_info() {
            Ok((free, _)) => format!(", of which {} are free", human_bytes(free as u64)),
            Err(_) => String::new(),
        };
        Fault::new(710, asked).note(format!("this program holds {held} there; it has {all}{free}"))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: made by `new`, given back once; what it was asked to do is done first.
            let _ = unsafe { result::stream::destroy(self.raw) };
        }
    }
}

/// A piece of memory.
pub struct Piece {
    id: DeviceId,
    stream: Arc<Stream>,
    start: sys::CUdeviceptr,
    bytes: u64,
}

impl Piece {
    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.stream.held.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.stream.gpu.enter().is_ok() {
            // SAFETY: taken from this stream; given back once, behind what uses it.
            let _ = unsafe { result::free_async(self.start, self.stream.raw) };
        }
    }
}

impl Memory for Piece {
    fn device(&self) -> DeviceId {
        self.id
    }

    fn address(&self) -> Address {
        self.start as Address
    }

    fn download(&self, to: &mut [u8]) -> Result<(), Fault> {
        // SAFETY: a piece of so many bytes.
        unsafe { download(&self.stream, self.start, to) }
    }
}

/// Brings bytes to the host, as what was started before leaves them.
///
/// # Safety
/// So many bytes at `from` are memory of the GPU.
pub unsafe fn download(stream: &Stream, from: sys::CUdeviceptr, to: &mut [u8]) -> Result<(), Fault> {
    if to.is_empty() {
        return Ok(());
    }
    stream.gpu.enter()?;
    // SAFETY: the caller's promise; the wait ends before the bytes are looked at.
    unsafe { result::memcpy_dtoh_async(to, from, stream.raw) }.map_err(|e| stopped(&stream.gpu, "stopped", e))?;
    stream.wait()
}

//! Memory of a device: buffers, at addresses that the host counts with.
//!
//! OpenCL's buffers are handles. What else of the runtime sees are addresses of its own, from which the handle and the offset
//! of a view are found again.

use super::Accelerator;
use super::api::{code, present};
use crate::device::{Address, DeviceId, Memory};
use crate::fault::{Fault, human_bytes};
use opencl_dynamic_sys::constants::*;
use opencl_dynamic_sys::types::{cl_command_queue, cl_mem};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tessera_base::bug;

/// Where addresses begin, and how far pieces are apart at least.
const FIRST_ADDRESS: u64 = 1 << 40;
const APART: u64 = 1 << 12;

/// Kept for pieces to come, of each size.
const KEPT_MAX: usize = 8;

/// The buffers of a device by their addresses.
#[derive(Default)]
pub struct Pieces {
    by_address: Mutex<BTreeMap<u64, (cl_mem, u64)>>,
    taken: AtomicU64,
    queues: Mutex<Vec<Weak<Queue>>>,
}

// SAFETY: handles, which OpenCL allows any thread to use.
unsafe impl Send for Pieces {}
// SAFETY: as above.
unsafe impl Sync for Pieces {}

fn locked<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pieces {
    fn add(&self, buffer: cl_mem, bytes: u64) -> u64 {
        let room = (bytes + 1).next_multiple_of(APART);
        let start = FIRST_ADDRESS + self.taken.fetch_add(room, Ordering::Relaxed);
        locked(&self.by_address).insert(start, (buffer, bytes));
        start
    }

    /// The buffer that an address lies in, and how far from its start; no buffer for no address, which operands without elements
    /// have.
    pub fn find(&self, at: u64) -> (cl_mem, usize) {
        if at == 0 {
            return (std::ptr::null_mut(), 0);
        }
        match locked(&self.by_address).range(..=at).next_back() {
            Some((start, (buffer, bytes))) if at - start <= *bytes => (*buffer, (at - start) as usize),
            _ => bug!("no piece of memory of the device is at {at:#x}"),
        }
    }
}

/// Everything that was started on a device has ended.
pub fn wait_for_all(device: &Accelerator) {
    let queues: Vec<Arc<Queue>> = locked(&device.pieces.queues).iter().filter_map(Weak::upgrade).collect();
    for queue in queues {
        let _ = queue.wait();
    }
}

/// An order of work, and the memory that was taken in it.
pub struct Queue {
    pub on: Arc<Accelerator>,
    pub raw: cl_command_queue,
    pub held: AtomicU64,
    /// Given back and kept, by size: who takes one comes behind who used it.
    kept: Mutex<BTreeMap<u64, Vec<cl_mem>>>,
}

// SAFETY: handles, which OpenCL allows any thread to use.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    /// # Errors
    /// E0722.
    pub fn new(on: Arc<Accelerator>) -> Result<Arc<Queue>, Fault> {
        let mut status = CL_SUCCESS;
        let made = on.api.clCreateCommandQueueWithProperties(on.context, on.device, std::ptr::null(), &mut status);
        let Some(raw) = present(made).filter(|_| status == CL_SUCCESS) else {
            return Err(on.stopped("takes no work", if made.is_none() { code(None) } else { status }));
        };
        let queue = Arc::new(Queue { on: on.clone(), raw, held: AtomicU64::new(0), kept: Mutex::default() });
        let mut all = locked(&on.pieces.queues);
        all.retain(|q| q.strong_count() > 0);
        all.push(Arc::downgrade(&queue));
        Ok(queue)
    }

    /// Everything that was started has ended.
    ///
    /// # Errors
    /// E0722.
    pub fn wait(&self) -> Result<(), Fault> {
        self.on.checked("stopped", self.on.api.clFinish(self.raw))
    }

    /// New memory, at least one byte.
    ///
    /// # Errors
    /// E0710, with what is held.
    pub fn take(self: &Arc<Queue>, id: DeviceId, bytes: u64) -> Result<Piece, Fault> {
        let size = bytes.max(1);
        let kept = locked(&self.kept).get_mut(&size).and_then(Vec::pop);
        let buffer = match kept {
            Some(buffer) => buffer,
            None => self.created(size).or_else(|_| {
                // What is kept for later gives way.
                self.let_go();
                self.created(size)
            })?,
        };
        self.held.fetch_add(bytes, Ordering::Relaxed);
        let start = self.on.pieces.add(buffer, bytes);
        Ok(Piece { id, queue: self.clone(), buffer, start, bytes })
    }

    fn created(&self, size: u64) -> Result<cl_mem, Fault> {
        let on = &self.on;
        if size > on.facts.largest {
            return Err(self.no_room(size));
        }
        let mut status = CL_SUCCESS;
        let nothing = std::ptr::null_mut();
        let made = present(on.api.clCreateBuffer(on.context, CL_MEM_READ_WRITE, size as usize, nothing, &mut status));
        made.filter(|_| status == CL_SUCCESS).ok_or_else(|| match status {
            CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY | CL_INVALID_BUFFER_SIZE => {
                self.no_room(size)
            }
            e => on.stopped("gives no memory", e),
        })
    }

    fn no_room(&self, bytes: u64) -> Fault {
        let facts = &self.on.facts;
        let asked = format!("{} ({bytes} bytes) of memory of the device cannot be had", human_bytes(bytes));
        let held = human_bytes(self.held.load(Ordering::Relaxed));
        let (all, largest) = (human_bytes(facts.memory), human_bytes(facts.largest));
        Fault::new(710, asked)
            .note(format!("this program holds {held} there; it has {all}, and gives at most {largest} to one tensor"))
    }

    fn let_go(&self) {
        let _ = self.wait();
        for buffer in std::mem::take(&mut *locked(&self.kept)).into_values().flatten() {
            let _ = self.on.api.clReleaseMemObject(buffer);
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.let_go();
        let _ = self.on.api.clReleaseCommandQueue(self.raw);
    }
}

/// A piece of memory.
pub struct Piece {
    id: DeviceId,
    queue: Arc<Queue>,
    buffer: cl_mem,
    start: u64,
    bytes: u64,
}

// SAFETY: a handle, which OpenCL allows any thread to use.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

impl Piece {
    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    pub fn buffer(&self) -> cl_mem {
        self.buffer
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.queue.held.fetch_sub(self.bytes, Ordering::Relaxed);
        locked(&self.queue.on.pieces.by_address).remove(&self.start);
        let mut kept = locked(&self.queue.kept);
        let alike = kept.entry(self.bytes.max(1)).or_default();
        match alike.len() < KEPT_MAX {
            true => alike.push(self.buffer),
            // OpenCL gives it back behind what uses it.
            false => {
                let _ = self.queue.on.api.clReleaseMemObject(self.buffer);
            }
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
        download(&self.queue, self.buffer, 0, to)
    }
}

/// Brings bytes of a buffer to the host, as what was started before leaves them.
///
/// # Errors
/// E0722.
pub fn download(queue: &Queue, buffer: cl_mem, offset: usize, to: &mut [u8]) -> Result<(), Fault> {
    if to.is_empty() {
        return Ok(());
    }
    let (bytes, at) = (to.len(), to.as_mut_ptr().cast());
    let (none, event) = (std::ptr::null(), std::ptr::null_mut());
    let read = queue.on.api.clEnqueueReadBuffer(queue.raw, buffer, CL_TRUE, offset, bytes, at, 0, none, event);
    queue.on.checked("stopped", read)
}

//! A device of OpenCL as a device of plans: what is done there, in one order of work.

use super::memory::{Piece, Queue, download};
use super::{Accelerator, OpenClKernel};
use crate::buffer::poison;
use crate::device::{Address, Device, DeviceId, Memory};
use crate::fault::Fault;
use crate::gpu::{Launches, Work, loaded, stopped_at};
use crate::pool::Pool;
use opencl_dynamic_sys::constants::*;
use opencl_dynamic_sys::types::cl_mem;
use opencl_dynamic_sys::types::cl_platform::{cl_int, cl_uint};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tessera_abi::plan::{Kernel, Launch, StepOrigin, Stop};

/// Groups that a unit is given at most: more points than that are taken in turns.
const GROUPS_EACH: u64 = 128;
/// Bytes of scratch of one launch in the device's memory, at most, where two groups fit into it.
const SCRATCH_MAX: u64 = 256 << 20;

/// The device.
pub struct OpenClDevice {
    id: DeviceId,
    on: Arc<Accelerator>,
    /// Made at its first use, which is told what went wrong.
    queue: OnceLock<Result<Arc<Queue>, Fault>>,
    launches: Mutex<Launches<Piece>>,
    /// Knows whether the program is to end.
    pool: Arc<Pool>,
}

impl OpenClDevice {
    pub fn new(on: Arc<Accelerator>, pool: Arc<Pool>) -> OpenClDevice {
        OpenClDevice { id: DeviceId::another(), on, queue: OnceLock::new(), launches: Mutex::default(), pool }
    }

    fn launches(&self) -> MutexGuard<'_, Launches<Piece>> {
        self.launches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> Result<&Arc<Queue>, Fault> {
        self.queue.get_or_init(|| Queue::new(self.on.clone())).as_ref().map_err(Clone::clone)
    }

    fn find(&self, at: Address) -> (cl_mem, usize) {
        self.on.pieces.find(at as u64)
    }

    fn filled(&self, buffer: cl_mem, pattern: &[u8], offset: usize, bytes: usize) -> Result<(), Fault> {
        if bytes == 0 {
            return Ok(());
        }
        let (at, n, none) = (pattern.as_ptr().cast(), pattern.len(), std::ptr::null());
        let event = std::ptr::null_mut();
        let done = self.on.api.clEnqueueFillBuffer(self.queue()?.raw, buffer, at, n, offset, bytes, 0, none, event);
        self.on.checked("stopped", done)
    }

    fn copied(&self, from: (cl_mem, usize), to: (cl_mem, usize), bytes: u64) -> Result<(), Fault> {
        let (none, event, n) = (std::ptr::null(), std::ptr::null_mut(), bytes as usize);
        let done = self.on.api.clEnqueueCopyBuffer(self.queue()?.raw, from.0, to.0, from.1, to.1, n, 0, none, event);
        self.on.checked("stopped", done)
    }
}

impl Work for OpenClDevice {
    type Piece = Piece;

    fn take(&self, bytes: u64) -> Result<Piece, Fault> {
        self.queue()?.take(self.id, bytes)
    }

    fn bytes(piece: &Piece) -> u64 {
        piece.len()
    }

    fn empty(&self, piece: &Piece) -> Result<(), Fault> {
        self.filled(piece.buffer(), &[0], 0, piece.len() as usize)
    }

    fn read(&self, piece: &Piece, to: &mut [u8]) -> Result<(), Fault> {
        download(self.queue()?, piece.buffer(), 0, to)
    }

    fn wait(&self) -> Result<(), Fault> {
        self.queue()?.wait()
    }
}

impl Device for OpenClDevice {
    fn id(&self) -> DeviceId {
        self.id
    }

    fn alloc(&self, bytes: u64) -> Result<Arc<dyn Memory>, Fault> {
        let piece = self.take(bytes)?;
        if poison::shows() {
            // SAFETY: memory that was just taken.
            unsafe { self.spoil(piece.address(), bytes) };
        }
        Ok(Arc::new(piece))
    }

    unsafe fn upload(&self, from: &[u8], to: Address) -> Result<(), Fault> {
        if from.is_empty() {
            return Ok(());
        }
        let (buffer, offset) = self.find(to);
        let (bytes, at, none) = (from.len(), from.as_ptr().cast(), std::ptr::null());
        let event = std::ptr::null_mut();
        // The bytes have been read when it returns.
        let wait = CL_TRUE;
        let done = self.on.api.clEnqueueWriteBuffer(self.queue()?.raw, buffer, wait, offset, bytes, at, 0, none, event);
        self.on.checked("stopped", done)
    }

    unsafe fn download(&self, from: Address, to: &mut [u8]) -> Result<(), Fault> {
        if to.is_empty() {
            return Ok(());
        }
        let (buffer, offset) = self.find(from);
        download(self.queue()?, buffer, offset, to)
    }

    unsafe fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), Fault> {
        if bytes == 0 || from == to {
            return Ok(());
        }
        let (source, target) = (self.find(from), self.find(to));
        if (from as u64).abs_diff(to as u64) >= bytes {
            return self.copied(source, target, bytes);
        }
        // Ends that overlap go by way of a third place.
        let between = self.take(bytes)?;
        self.copied(source, (between.buffer(), 0), bytes)?;
        self.copied((between.buffer(), 0), target, bytes)
    }

    unsafe fn spoil(&self, at: Address, bytes: u64) {
        if bytes > 0 {
            let (buffer, offset) = self.find(at);
            // Whole words, and then the rest. That it failed shows at the next call.
            let whole = (bytes - bytes % 4) as usize;
            let _ = self.filled(buffer, &poison::WORD, offset, whole);
            let _ = self.filled(buffer, &poison::WORD[..1], offset + whole, bytes as usize - whole);
        }
    }

    unsafe fn launch(
        &self,
        kernel: &Kernel,
        launch: &Launch,
        bufs: &[Address],
        words: &[u64],
        origin: StepOrigin,
    ) -> Result<(), Stop> {
        let OpenClKernel { function, shape } = loaded(kernel);
        shape.takes(kernel, bufs.len(), words.len());
        if launch.grid == 0 {
            return Ok(());
        }
        let stop = |f: Fault| stopped_at(f, Some(origin));
        let most = GROUPS_EACH * u64::from(self.on.facts.units);
        let blocks = shape.blocks(launch.grid, most, SCRATCH_MAX);
        let groups = blocks * u64::from(shape.block / shape.group);
        let mut launches = self.launches();
        let begun = launches.begin(self, shape, launch, groups, origin)?;
        let own = [begun.scratch, begun.records].map(|p| p.map_or(std::ptr::null_mut(), Piece::buffer));
        let found: Vec<(cl_mem, usize)> = bufs.iter().map(|b| self.find(*b)).collect();
        let buffers = found.iter().map(|f| f.0).chain(own);
        let offsets = found.iter().map(|f| f.1 as u64);
        let behind = [0, launch.grid, begun.number];
        let values = offsets.chain(words.iter().copied()).chain(behind);
        // Both are 8 bytes.
        let args: Vec<u64> = buffers.map(|b| b as u64).chain(values).collect();
        let queue = self.queue().map_err(stop)?;
        let done = self.launched(queue, function, &args, blocks as usize, shape.block as usize);
        done.map_err(|e| stop(self.on.stopped(&format!("did not take `{}`", kernel.name), e)))
    }

    fn sync(&self) -> Result<(), Stop> {
        self.launches().look(self)
    }

    fn settle(&self) -> Result<(), Stop> {
        self.launches().settle(self)
    }

    fn is_interrupted(&self) -> bool {
        self.pool.is_interrupted()
    }
}

impl OpenClDevice {
    /// Sets all arguments and starts the kernel.
    fn launched(
        &self,
        queue: &Queue,
        function: &super::program::Function,
        args: &[u64],
        blocks: usize,
        block: usize,
    ) -> Result<(), cl_int> {
        let api = self.on.api;
        let answer = |status| match super::api::code(status) {
            CL_SUCCESS => Ok(()),
            e => Err(e),
        };
        let kernel = function.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        for (n, arg) in args.iter().enumerate() {
            answer(api.clSetKernelArg(kernel.0, n as cl_uint, size_of::<u64>(), (&raw const *arg).cast()))?;
        }
        let (threads, of_block) = ([blocks * block], [block]);
        let (none, start, event) = (std::ptr::null(), std::ptr::null(), std::ptr::null_mut());
        let (threads, of_block) = (threads.as_ptr(), of_block.as_ptr());
        let done = api.clEnqueueNDRangeKernel(queue.raw, kernel.0, 1, start, threads, of_block, 0, none, event);
        answer(done)?;
        // Work begins now: some drivers wait for more of it.
        answer(api.clFlush(queue.raw))
    }
}

//! A device of OpenCL as a device of plans: what is done there, in one order of work.

use super::memory::{Piece, Queue, download};
use super::{Accelerator, OpenClKernel};
use crate::buffer::poison;
use crate::device::{Address, Device, DeviceId, Memory};
use crate::fault::Fault;
use crate::gpu::{RECORD, WATCHED_MAX, Watched, stopped_at, told};
use crate::pool::Pool;
use opencl_dynamic_sys::constants::*;
use opencl_dynamic_sys::types::cl_mem;
use opencl_dynamic_sys::types::cl_platform::{cl_int, cl_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tessera_abi::plan::{Code, Kernel, Launch, StepOrigin, Stop};
use tessera_base::bug;

/// Groups that a unit is given at most: more points than that are taken in turns.
const GROUPS_EACH: u64 = 128;
/// Bytes of scratch of one launch in the device's memory, at most, where two groups fit into it.
const SCRATCH_MAX: u64 = 256 << 20;

/// What grows with what is launched.
#[derive(Default)]
struct State {
    scratch: Option<Piece>,
    /// Records of groups; the first is a word that is set where there is one.
    records: Option<Piece>,
    launches: u64,
    watched: Vec<Watched>,
}

/// The device.
pub struct OpenClDevice {
    id: DeviceId,
    queue: Arc<Queue>,
    state: Mutex<State>,
    /// Knows whether the program is to end.
    pool: Arc<Pool>,
}

impl OpenClDevice {
    /// # Errors
    /// E0722.
    pub fn new(on: Arc<Accelerator>, pool: Arc<Pool>) -> Result<OpenClDevice, Fault> {
        Ok(OpenClDevice { id: DeviceId::another(), queue: Queue::new(on)?, state: Mutex::default(), pool })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on(&self) -> &Accelerator {
        &self.queue.on
    }

    fn find(&self, at: Address) -> (cl_mem, usize) {
        self.on().pieces.find(at as u64)
    }

    /// At least so many bytes, which nobody else uses.
    fn room(&self, place: &mut Option<Piece>, bytes: u64) -> Result<cl_mem, Fault> {
        match place {
            Some(p) if p.len() >= bytes => Ok(p.buffer()),
            _ => {
                // Given back behind what uses it.
                *place = None;
                Ok(place.insert(self.queue.take(self.id, bytes)?).buffer())
            }
        }
    }

    fn filled(&self, buffer: cl_mem, pattern: &[u8], offset: usize, bytes: usize) -> Result<(), Fault> {
        if bytes == 0 {
            return Ok(());
        }
        let (at, n, none) = (pattern.as_ptr().cast(), pattern.len(), std::ptr::null());
        let event = std::ptr::null_mut();
        let done = self.on().api.clEnqueueFillBuffer(self.queue.raw, buffer, at, n, offset, bytes, 0, none, event);
        self.on().checked("stopped", done)
    }

    fn copied(&self, from: (cl_mem, usize), to: (cl_mem, usize), bytes: u64) -> Result<(), Fault> {
        let (none, event, n) = (std::ptr::null(), std::ptr::null_mut(), bytes as usize);
        let done = self.on().api.clEnqueueCopyBuffer(self.queue.raw, from.0, to.0, from.1, to.1, n, 0, none, event);
        self.on().checked("stopped", done)
    }

    /// Where groups of a launch with checks leave their records, all of them empty the first time.
    ///
    /// # Errors
    /// Of an earlier launch, whose records have to give way; or that there is no room.
    fn records(&self, state: &mut State, groups: u64) -> Result<cl_mem, Stop> {
        let stop = |f: Fault| stopped_at(f, None);
        let bytes = (groups + 1) * RECORD as u64;
        if let Some(records) = state.records.as_ref().filter(|r| r.len() >= bytes) {
            return Ok(records.buffer());
        }
        // What stands in the old ones is told first.
        self.look(state)?;
        let buffer = self.room(&mut state.records, bytes).map_err(stop)?;
        self.filled(buffer, &[0; 8], 0, bytes as usize).map_err(stop)?;
        Ok(buffer)
    }

    /// Waits, and says which launch was the first to find a position out of range.
    fn look(&self, state: &mut State) -> Result<(), Stop> {
        let stop = |f: Fault| stopped_at(f, None);
        let watched = std::mem::take(&mut state.watched);
        let Some(records) = state.records.as_ref().filter(|_| !watched.is_empty()) else {
            return self.queue.wait().map_err(stop);
        };
        let mut any = [0u8; 8];
        download(&self.queue, records.buffer(), 0, &mut any).map_err(stop)?;
        if any == [0; 8] {
            return Ok(());
        }
        let mut bytes = vec![0u8; records.len() as usize];
        download(&self.queue, records.buffer(), 0, &mut bytes).map_err(stop)?;
        self.filled(records.buffer(), &[0; 8], 0, bytes.len()).map_err(stop)?;
        Err(told(&bytes, &watched))
    }
}

impl Device for OpenClDevice {
    fn id(&self) -> DeviceId {
        self.id
    }

    fn alloc(&self, bytes: u64) -> Result<Arc<dyn Memory>, Fault> {
        let piece = self.queue.take(self.id, bytes)?;
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
        let done = self.on().api.clEnqueueWriteBuffer(self.queue.raw, buffer, wait, offset, bytes, at, 0, none, event);
        self.on().checked("stopped", done)
    }

    unsafe fn download(&self, from: Address, to: &mut [u8]) -> Result<(), Fault> {
        if to.is_empty() {
            return Ok(());
        }
        let (buffer, offset) = self.find(from);
        download(&self.queue, buffer, offset, to)
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
        let between = self.queue.take(self.id, bytes)?;
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
        let loaded = match &kernel.code {
            Code::Loaded(code) => code.downcast_ref::<OpenClKernel>(),
            Code::Host { .. } => None,
        };
        let Some(OpenClKernel { function, shape }) = loaded else {
            bug!("`{}` was loaded for another device", kernel.name)
        };
        if (bufs.len(), words.len()) != (shape.operands as usize, shape.words as usize) {
            bug!("`{}` takes other operands than it is given", kernel.name);
        }
        if launch.grid == 0 {
            return Ok(());
        }
        let stop = |f: Fault| stopped_at(f, Some(origin));
        let most = GROUPS_EACH * u64::from(self.on().facts.units);
        let blocks = shape.blocks(launch.grid, most, SCRATCH_MAX);
        let groups = blocks * u64::from(shape.block / shape.group);
        let mut state = self.state();
        state.launches += 1;
        let number = state.launches;
        let nothing: cl_mem = std::ptr::null_mut();
        let scratch = match shape.scratch {
            0 => nothing,
            n => self.room(&mut state.scratch, n * groups).map_err(stop)?,
        };
        let records = match launch.checks.is_empty() {
            true => nothing,
            false => {
                let buffer =
                    self.records(&mut state, groups).map_err(|s| Stop { origin: s.origin.or(Some(origin)), ..s })?;
                // Launches that nobody has asked about yet: in a long loop they are looked at now and then.
                if state.watched.len() >= WATCHED_MAX {
                    self.look(&mut state)?;
                }
                state.watched.push(Watched { number, checks: launch.checks.clone(), origin });
                buffer
            }
        };
        let found: Vec<(cl_mem, usize)> = bufs.iter().map(|b| self.find(*b)).collect();
        let buffers = found.iter().map(|f| f.0).chain([scratch, records]);
        let offsets = found.iter().map(|f| f.1 as u64);
        let behind = [0, launch.grid, number];
        let values = offsets.chain(words.iter().copied()).chain(behind);
        // Both are 8 bytes.
        let args: Vec<u64> = buffers.map(|b| b as u64).chain(values).collect();
        let done = self.launched(function, &args, blocks as usize, shape.block as usize);
        done.map_err(|e| stop(self.on().stopped(&format!("did not take `{}`", kernel.name), e)))
    }

    fn sync(&self) -> Result<(), Stop> {
        self.look(&mut self.state())
    }

    fn settle(&self) -> Result<(), Stop> {
        let mut state = self.state();
        if state.watched.is_empty() { Ok(()) } else { self.look(&mut state) }
    }

    fn is_interrupted(&self) -> bool {
        self.pool.is_interrupted()
    }
}

impl OpenClDevice {
    /// Sets all arguments and starts the kernel.
    fn launched(
        &self,
        function: &super::program::Function,
        args: &[u64],
        blocks: usize,
        block: usize,
    ) -> Result<(), cl_int> {
        let api = self.on().api;
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
        let done = api.clEnqueueNDRangeKernel(self.queue.raw, kernel.0, 1, start, threads, of_block, 0, none, event);
        answer(done)?;
        // Work begins now: some drivers wait for more of it.
        answer(api.clFlush(self.queue.raw))
    }
}

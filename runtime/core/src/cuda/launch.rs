//! A GPU as a device: what a plan does there, in one order of work.

use super::memory::{Piece, Stream, download};
use super::{Function, Gpu, stopped};
use crate::buffer::poison;
use crate::device::{Address, Device, DeviceId, Memory, Taken};
use crate::fault::Fault;
use crate::gpu::{LaunchShape, RECORD, WATCHED_MAX, Watched, stopped_at, told};
use crate::pool::Pool;
use cudarc::driver::{result, sys};
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tessera_abi::plan::{Code, Kernel, Launch, StepOrigin, Stop};
use tessera_base::bug;

/// Blocks that a multiprocessor is given at most: more points than that are taken in turns.
const BLOCKS_EACH: u64 = 32;
/// Bytes of scratch of one launch in the GPU's memory, at most, where two groups fit into it.
const SCRATCH_MAX: u64 = 256 << 20;

/// A kernel as the device launches it.
pub struct CudaKernel {
    pub function: Function,
    pub shape: LaunchShape,
}

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
pub struct CudaDevice {
    id: DeviceId,
    stream: Arc<Stream>,
    state: Mutex<State>,
    /// Knows whether the program is to end.
    pool: Arc<Pool>,
}

impl CudaDevice {
    /// # Errors
    /// E0722.
    pub fn new(gpu: Arc<Gpu>, pool: Arc<Pool>) -> Result<CudaDevice, Fault> {
        let stream = Arc::new(Stream::new(gpu)?);
        Ok(CudaDevice { id: DeviceId::another(), stream, state: Mutex::default(), pool })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, e: result::DriverError) -> Fault {
        stopped(&self.stream.gpu, "stopped", e)
    }

    /// At least so many bytes, which nobody else uses. What is there is given back behind what uses it.
    fn room(&self, place: &mut Option<Piece>, bytes: u64) -> Result<u64, Fault> {
        if place.as_ref().is_none_or(|p| p.len() < bytes) {
            *place = None;
            *place = Some(self.stream.take(self.id, bytes)?);
        }
        Ok(place.as_ref().map_or(0, |p| p.address() as u64))
    }

    /// Where groups of a launch with checks leave their records, all of them empty the first time.
    ///
    /// # Errors
    /// Of an earlier launch, whose records have to give way; or that there is no room.
    fn records(&self, state: &mut State, groups: u64) -> Result<u64, Stop> {
        let stop = |f: Fault| stopped_at(f, None);
        let bytes = (groups + 1) * RECORD as u64;
        let before = state.records.as_ref().map(Piece::len);
        if before.is_some_and(|n| n >= bytes) {
            return self.room(&mut state.records, bytes).map_err(stop);
        }
        // What stands in the old ones is told first.
        self.look(state)?;
        let at = self.room(&mut state.records, bytes).map_err(stop)?;
        // SAFETY: a piece of so many bytes that nobody else uses.
        let emptied = unsafe { result::memset_d8_async(at, 0, bytes as usize, self.stream.raw) };
        emptied.map_err(|e| stop(self.failed(e)))?;
        Ok(at)
    }

    /// Waits, and says which launch was the first to find a position out of range.
    fn look(&self, state: &mut State) -> Result<(), Stop> {
        let stop = |f: Fault| stopped_at(f, None);
        let watched = std::mem::take(&mut state.watched);
        let Some(records) = state.records.as_ref().filter(|_| !watched.is_empty()) else {
            return self.stream.wait().map_err(stop);
        };
        let at = records.address() as sys::CUdeviceptr;
        let mut any = [0u8; 8];
        // SAFETY: the first word of the records.
        unsafe { download(&self.stream, at, &mut any) }.map_err(stop)?;
        if any == [0; 8] {
            return Ok(());
        }
        let mut bytes = vec![0u8; records.len() as usize];
        // SAFETY: all of the records; they are emptied for who runs on.
        unsafe {
            download(&self.stream, at, &mut bytes).map_err(stop)?;
            result::memset_d8_async(at, 0, bytes.len(), self.stream.raw).map_err(|e| stop(self.failed(e)))?;
        }
        Err(told(&bytes, &watched))
    }
}

impl Device for CudaDevice {
    fn id(&self) -> DeviceId {
        self.id
    }

    fn alloc(&self, bytes: u64) -> Result<Arc<dyn Memory>, Fault> {
        let piece = self.stream.take(self.id, bytes)?;
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
        self.stream.gpu.enter()?;
        // SAFETY: the caller's promise. The driver has read memory of this kind when it returns.
        unsafe { result::memcpy_htod_async(to as sys::CUdeviceptr, from, self.stream.raw) }.map_err(|e| self.failed(e))
    }

    unsafe fn download(&self, from: Address, to: &mut [u8]) -> Result<(), Fault> {
        // SAFETY: the caller's promise.
        unsafe { download(&self.stream, from as sys::CUdeviceptr, to) }
    }

    unsafe fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), Fault> {
        if bytes == 0 || from == to {
            return Ok(());
        }
        self.stream.gpu.enter()?;
        let apart = (from as u64).abs_diff(to as u64);
        let (from, to, raw) = (from as sys::CUdeviceptr, to as sys::CUdeviceptr, self.stream.raw);
        // SAFETY: the caller's promise; ends that overlap go by way of a third place.
        unsafe {
            if apart >= bytes {
                return result::memcpy_dtod_async(to, from, bytes as usize, raw).map_err(|e| self.failed(e));
            }
            let between = self.stream.take(self.id, bytes)?;
            let at = between.address() as sys::CUdeviceptr;
            result::memcpy_dtod_async(at, from, bytes as usize, raw).map_err(|e| self.failed(e))?;
            result::memcpy_dtod_async(to, at, bytes as usize, raw).map_err(|e| self.failed(e))
        }
    }

    unsafe fn spoil(&self, at: Address, bytes: u64) {
        if bytes > 0 && self.stream.gpu.enter().is_ok() {
            let (at, word) = (at as sys::CUdeviceptr, u32::from_le_bytes(poison::WORD));
            // SAFETY: the caller's promise; pieces begin at multiples of 4. That it failed shows at the next call.
            unsafe {
                let _ = sys::cuMemsetD32Async(at, word, bytes as usize / 4, self.stream.raw);
                let rest = bytes % 4;
                let _ = sys::cuMemsetD8Async(at + (bytes - rest), poison::WORD[0], rest as usize, self.stream.raw);
            }
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
            Code::Loaded(code) => code.downcast_ref::<CudaKernel>(),
            Code::Host { .. } => None,
        };
        let Some(CudaKernel { function, shape }) = loaded else {
            bug!("`{}` was loaded for another device", kernel.name)
        };
        if (bufs.len(), words.len()) != (shape.operands as usize, shape.words as usize) {
            bug!("`{}` takes other operands than it is given", kernel.name);
        }
        if launch.grid == 0 {
            return Ok(());
        }
        let stop = |f: Fault| stopped_at(f, Some(origin));
        self.stream.gpu.enter().map_err(stop)?;
        let most = BLOCKS_EACH * u64::from(self.stream.gpu.facts().multiprocessors);
        let blocks = shape.blocks(launch.grid, most, SCRATCH_MAX);
        let groups = blocks * u64::from(shape.block / shape.group);
        let mut state = self.state();
        state.launches += 1;
        let number = state.launches;
        let scratch = match shape.scratch {
            0 => 0,
            n => self.room(&mut state.scratch, n * groups).map_err(stop)?,
        };
        let records = match launch.checks.is_empty() {
            true => 0,
            false => {
                let at =
                    self.records(&mut state, groups).map_err(|s| Stop { origin: s.origin.or(Some(origin)), ..s })?;
                // Launches that nobody has asked about yet: in a long loop they are looked at now and then.
                if state.watched.len() >= WATCHED_MAX {
                    self.look(&mut state)?;
                }
                state.watched.push(Watched { number, checks: launch.checks.clone(), origin });
                at
            }
        };
        let addresses = bufs.iter().map(|b| *b as u64).chain([scratch, records]);
        let behind = [0, launch.grid, number];
        let mut values: Vec<u64> = addresses.chain(words.iter().copied()).chain(behind).collect();
        let mut params: Vec<*mut c_void> = values.iter_mut().map(|v| (&raw mut *v).cast()).collect();
        // SAFETY: the kernel takes as many words as were counted above, and its operands have the bytes that it was compiled
        // for: the caller's promise.
        let launched = unsafe {
            let (grid, block) = ((blocks as u32, 1, 1), (shape.block, 1, 1));
            result::launch_kernel(function.function, grid, block, shape.shared as u32, self.stream.raw, &mut params)
        };
        launched.map_err(|e| stop(stopped(&self.stream.gpu, &format!("did not take `{}`", kernel.name), e)))
    }

    fn taken(&self, kernel: &Kernel, launch: &Launch) -> Option<Taken> {
        let Code::Loaded(code) = &kernel.code else { return None };
        let CudaKernel { function, shape } = code.downcast_ref()?;
        function.taken(shape.block, shape.shared, launch.grid)
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

impl CudaDevice {
    /// Bytes that the program holds on the device.
    pub fn held(&self) -> u64 {
        self.stream.held.load(Ordering::Relaxed)
    }
}

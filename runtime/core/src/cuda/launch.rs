//! A GPU as a device: what a plan does there, in one order of work.

use super::memory::{Piece, Stream, download};
use super::{Function, Gpu, stopped};
use crate::buffer::poison;
use crate::device::{Address, Device, DeviceId, Memory, Taken};
use crate::fault::Fault;
use crate::gpu::{LaunchShape, Launches, Work, loaded, stopped_at};
use crate::pool::Pool;
use cudarc::driver::{result, sys};
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tessera_abi::plan::{Kernel, Launch, StepOrigin, Stop};

/// Blocks that a multiprocessor is given at most: more points than that are taken in turns.
const BLOCKS_EACH: u64 = 32;
/// Bytes of scratch of one launch in the GPU's memory, at most, where two groups fit into it.
const SCRATCH_MAX: u64 = 256 << 20;

/// A kernel as the device launches it.
pub struct CudaKernel {
    pub function: Function,
    pub shape: LaunchShape,
}

/// The device.
pub struct CudaDevice {
    id: DeviceId,
    gpu: Arc<Gpu>,
    /// Made at its first use, which is told what went wrong.
    stream: OnceLock<Result<Arc<Stream>, Fault>>,
    launches: Mutex<Launches<Piece>>,
    /// Knows whether the program is to end.
    pool: Arc<Pool>,
}

impl CudaDevice {
    pub fn new(gpu: Arc<Gpu>, pool: Arc<Pool>) -> CudaDevice {
        CudaDevice { id: DeviceId::another(), gpu, stream: OnceLock::new(), launches: Mutex::default(), pool }
    }

    fn launches(&self) -> MutexGuard<'_, Launches<Piece>> {
        self.launches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stream(&self) -> Result<&Arc<Stream>, Fault> {
        let made = self.stream.get_or_init(|| Stream::new(self.gpu.clone()).map(Arc::new));
        made.as_ref().map_err(Clone::clone)
    }

    fn failed(&self, e: result::DriverError) -> Fault {
        stopped(&self.gpu, "stopped", e)
    }
}

impl Work for CudaDevice {
    type Piece = Piece;

    fn take(&self, bytes: u64) -> Result<Piece, Fault> {
        self.stream()?.take(self.id, bytes)
    }

    fn bytes(piece: &Piece) -> u64 {
        piece.len()
    }

    fn empty(&self, piece: &Piece) -> Result<(), Fault> {
        let (at, raw) = (piece.address() as sys::CUdeviceptr, self.stream()?.raw);
        // SAFETY: a piece of so many bytes.
        unsafe { result::memset_d8_async(at, 0, piece.len() as usize, raw) }.map_err(|e| self.failed(e))
    }

    fn read(&self, piece: &Piece, to: &mut [u8]) -> Result<(), Fault> {
        // SAFETY: the first bytes of a piece.
        unsafe { download(self.stream()?, piece.address() as sys::CUdeviceptr, to) }
    }

    fn wait(&self) -> Result<(), Fault> {
        self.stream()?.wait()
    }
}

impl Device for CudaDevice {
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
        let raw = self.stream()?.raw;
        self.gpu.enter()?;
        // SAFETY: the caller's promise. The driver has read memory of this kind when it returns.
        unsafe { result::memcpy_htod_async(to as sys::CUdeviceptr, from, raw) }.map_err(|e| self.failed(e))
    }

    unsafe fn download(&self, from: Address, to: &mut [u8]) -> Result<(), Fault> {
        // SAFETY: the caller's promise.
        unsafe { download(self.stream()?, from as sys::CUdeviceptr, to) }
    }

    unsafe fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), Fault> {
        if bytes == 0 || from == to {
            return Ok(());
        }
        let raw = self.stream()?.raw;
        self.gpu.enter()?;
        let apart = (from as u64).abs_diff(to as u64);
        let (from, to) = (from as sys::CUdeviceptr, to as sys::CUdeviceptr);
        // SAFETY: the caller's promise; ends that overlap go by way of a third place.
        unsafe {
            if apart >= bytes {
                return result::memcpy_dtod_async(to, from, bytes as usize, raw).map_err(|e| self.failed(e));
            }
            let between = self.take(bytes)?;
            let at = between.address() as sys::CUdeviceptr;
            result::memcpy_dtod_async(at, from, bytes as usize, raw).map_err(|e| self.failed(e))?;
            result::memcpy_dtod_async(to, at, bytes as usize, raw).map_err(|e| self.failed(e))
        }
    }

    unsafe fn spoil(&self, at: Address, bytes: u64) {
        if let Ok(stream) = self.stream()
            && bytes > 0
            && self.gpu.enter().is_ok()
        {
            let (at, word) = (at as sys::CUdeviceptr, u32::from_le_bytes(poison::WORD));
            // SAFETY: the caller's promise; pieces begin at multiples of 4. That it failed shows at the next call.
            unsafe {
                let _ = sys::cuMemsetD32Async(at, word, bytes as usize / 4, stream.raw);
                let rest = bytes % 4;
                let _ = sys::cuMemsetD8Async(at + (bytes - rest), poison::WORD[0], rest as usize, stream.raw);
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
        let CudaKernel { function, shape } = loaded(kernel);
        shape.takes(kernel, bufs.len(), words.len());
        if launch.grid == 0 {
            return Ok(());
        }
        let stop = |f: Fault| stopped_at(f, Some(origin));
        let stream = self.stream().map_err(stop)?;
        self.gpu.enter().map_err(stop)?;
        let most = BLOCKS_EACH * u64::from(self.gpu.facts().multiprocessors);
        let blocks = shape.blocks(launch.grid, most, SCRATCH_MAX);
        let groups = blocks * u64::from(shape.block / shape.group);
        let mut launches = self.launches();
        let begun = launches.begin(self, shape, launch, groups, origin)?;
        let own = [begun.scratch, begun.records].map(|p| p.map_or(0, |p| p.address() as u64));
        let addresses = bufs.iter().map(|b| *b as u64).chain(own);
        let behind = [0, launch.grid, begun.number];
        let mut values: Vec<u64> = addresses.chain(words.iter().copied()).chain(behind).collect();
        let mut params: Vec<*mut c_void> = values.iter_mut().map(|v| (&raw mut *v).cast()).collect();
        // SAFETY: the kernel takes as many words as were counted above, and its operands have the bytes that it was compiled
        // for: the caller's promise.
        let launched = unsafe {
            let (grid, block) = ((blocks as u32, 1, 1), (shape.block, 1, 1));
            result::launch_kernel(function.function, grid, block, shape.shared as u32, stream.raw, &mut params)
        };
        launched.map_err(|e| stop(stopped(&self.gpu, &format!("did not take `{}`", kernel.name), e)))
    }

    fn taken(&self, kernel: &Kernel, launch: &Launch) -> Option<Taken> {
        let CudaKernel { function, shape } = loaded(kernel);
        function.taken(shape.block, shape.shared, launch.grid)
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

impl CudaDevice {
    /// Bytes that the program holds on the device.
    pub fn held(&self) -> u64 {
        self.stream().map_or(0, |s| s.held.load(Ordering::Relaxed))
    }
}

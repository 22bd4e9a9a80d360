//! A device without hardware: memory of its own, and kernels that are functions of copies of their operands.
//!
//! Every address is held against what was allocated: a plan that takes memory of the host for the device's, or the other way
//! round, stops here as it would on a GPU. What it did is counted.

use crate::buffer::poison;
use crate::device::{Address, Device, DeviceId, Memory};
use crate::fault::{self, Fault};
use crate::memory::OutOfMemory;
use crate::pool::Pool;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tessera_abi::plan::{Code, Kernel, Launch, StepOrigin, Stop};
use tessera_base::bug;

/// Addresses begin where no process has memory.
const FIRST: u64 = 1 << 56;
/// Between two pieces: an access a little behind one is in none.
const GAP: u64 = 4096;

/// What is allocated, by address.
#[derive(Default)]
struct Pieces {
    all: BTreeMap<u64, Vec<u8>>,
    next: u64,
    counts: Counts,
}

impl Pieces {
    /// The bytes at an address of the device.
    fn bytes(&mut self, at: Address, bytes: u64) -> &mut [u8] {
        if bytes == 0 {
            return &mut [];
        }
        let at = at as u64;
        let piece = self.all.range_mut(..=at).next_back();
        let part = piece.and_then(|(start, piece)| {
            let first = (at - start) as usize;
            piece.get_mut(first..first.checked_add(bytes as usize)?)
        });
        match part {
            Some(part) => part,
            None => bug!("{bytes} bytes at {at:#x} are no memory of the device"),
        }
    }
}

/// What a device and its memory share.
type Shared = Arc<Mutex<Pieces>>;

fn pieces(shared: &Shared) -> MutexGuard<'_, Pieces> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device.
pub struct EmulatedDevice {
    id: DeviceId,
    memory: Shared,
    /// Knows whether the program is to end.
    pool: Arc<Pool>,
}

impl EmulatedDevice {
    pub fn new(pool: Arc<Pool>) -> EmulatedDevice {
        EmulatedDevice { id: DeviceId::another(), memory: Arc::default(), pool }
    }

    /// What it did so far.
    pub fn counts(&self) -> Counts {
        pieces(&self.memory).counts
    }
}

/// What a device did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    pub launches: u64,
    /// Bytes that came from the host.
    pub uploaded: u64,
    /// Bytes that went to the host.
    pub downloaded: u64,
    /// Bytes that were copied inside.
    pub copied: u64,
}

/// An operand of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    pub bytes: u64,
    pub written: bool,
}

/// What a kernel does with copies of its operands and its scalars; says what it refuses.
pub type EmulatedFn = dyn Fn(&mut [Vec<u8>], &[u64]) -> Result<(), String> + Send + Sync;

/// A kernel as the device launches it.
pub struct EmulatedKernel {
    pub operands: Vec<Operand>,
    pub run: Box<EmulatedFn>,
}

/// A piece of its memory.
struct Piece {
    id: DeviceId,
    memory: Shared,
    start: u64,
    bytes: u64,
}

impl Drop for Piece {
    fn drop(&mut self) {
        pieces(&self.memory).all.remove(&self.start);
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
        let mut pieces = pieces(&self.memory);
        pieces.counts.downloaded += self.bytes;
        to.copy_from_slice(pieces.bytes(self.address(), self.bytes));
        Ok(())
    }
}

impl Device for EmulatedDevice {
    fn id(&self) -> DeviceId {
        self.id
    }

    fn alloc(&self, bytes: u64) -> Result<Arc<dyn Memory>, Fault> {
        fault::room(bytes)?;
        let len = usize::try_from(bytes).map_err(|_| OutOfMemory { bytes })?;
        let mut piece = vec![];
        piece.try_reserve_exact(len).map_err(|_| OutOfMemory { bytes })?;
        piece.resize(len, 0);
        poison::spoil(&mut piece);
        let mut pieces = pieces(&self.memory);
        let start = FIRST + pieces.next;
        pieces.next += (bytes + GAP).next_multiple_of(GAP);
        pieces.all.insert(start, piece);
        Ok(Arc::new(Piece { id: self.id, memory: self.memory.clone(), start, bytes }))
    }

    unsafe fn upload(&self, from: &[u8], to: Address) -> Result<(), Fault> {
        let mut pieces = pieces(&self.memory);
        pieces.counts.uploaded += from.len() as u64;
        pieces.bytes(to, from.len() as u64).copy_from_slice(from);
        Ok(())
    }

    unsafe fn download(&self, from: Address, to: &mut [u8]) -> Result<(), Fault> {
        let mut pieces = pieces(&self.memory);
        pieces.counts.downloaded += to.len() as u64;
        to.copy_from_slice(pieces.bytes(from, to.len() as u64));
        Ok(())
    }

    unsafe fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), Fault> {
        let mut pieces = pieces(&self.memory);
        pieces.counts.copied += bytes;
        let copied = pieces.bytes(from, bytes).to_vec();
        pieces.bytes(to, bytes).copy_from_slice(&copied);
        Ok(())
    }

    unsafe fn spoil(&self, at: Address, bytes: u64) {
        poison::spoil(pieces(&self.memory).bytes(at, bytes));
    }

    unsafe fn launch(
        &self,
        kernel: &Kernel,
        _: &Launch,
        bufs: &[Address],
        words: &[u64],
        origin: StepOrigin,
    ) -> Result<(), Stop> {
        let loaded = match &kernel.code {
            Code::Loaded(code) => code.downcast_ref::<EmulatedKernel>(),
            Code::Host { .. } => None,
        };
        let Some(EmulatedKernel { operands, run }) = loaded else {
            bug!("`{}` was loaded for another device", kernel.name)
        };
        // Operands may share memory: each is a copy, and those that are written go back.
        let mut copies: Vec<Vec<u8>> = {
            let mut pieces = pieces(&self.memory);
            pieces.counts.launches += 1;
            operands.iter().zip(bufs).map(|(o, &at)| pieces.bytes(at, o.bytes).to_vec()).collect()
        };
        run(&mut copies, words).map_err(|message| Stop { origin: Some(origin), ..message.into() })?;
        let mut pieces = pieces(&self.memory);
        for ((o, &at), copy) in operands.iter().zip(bufs).zip(&copies).filter(|((o, _), _)| o.written) {
            pieces.bytes(at, o.bytes).copy_from_slice(copy);
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Stop> {
        Ok(())
    }

    fn is_interrupted(&self) -> bool {
        self.pool.is_interrupted()
    }
}

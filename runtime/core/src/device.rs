//! Devices: what has memory that kernels work in, and launches them.
//!
//! A plan runs on one device. The processor of the host (a [`Pool`](crate::pool::Pool)) works in the memory of the process; a
//! device with memory of its own gets what a plan reads, and what it leaves is brought to the host when somebody asks for the
//! bytes ([`crate::storage`]).

use crate::fault::Fault;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tessera_abi::plan::{Kernel, Launch, StepOrigin, Stop};

/// An address in the memory of a device. Only that device follows it; of the host's processor it is a pointer.
pub type Address = *mut u8;

/// Which device memory belongs to: no two in a process are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceId(u64);

impl DeviceId {
    /// The host's processor, whoever runs kernels on it.
    pub const HOST: DeviceId = DeviceId(0);

    /// Of a device that was just opened.
    pub fn another() -> DeviceId {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        DeviceId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What a kernel takes of a multiprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Points of the launch.
    pub points: u64,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of memory that each thread has for what its registers do not hold.
    pub spilled: u32,
    /// Bytes that the threads of a block share.
    pub shared: u64,
    /// Warps that a multiprocessor holds at once, of this kernel and at most.
    pub warps: u32,
    pub warps_max: u32,
}

/// Bytes in the memory of a device that has memory of its own; given back when dropped.
pub trait Memory: Send + Sync {
    fn device(&self) -> DeviceId;

    /// Of the first byte, a multiple of 64.
    fn address(&self) -> Address;

    /// Brings the bytes to the host, as everything that was launched before leaves them: `to` is as long as the memory.
    ///
    /// # Errors
    /// What the device says, as for [`Device::sync`].
    fn download(&self, to: &mut [u8]) -> Result<(), Fault>;
}

/// Runs kernels. Methods are called in the order of the program by one thread at a time; what they start may still run when
/// they return, and happens in that order.
pub trait Device: Send + Sync {
    fn id(&self) -> DeviceId;

    /// Whether addresses are pointers of this process. Then nothing is transferred, and [`Device::alloc`], [`Device::upload`]
    /// and [`Device::download`] are not called.
    fn shares_host_memory(&self) -> bool {
        self.id() == DeviceId::HOST
    }

    /// New memory, whose content nobody may read before it is written.
    ///
    /// # Errors
    /// E0710.
    fn alloc(&self, bytes: u64) -> Result<Arc<dyn Memory>, Fault>;

    /// # Errors
    /// What the device says.
    ///
    /// # Safety
    /// `from.len()` bytes at `to` are memory of this device that nobody else uses.
    unsafe fn upload(&self, from: &[u8], to: Address) -> Result<(), Fault>;

    /// # Errors
    /// What the device says, as for [`Device::sync`].
    ///
    /// # Safety
    /// `to.len()` bytes at `from` are memory of this device.
    unsafe fn download(&self, from: Address, to: &mut [u8]) -> Result<(), Fault>;

    /// Copies inside the device.
    ///
    /// # Errors
    /// What the device says.
    ///
    /// # Safety
    /// Both ends are memory of this device with so many bytes, which may overlap.
    unsafe fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), Fault>;

    /// Makes what lies there unreadable, where the process wants to see who reads what was not written
    /// ([`crate::buffer::poison`]).
    ///
    /// # Safety
    /// As of [`Device::upload`].
    unsafe fn spoil(&self, at: Address, bytes: u64);

    /// Runs all points of a grid. `bufs` and `words` are what the kernel states; `origin` is the step's.
    ///
    /// # Errors
    /// A position from data that is out of range; what the device says. A device that has not finished says so later.
    ///
    /// # Safety
    /// Each of `bufs` has the bytes that the kernel was compiled for.
    unsafe fn launch(
        &self,
        kernel: &Kernel,
        launch: &Launch,
        bufs: &[Address],
        words: &[u64],
        origin: StepOrigin,
    ) -> Result<(), Stop>;

    /// What a kernel takes of the device, where it is a GPU that says so.
    fn taken(&self, _: &Kernel, _: &Launch) -> Option<Taken> {
        None
    }

    /// Waits for everything that was started.
    ///
    /// # Errors
    /// The first thing that went wrong since the last call.
    fn sync(&self) -> Result<(), Stop>;

    /// Waits where something that was launched may have found a position out of range: what it left is nobody's before
    /// that is known.
    ///
    /// # Errors
    /// As of [`Device::sync`].
    fn settle(&self) -> Result<(), Stop> {
        Ok(())
    }

    /// Whether somebody asked the program to end.
    fn is_interrupted(&self) -> bool;
}

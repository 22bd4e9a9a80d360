//! What kernels are made for, and where they run.
//!
//! A target is one file that implements [`Target`], and the [`Device`] that it opens. Everything before it is the same for
//! all: graphs, schedules for the target's machine, Tile IR, plans, caches, laws.

mod cpu;
mod cuda;
mod opencl;
mod amdgpu;
mod emulated;

use std::sync::Arc;
use tessera_abi::plan::Kernel;
use tessera_base::Limits;
use tessera_ir::schedule::Machine;
use tessera_ir::tile;
use tessera_llvm::{Emission, LlvmError};
use tessera_runtime::device::Device;
use tessera_runtime::gpu::Unusable;
use tessera_runtime::pool::Pool;

pub use crate::cli::Choice;
pub use amdgpu::Amdgpu;
pub use cpu::{Cpu, is_reference};
pub use cuda::Cuda;
pub use emulated::Emulated;
pub use opencl::OpenCl;

/// The target that is chosen, or the emulated device where programs are to be checked. Whether programs can run on it says
/// [`Target::ready`].
pub fn of(choice: Choice, checked: bool) -> Arc<dyn Target> {
    match choice {
        _ if checked => Arc::new(Emulated),
        Choice::Cpu => Arc::new(Cpu),
        Choice::Cuda => Arc::new(Cuda::first()),
        Choice::Opencl => Arc::new(OpenCl::first()),
        Choice::Amdgpu => Arc::new(Amdgpu::usual()),
        Choice::Auto => Some(Cuda::first()).filter(|t| t.ready().is_ok()).map_or(Arc::new(Cpu), |t| Arc::new(t)),
    }
}

/// From kernels of Tile IR to a device that runs them.
pub trait Target: Send + Sync {
    /// What the checker may ask.
    fn limits(&self) -> &'static Limits;

    /// Whether programs can run on it.
    ///
    /// # Errors
    /// Why they cannot.
    fn ready(&self) -> Result<(), Unusable> {
        Ok(())
    }

    /// What the cost model knows of the machine.
    fn machine(&self) -> Machine;

    /// What besides a kernel decides its object code: part of the key that it is kept by.
    fn fingerprint(&self) -> String;

    /// Object code of a kernel, as it is kept on disk. Called by many threads at once.
    ///
    /// # Errors
    /// E0601 where there is no compiler; E0603 where it refuses the code.
    fn compile(&self, kernel: &tile::Kernel) -> Result<Vec<u8>, LlvmError>;

    /// Whether a launch takes so many operands and words of host scalars.
    fn launch_takes(&self, _operands: u32, _words: u32) -> bool {
        true
    }

    /// A kernel that the target's devices launch, from its object code.
    ///
    /// # Errors
    /// E0603 where this is no object code of such a kernel.
    fn load(&self, object: &[u8], name: &str) -> Result<Kernel, LlvmError>;

    /// LLVM IR or assembly of a kernel, to be read.
    ///
    /// # Errors
    /// As of [`Target::compile`].
    fn text(&self, kernel: &tile::Kernel, _: Emission) -> Result<String, LlvmError> {
        Err(LlvmError::internal(format!("`{}` is for a target that shows no text", kernel.name)))
    }

    /// What LLVM makes of a module that is given as its text: the module, or (`assembly`) what a kernel becomes.
    ///
    /// # Errors
    /// E0601 where there is no compiler; what LLVM says of the text.
    fn again(&self, _: &str, _: bool) -> Result<String, LlvmError> {
        Err(LlvmError::internal("modules of LLVM are not for this target"))
    }

    /// Opens a device. Steps that run on the host take the threads of `pool`.
    fn device(&self, pool: &Arc<Pool>) -> Arc<dyn Device>;

    /// Whether the time of a kernel says anything: otherwise schedules are not searched by measuring.
    fn is_timed(&self) -> bool {
        true
    }
}

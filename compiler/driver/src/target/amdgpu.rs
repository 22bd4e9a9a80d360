//! AMD's GPUs, as far as their assembly: to be read and counted. `--target opencl` runs programs on them.

use super::Target;
use std::sync::Arc;
use tessera_abi::plan::Kernel;
use tessera_base::{Limits, bug, limits};
use tessera_ir::schedule::Machine;
use tessera_ir::tile;
use tessera_llvm::amdgpu::{self, AmdTarget};
use tessera_llvm::{Emission, LlvmError};
use tessera_runtime::device::Device;
use tessera_runtime::gpu::Unusable;
use tessera_runtime::pool::Pool;

/// The architecture of texts: that of the MI300.
const USUAL: &str = "gfx942";
/// Its second-level cache.
const CACHE: u64 = 4 << 20;

pub struct Amdgpu {
    architecture: AmdTarget,
}

impl Amdgpu {
    pub fn usual() -> Amdgpu {
        Amdgpu { architecture: AmdTarget::of(USUAL) }
    }
}

impl Target for Amdgpu {
    fn limits(&self) -> &'static Limits {
        &limits::AMDGPU
    }

    fn ready(&self) -> Result<(), Unusable> {
        Err(Unusable::new(
            "code for AMD's GPUs is only shown (`emit --ir amdgpu`)",
            "`--target opencl` runs programs on them, through their driver",
        ))
    }

    fn machine(&self) -> Machine {
        super::opencl::machine(CACHE)
    }

    fn fingerprint(&self) -> String {
        format!("llvm22.1;amdgpu;{USUAL}")
    }

    fn compile(&self, kernel: &tile::Kernel) -> Result<Vec<u8>, LlvmError> {
        Ok(amdgpu::text(kernel, &self.architecture)?.into_bytes())
    }

    fn load(&self, _: &[u8], name: &str) -> Result<Kernel, LlvmError> {
        Err(LlvmError::internal(format!("`{name}` is code for AMD's GPUs, which nothing launches")))
    }

    fn text(&self, kernel: &tile::Kernel, what: Emission) -> Result<String, LlvmError> {
        match what {
            Emission::Assembly => amdgpu::text(kernel, &self.architecture),
            Emission::Ir | Emission::Optimized => amdgpu::ir(kernel, &self.architecture, what == Emission::Optimized),
        }
    }

    fn again(&self, module: &str, assembly: bool) -> Result<String, LlvmError> {
        tessera_llvm::again(module, self.architecture.llvm(), assembly)
    }

    fn device(&self, _: &Arc<Pool>) -> Arc<dyn Device> {
        bug!("a device is wanted of a target that is not ready")
    }

    fn is_timed(&self) -> bool {
        false
    }
}

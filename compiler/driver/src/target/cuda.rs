//! NVIDIA's GPUs: PTX by LLVM, made machine code of by the driver.

use super::Target;
use std::sync::Arc;
use tessera_abi::plan::{Code, Kernel};
use tessera_base::{Limits, bug, limits};
use tessera_ir::schedule::Machine;
use tessera_ir::tile;
use tessera_llvm::nvptx::{self, GpuTarget, Header};
use tessera_llvm::{Emission, LlvmError};
use tessera_runtime::cuda::{CudaDevice, CudaKernel, Gpu, LaunchShape, Unusable};
use tessera_runtime::device::Device;
use tessera_runtime::pool::Pool;

/// The architecture of texts where there is no GPU, and its second-level cache.
const USUAL: ((u32, u32), u64) = ((9, 0), 50 << 20);

/// Object code is the text of a kernel for the GPU's architecture.
pub struct Cuda {
    gpu: Result<Arc<Gpu>, Unusable>,
    architecture: GpuTarget,
    cache: u64,
}

impl Cuda {
    /// For the first GPU of this machine. Where there is none that can be used, texts are those for a usual one.
    pub fn first() -> Cuda {
        let gpu = Gpu::first();
        let ((major, minor), cache) = gpu.as_ref().map_or(USUAL, |g| (g.facts().capability, g.facts().cache));
        Cuda { gpu, architecture: GpuTarget::of_capability(major, minor), cache }
    }
}

impl Target for Cuda {
    fn limits(&self) -> &'static Limits {
        &limits::CUDA
    }

    fn ready(&self) -> Result<(), Unusable> {
        self.gpu.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    fn machine(&self) -> Machine {
        tessera_schedule::gpu(self.cache)
    }

    fn fingerprint(&self) -> String {
        self.architecture.fingerprint()
    }

    fn compile(&self, kernel: &tile::Kernel) -> Result<Vec<u8>, LlvmError> {
        nvptx::compile(kernel, &self.architecture).map(String::into_bytes)
    }

    fn load(&self, object: &[u8], name: &str) -> Result<Kernel, LlvmError> {
        let text = String::from_utf8_lossy(object);
        let Header { group, block, operands, words, scratch } = text.parse()?;
        let gpu = self.gpu.as_ref().map_err(|e| LlvmError::internal(e.why.clone()))?;
        let refused = |why| format!("the driver does not take `{name}` for {}: {why}", self.architecture.arch());
        let function = gpu.function(&text, name).map_err(|why| LlvmError::internal(refused(why)))?;
        let shape = LaunchShape { group, block, operands, words, scratch };
        Ok(Kernel { name: name.into(), code: Code::Loaded(Arc::new(CudaKernel { function, shape })) })
    }

    fn text(&self, kernel: &tile::Kernel, what: Emission) -> Result<String, LlvmError> {
        match what {
            Emission::Assembly => nvptx::compile(kernel, &self.architecture),
            Emission::Ir | Emission::Optimized => nvptx::ir(kernel, &self.architecture, what == Emission::Optimized),
        }
    }

    fn again(&self, module: &str, assembly: bool) -> Result<String, LlvmError> {
        tessera_llvm::again(module, self.architecture.llvm(), assembly)
    }

    fn device(&self, pool: &Arc<Pool>) -> Arc<dyn Device> {
        let Ok(gpu) = &self.gpu else { bug!("a device is wanted of a target that is not ready") };
        // An order of work takes next to nothing of a GPU that was opened.
        match CudaDevice::new(gpu.clone(), pool.clone()) {
            Ok(device) => Arc::new(device),
            Err(fault) => bug!("{}", fault.message),
        }
    }

    fn is_timed(&self) -> bool {
        false
    }
}

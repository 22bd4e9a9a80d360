//! NVIDIA's GPUs: PTX by LLVM, made machine code of by the driver.

use super::Target;
use std::sync::Arc;
use tessera_abi::plan::{Code, Kernel};
use tessera_base::{Limits, bug, limits};
use tessera_ir::schedule::Machine;
use tessera_ir::tile;
use tessera_llvm::Header;
use tessera_llvm::nvptx::{self, GpuTarget};
use tessera_llvm::{Emission, LlvmError, parameter_bytes};
use tessera_runtime::cuda::{CudaDevice, CudaKernel, Gpu};
use tessera_runtime::device::Device;
use tessera_runtime::gpu::{LaunchShape, Unusable};
use tessera_runtime::pool::Pool;

/// The architecture of texts where there is no GPU, and its second-level cache.
const USUAL: ((u32, u32), u64) = ((9, 0), 50 << 20);

/// Object code is a line that says how a kernel is launched, and its machine code: where there is no GPU, its text.
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

    fn refused(&self, name: &str, why: &str) -> LlvmError {
        LlvmError::internal(format!("the driver does not take `{name}` for {}: {why}", self.architecture.arch()))
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
        let driver = self.gpu.as_ref().map_or(0, |gpu| gpu.facts().driver);
        format!("{};driver {driver}", self.architecture.fingerprint())
    }

    fn compile(&self, kernel: &tile::Kernel) -> Result<Vec<u8>, LlvmError> {
        let text = nvptx::compile(kernel, &self.architecture)?;
        let Ok(gpu) = &self.gpu else { return Ok(text.into_bytes()) };
        let header = text.lines().next().unwrap_or_default();
        let code = gpu.assemble(&text).map_err(|why| self.refused(&kernel.name, &why))?;
        Ok([header.as_bytes(), b"\n", &code].concat())
    }

    fn load(&self, object: &[u8], name: &str) -> Result<Kernel, LlvmError> {
        let line = object.iter().position(|b| *b == b'\n').unwrap_or(object.len());
        let (header, code) = object.split_at(line);
        let Header { group, block, operands, words, scratch, shared } = String::from_utf8_lossy(header).parse()?;
        let gpu = self.gpu.as_ref().map_err(|e| LlvmError::internal(e.why.clone()))?;
        let code = code.get(1..).unwrap_or_default();
        let function = gpu.function(code, name, shared).map_err(|why| self.refused(name, &why))?;
        let shape = LaunchShape { group, block, operands, words, scratch, shared };
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
        Arc::new(CudaDevice::new(gpu.clone(), pool.clone()))
    }

    fn launch_takes(&self, operands: u32, words: u32) -> bool {
        parameter_bytes(operands, words) <= nvptx::PARAMS_MAX
    }

    fn is_timed(&self) -> bool {
        false
    }
}

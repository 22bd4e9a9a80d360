//! GPUs and processors of any vendor through OpenCL: SPIR-V by LLVM, made machine code of by the vendor's driver.

use super::Target;
use std::sync::Arc;
use tessera_abi::plan::{Code, Kernel};
use tessera_base::{Limits, bug, limits};
use tessera_ir::schedule::Machine;
use tessera_ir::tile;
use tessera_llvm::spirv::{self, SpirvTarget};
use tessera_llvm::{Emission, Header, LlvmError, parameter_bytes};
use tessera_ops::prim::Order;
use tessera_runtime::device::Device;
use tessera_runtime::gpu::{LaunchShape, Unusable};
use tessera_runtime::opencl::{Accelerator, OpenClDevice, OpenClKernel};
use tessera_runtime::pool::Pool;

/// The cache of a device that has none, or does not tell.
const USUAL_CACHE: u64 = 4 << 20;

/// Object code is a line that says how a kernel is launched, and its machine code: where there is no device, SPIR-V.
pub struct OpenCl {
    on: Result<Arc<Accelerator>, Unusable>,
    code: SpirvTarget,
}

impl OpenCl {
    /// For the device that OpenCL offers. Where there is none that can be used, texts are those for any.
    pub fn first() -> OpenCl {
        let on = Accelerator::first();
        let of = |a: &Arc<Accelerator>| {
            let facts = a.facts();
            SpirvTarget { exact: facts.exact, negates: facts.is_gpu, params: facts.params }
        };
        let code = on.as_ref().map_or(SpirvTarget::LEAST, of);
        OpenCl { on, code }
    }

    /// For texts alone, whatever there is.
    pub fn texts() -> OpenCl {
        let why = Unusable::new("only texts were asked for", "run the program");
        OpenCl { on: Err(why), code: SpirvTarget::LEAST }
    }

    fn refused(&self, name: &str, why: &str) -> LlvmError {
        LlvmError::internal(format!("the driver does not take `{name}`: {why}"))
    }
}

/// What products of bf16 are where there are no matrix units: chains of multiply-adds.
pub fn machine(cache: u64) -> Machine {
    Machine { bf16: Order::Chain, ..tessera_schedule::gpu(cache) }
}

impl Target for OpenCl {
    fn limits(&self) -> &'static Limits {
        &limits::OPENCL
    }

    fn ready(&self) -> Result<(), Unusable> {
        self.on.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    fn machine(&self) -> Machine {
        let cache = self.on.as_ref().map_or(0, |a| a.facts().cache);
        machine(if cache == 0 { USUAL_CACHE } else { cache })
    }

    fn fingerprint(&self) -> String {
        let device = self.on.as_ref().map(|a| {
            let f = a.facts();
            format!("{};{};{}", f.platform, f.name, f.driver)
        });
        format!("{};{}", self.code.fingerprint(), device.unwrap_or_default())
    }

    fn compile(&self, kernel: &tile::Kernel) -> Result<Vec<u8>, LlvmError> {
        let made = spirv::compile(kernel, &self.code)?;
        let code = match &self.on {
            Ok(on) => on.assemble(&made.code).map_err(|why| self.refused(&kernel.name, &why))?,
            Err(_) => made.code,
        };
        Ok([made.header.to_string().as_bytes(), b"\n", &code].concat())
    }

    fn load(&self, object: &[u8], name: &str) -> Result<Kernel, LlvmError> {
        let line = object.iter().position(|b| *b == b'\n').unwrap_or(object.len());
        let (header, code) = object.split_at(line);
        let Header { group, block, operands, words, scratch, shared } = String::from_utf8_lossy(header).parse()?;
        let on = self.on.as_ref().map_err(|e| LlvmError::internal(e.why.clone()))?;
        let code = code.get(1..).unwrap_or_default();
        let function = on.function(code, name).map_err(|why| self.refused(name, &why))?;
        let shape = LaunchShape { group, block, operands, words, scratch, shared };
        Ok(Kernel { name: name.into(), code: Code::Loaded(Arc::new(OpenClKernel { function, shape })) })
    }

    fn text(&self, kernel: &tile::Kernel, what: Emission) -> Result<String, LlvmError> {
        match what {
            Emission::Assembly => spirv::text(kernel, &self.code),
            Emission::Ir | Emission::Optimized => spirv::ir(kernel, &self.code, what == Emission::Optimized),
        }
    }

    fn again(&self, module: &str, assembly: bool) -> Result<String, LlvmError> {
        tessera_llvm::again(module, &SpirvTarget::llvm(), assembly)
    }

    fn device(&self, pool: &Arc<Pool>) -> Arc<dyn Device> {
        let Ok(on) = &self.on else { bug!("a device is wanted of a target that is not ready") };
        Arc::new(OpenClDevice::new(on.clone(), pool.clone()))
    }

    fn launch_takes(&self, operands: u32, words: u32) -> bool {
        // How far an operand goes on is a word, too.
        parameter_bytes(operands, words.saturating_add(operands)) <= self.code.params
    }

    fn is_timed(&self) -> bool {
        false
    }
}

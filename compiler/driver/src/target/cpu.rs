//! The processor of the host: machine code by LLVM, run by a thread pool.

use super::Target;
use std::sync::{Arc, OnceLock};
use tessera_abi::plan::Kernel;
use tessera_base::{Limits, limits};
use tessera_ir::schedule::Machine;
use tessera_ir::tile;
use tessera_llvm::{HostTarget, LlvmError};
use tessera_runtime::device::Device;
use tessera_runtime::pool::Pool;

/// Object code is a relocatable file for this processor; a kernel is a function of the process.
pub struct Cpu;

impl Target for Cpu {
    fn limits(&self) -> &'static Limits {
        &limits::CPU
    }

    fn machine(&self) -> Machine {
        tessera_schedule::host()
    }

    fn fingerprint(&self) -> String {
        HostTarget::fingerprint()
    }

    fn compile(&self, kernel: &tile::Kernel) -> Result<Vec<u8>, LlvmError> {
        // Loads LLVM the first time.
        static HOST: OnceLock<Result<HostTarget, LlvmError>> = OnceLock::new();
        let host = HOST.get_or_init(HostTarget::host).as_ref().map_err(Clone::clone)?;
        tessera_llvm::compile(kernel, host)
    }

    fn load(&self, object: &[u8], name: &str) -> Result<Kernel, LlvmError> {
        tessera_llvm::load(object, name)
    }

    fn device(&self, pool: &Arc<Pool>) -> Arc<dyn Device> {
        pool.clone()
    }
}

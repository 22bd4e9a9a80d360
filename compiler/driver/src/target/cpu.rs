//! The processor of the host: machine code by LLVM, run by a thread pool.

use super::Target;
use std::sync::{Arc, OnceLock};
use tessera_abi::plan::Kernel;
use tessera_base::{Limits, limits};
use tessera_ir::schedule::Machine;
use tessera_ir::tile;
use tessera_llvm::{Emission, HostTarget, LlvmError};
use tessera_runtime::device::Device;
use tessera_runtime::pool::Pool;

/// Whether schedules and texts are asked for that do not depend on where they are looked at.
pub fn is_reference() -> bool {
    std::env::var_os("TESSERA_MACHINE").is_some_and(|m| m == "reference")
}

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

    fn text(&self, kernel: &tile::Kernel, what: Emission) -> Result<String, LlvmError> {
        tessera_llvm::text(kernel, &machine_of_texts()?, what)
    }

    fn again(&self, module: &str, assembly: bool) -> Result<String, LlvmError> {
        tessera_llvm::again(module, &machine_of_texts()?, assembly)
    }

    fn device(&self, pool: &Arc<Pool>) -> Arc<dyn Device> {
        pool.clone()
    }
}

/// What LLVM IR and assembly are made for: this machine, or the one of texts that are compared.
pub fn machine_of_texts() -> Result<HostTarget, LlvmError> {
    let host = HostTarget::host()?;
    Ok(if is_reference() { host.reference() } else { host })
}

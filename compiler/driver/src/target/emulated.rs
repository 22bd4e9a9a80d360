//! A device without hardware: memory of its own, and kernels that the checked interpreter of Tile IR runs.
//!
//! Its object code is the text of the kernel, so what runs is what `emit` prints, and every access is held against its
//! buffer. `--checked` runs programs on it.

use super::{Cpu, Target};
use std::sync::Arc;
use tessera_abi::plan::{Code, Kernel};
use tessera_base::{Limits, limits};
use tessera_ir::schedule::Machine;
use tessera_ir::tile::{self, Space};
use tessera_llvm::{Emission, LlvmError};
use tessera_runtime::device::Device;
use tessera_runtime::emulated::{EmulatedDevice, EmulatedKernel, Operand};
use tessera_runtime::pool::Pool;

/// Object code is the text of a kernel; a kernel is what the checked interpreter does with copies of its operands.
pub struct Emulated;

impl Target for Emulated {
    fn limits(&self) -> &'static Limits {
        &limits::CPU
    }

    fn machine(&self) -> Machine {
        // The wider its vectors the fewer operations there are to interpret. Results are those of this machine.
        Machine { bf16: tessera_schedule::host().bf16, ..tessera_schedule::reference() }
    }

    fn fingerprint(&self) -> String {
        "emulated".into()
    }

    fn compile(&self, kernel: &tile::Kernel) -> Result<Vec<u8>, LlvmError> {
        Ok(tile::text::print(kernel).into_bytes())
    }

    fn load(&self, object: &[u8], name: &str) -> Result<Kernel, LlvmError> {
        let text = String::from_utf8_lossy(object);
        let kernel = tile::text::parse(&text)
            .map_err(|e| LlvmError::internal(format!("the text of `{name}` does not read back: {}", e.message)))?;
        tile::verify::verify(&kernel).map_err(|why| LlvmError::internal(format!("`{name}`: {why}")))?;
        let given = kernel.bufs.iter().filter(|b| b.space != Space::Scratch);
        let operand =
            |b: &tile::Buf| Operand { bytes: b.elems * b.dtype.bytes() as u64, written: b.space != Space::In };
        let operands = given.map(operand).collect();
        let name: Arc<str> = kernel.name.as_str().into();
        let run = move |tensors: &mut [Vec<u8>], words: &[u64]| {
            tessera_tile::interpret(&kernel, tensors, words).map_err(|fault| match fault.refused {
                true => fault.message,
                false => format!("in `{}` {fault}", kernel.name),
            })
        };
        Ok(Kernel { name, code: Code::Loaded(Arc::new(EmulatedKernel { operands, run: Box::new(run) })) })
    }

    fn text(&self, kernel: &tile::Kernel, what: Emission) -> Result<String, LlvmError> {
        Cpu.text(kernel, what)
    }

    fn again(&self, module: &str, assembly: bool) -> Result<String, LlvmError> {
        Cpu.again(module, assembly)
    }

    fn device(&self, pool: &Arc<Pool>) -> Arc<dyn Device> {
        Arc::new(EmulatedDevice::new(pool.clone()))
    }

    fn is_timed(&self) -> bool {
        false
    }
}

//! From a kernel to object code, assembly or LLVM IR text.

use crate::emit;
use crate::instr::{Builder, c_string};
use crate::target::take;
use crate::{HostTarget, LlvmError, lazy};
use llvm_sys::analysis::{LLVMVerifierFailureAction, LLVMVerifyModule};
use llvm_sys::core::*;
use llvm_sys::error::{LLVMDisposeErrorMessage, LLVMGetErrorMessage};
use llvm_sys::target::{LLVMDisposeTargetData, LLVMSetModuleDataLayout};
use llvm_sys::target_machine::*;
use llvm_sys::transforms::pass_builder::*;
use tessera_ir::tile::Kernel;

/// The emitter writes loops, vectors and unrolling itself, so few passes do: address arithmetic
/// is simplified and shared, invariants leave loops.
const PASSES: &str = "early-cse<memssa>,instcombine<no-verify-fixpoint>,loop-mssa(licm),early-cse<memssa>,simplifycfg";

/// What to produce.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Emission {
    /// LLVM IR as emitted.
    Ir,
    /// LLVM IR after the passes.
    Optimized,
    Assembly,
}

/// Object code of `kernel`, with `kernel.name` as its symbol.
///
/// Cost: 2–40 ms, and 10–15 ms more the first time. Errors: `E0601` without LLVM, `E0603` for
/// code that LLVM refuses.
pub fn compile(kernel: &Kernel, target: &HostTarget) -> Result<Vec<u8>, LlvmError> {
    lazy::load()?;
    let b = prepare(kernel, target)?;
    let machine = Machine::new(target)?;
    optimize(&b, &machine)?;
    machine.write(&b, LLVMCodeGenFileType::LLVMObjectFile)
}

/// The text that `tessera emit` shows. Errors: as [`compile`].
pub fn text(kernel: &Kernel, target: &HostTarget, what: Emission) -> Result<String, LlvmError> {
    lazy::load()?;
    let b = prepare(kernel, target)?;
    let machine = Machine::new(target)?;
    if what != Emission::Ir {
        optimize(&b, &machine)?;
    }
    if what == Emission::Assembly {
        let text = machine.write(&b, LLVMCodeGenFileType::LLVMAssemblyFile)?;
        return Ok(String::from_utf8_lossy(&text).trim_end_matches('\0').to_string());
    }
    // SAFETY: the module is valid; the text is LLVM's to free.
    Ok(unsafe { take(LLVMPrintModuleToString(b.module)) })
}

fn prepare(kernel: &Kernel, target: &HostTarget) -> Result<Builder, LlvmError> {
    let b = emit::kernel(kernel)?;
    for (key, value) in [
        ("target-cpu", target.cpu.as_str()),
        ("target-features", target.features.as_str()),
        ("prefer-vector-width", if target.wide() { "512" } else { "256" }),
        ("min-legal-vector-width", if target.wide() { "512" } else { "256" }),
        ("denormal-fp-math", "ieee,ieee"),
        ("no-builtins", ""),
    ] {
        b.attribute(key, value);
    }
    b.flag("nounwind");
    Ok(b)
}

struct Machine(LLVMTargetMachineRef);

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: made by `new`.
        unsafe { LLVMDisposeTargetMachine(self.0) }
    }
}

impl Machine {
    fn new(target: &HostTarget) -> Result<Machine, LlvmError> {
        let (triple, cpu, features) = (c_string(&target.triple), c_string(&target.cpu), c_string(&target.features));
        // SAFETY: the strings live through the calls; messages are taken over.
        unsafe {
            let (mut t, mut message) = (std::ptr::null_mut(), std::ptr::null_mut());
            if LLVMGetTargetFromTriple(triple.as_ptr(), &mut t, &mut message) != 0 {
                return Err(LlvmError::internal(format!("LLVM does not know this machine: {}", take(message))));
            }
            let machine = LLVMCreateTargetMachine(
                t,
                triple.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
                LLVMRelocMode::LLVMRelocPIC,
                LLVMCodeModel::LLVMCodeModelSmall,
            );
            if machine.is_null() {
                Err(LlvmError::internal("LLVM offers no code generator for this machine"))
            } else {
                Ok(Machine(machine))
            }
        }
    }

    fn write(&self, b: &Builder, what: LLVMCodeGenFileType) -> Result<Vec<u8>, LlvmError> {
        // SAFETY: the module was verified; the buffer is copied and freed.
        unsafe {
            let (mut message, mut buffer) = (std::ptr::null_mut(), std::ptr::null_mut());
            if LLVMTargetMachineEmitToMemoryBuffer(self.0, b.module, what, &mut message, &mut buffer) != 0 {
                return Err(LlvmError::internal(take(message)));
            }
            let (start, len) = (LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
            let bytes = std::slice::from_raw_parts(start.cast::<u8>(), len).to_vec();
            LLVMDisposeMemoryBuffer(buffer);
            Ok(bytes)
        }
    }
}

/// Verifies the module (LLVM aborts the process on a broken one) and runs the passes.
fn optimize(b: &Builder, machine: &Machine) -> Result<(), LlvmError> {
    let passes = c_string(PASSES);
    // SAFETY: module and machine are alive; messages are taken over.
    unsafe {
        let mut message = std::ptr::null_mut();
        let broken = LLVMVerifyModule(b.module, LLVMVerifierFailureAction::LLVMReturnStatusAction, &mut message) != 0;
        let message = take(message);
        if broken {
            return Err(LlvmError::internal(message));
        }
        let layout = LLVMCreateTargetDataLayout(machine.0);
        LLVMSetModuleDataLayout(b.module, layout);
        LLVMDisposeTargetData(layout);
        let triple = LLVMGetTargetMachineTriple(machine.0);
        LLVMSetTarget(b.module, triple);
        LLVMDisposeMessage(triple);
        let options = LLVMCreatePassBuilderOptions();
        let error = LLVMRunPasses(b.module, passes.as_ptr(), machine.0, options);
        LLVMDisposePassBuilderOptions(options);
        if error.is_null() {
            return Ok(());
        }
        let message = LLVMGetErrorMessage(error);
        let text = std::ffi::CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        Err(LlvmError::internal(text))
    }
}

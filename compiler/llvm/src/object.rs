//! From a kernel to object code, assembly or LLVM IR text.

use crate::emit;
use crate::instr::Builder;
use crate::{HostTarget, LlvmError, lazy};
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::support::LLVMString;
use inkwell::targets::{CodeModel, FileType, RelocMode, Target, TargetMachine, TargetTriple};
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
    let machine = machine(target)?;
    optimize(&b, &machine)?;
    write(&b, &machine, FileType::Object)
}

/// The text that `tessera emit` shows. Errors: as [`compile`].
pub fn text(kernel: &Kernel, target: &HostTarget, what: Emission) -> Result<String, LlvmError> {
    lazy::load()?;
    let b = prepare(kernel, target)?;
    let machine = machine(target)?;
    if what != Emission::Ir {
        optimize(&b, &machine)?;
    }
    if what == Emission::Assembly {
        let text = write(&b, &machine, FileType::Assembly)?;
        return Ok(String::from_utf8_lossy(&text).trim_end_matches('\0').to_string());
    }
    Ok(b.module().print_to_string().to_string())
}

/// LLVM IR that is given as text, as LLVM prints it or (`assembly`) as the assembly that a kernel of this IR becomes.
/// Errors: as [`compile`], and what LLVM's reader or verifier says of the text.
pub fn again(ir: &str, target: &HostTarget, assembly: bool) -> Result<String, LlvmError> {
    lazy::load()?;
    let context = Context::create();
    // A module is called as its text says.
    let name = ir.lines().find_map(|l| l.strip_prefix("; ModuleID = '")?.strip_suffix('\''));
    let buffer = MemoryBuffer::create_from_memory_range_copy(ir.as_bytes(), name.unwrap_or("text"));
    let module = context.create_module_from_ir(buffer).map_err(|e| LlvmError::text(e.to_string_lossy()))?;
    module.verify().map_err(|e| LlvmError::text(e.to_string_lossy()))?;
    if !assembly {
        return Ok(module.print_to_string().to_string());
    }
    let machine = machine(target)?;
    passes(&module, &machine)?;
    let buffer = machine
        .write_to_memory_buffer(&module, FileType::Assembly)
        .map_err(|e| LlvmError::internal(e.to_string_lossy()))?;
    Ok(String::from_utf8_lossy(buffer.as_slice()).trim_end_matches('\0').to_string())
}

fn prepare(kernel: &Kernel, target: &HostTarget) -> Result<Builder, LlvmError> {
    let b = emit::kernel(kernel, target)?;
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

/// The code generator for `target`.
pub fn machine(target: &HostTarget) -> Result<TargetMachine, LlvmError> {
    let triple = TargetTriple::create(&target.triple);
    let known = Target::from_triple(&triple)
        .map_err(|e| LlvmError::internal(format!("LLVM does not know this machine: {}", e.to_string_lossy())))?;
    known
        .create_target_machine(
            &triple,
            &target.cpu,
            &target.features,
            OptimizationLevel::Default,
            RelocMode::PIC,
            CodeModel::Small,
        )
        .ok_or_else(|| LlvmError::internal("LLVM offers no code generator for this machine"))
}

pub fn write(b: &Builder, machine: &TargetMachine, what: FileType) -> Result<Vec<u8>, LlvmError> {
    let buffer =
        machine.write_to_memory_buffer(&b.module(), what).map_err(|e| LlvmError::internal(e.to_string_lossy()))?;
    Ok(buffer.as_slice().to_vec())
}

/// Verifies the module (LLVM aborts the process on a broken one) and runs the passes.
pub fn optimize(b: &Builder, machine: &TargetMachine) -> Result<(), LlvmError> {
    passes(&b.module(), machine)
}

fn passes(module: &Module, machine: &TargetMachine) -> Result<(), LlvmError> {
    let internal = |e: LLVMString| LlvmError::internal(e.to_string_lossy());
    module.verify().map_err(internal)?;
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    module.set_triple(&machine.get_triple());
    module.run_passes(PASSES, machine, PassBuilderOptions::create()).map_err(internal)
}

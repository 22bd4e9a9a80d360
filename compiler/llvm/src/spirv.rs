//! Kernels as SPIR-V of OpenCL's kind, for GPUs and processors of any vendor whose driver takes it.

use crate::dialect::Dialect;
use crate::instr::Builder;
use crate::launch::{self, Header};
use crate::object;
use crate::{HostTarget, LlvmError, lazy};
use inkwell::targets::FileType;
use inkwell::types::VectorType;
use inkwell::values::{BasicValueEnum, InstructionOpcode, InstructionValue};
use std::sync::{Mutex, PoisonError};
use tessera_ir::tile::Kernel;

/// Bytes of parameters that every device takes.
const PARAMS_MAX: u32 = 1024;

/// A device, as far as its code depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpirvTarget {
    /// Whether it rounds divisions and roots of 32 bits to nearest, where it is asked to.
    pub exact: bool,
    /// Whether a negated number may be kept over a barrier. Intel's compiler for processors (of 2026) takes it for one that
    /// all threads of a group have in common.
    pub negates: bool,
    /// Bytes of parameters that a kernel may have.
    pub params: u32,
}

impl SpirvTarget {
    /// What every device can do.
    pub const LEAST: SpirvTarget = SpirvTarget { exact: false, negates: true, params: PARAMS_MAX };

    fn dialect(&self) -> Dialect {
        Dialect::Spirv { exact: self.exact }
    }

    /// What besides a kernel decides its code.
    pub fn fingerprint(&self) -> String {
        format!("llvm22.1;spirv64v1.2;{self:?}")
    }

    /// The same for LLVM.
    pub fn llvm() -> HostTarget {
        HostTarget { triple: "spirv64v1.2-unknown-unknown".into(), cpu: String::new(), features: String::new() }
    }
}

/// A kernel and what a launch has to know of it.
pub struct Module {
    pub header: Header,
    /// SPIR-V, with `kernel.name` as its entry.
    pub code: Vec<u8>,
}

/// LLVM 22's back end for SPIR-V keeps what it knows of a module where all threads find it: one at a time.
static ONE: Mutex<()> = Mutex::new(());

/// The passes, and what this device needs behind them.
fn optimize(b: &Builder, target: &SpirvTarget) -> Result<(), LlvmError> {
    object::optimize(b, &object::machine(&SpirvTarget::llvm())?)?;
    match target.negates {
        true => Ok(()),
        false => subtract_for_negations(b),
    }
}

/// `-x` as `-0.0 - x`, which is the same number. LLVM's passes would make the one of the other, so it is done last.
fn subtract_for_negations(b: &Builder) -> Result<(), LlvmError> {
    let module = b.module();
    let all = module.get_functions().flat_map(|f| f.get_basic_block_iter()).flat_map(|b| b.get_instructions());
    let negations: Vec<InstructionValue> = all.filter(|i| i.get_opcode() == InstructionOpcode::FNeg).collect();
    let builder = module.get_context().create_builder();
    for old in negations {
        builder.position_before(&old);
        let made = match old.get_operand(0).and_then(|o| o.value()) {
            Some(BasicValueEnum::FloatValue(x)) => {
                builder.build_float_sub(x.get_type().const_float(-0.0), x, "").map(|v| v.as_instruction())
            }
            Some(BasicValueEnum::VectorValue(x)) => {
                let (one, lanes) = (x.get_type().get_element_type().into_float_type(), x.get_type().get_size());
                let zeros = VectorType::const_vector(&vec![one.const_float(-0.0); lanes as usize]);
                builder.build_float_sub(zeros, x, "").map(|v| v.as_instruction())
            }
            other => unreachable!("a float is negated, and this is {other:?}"),
        };
        let made = made.map_err(|e| LlvmError::internal(e.to_string()))?;
        let Some(made) = made else { unreachable!("what a kernel negates is no constant") };
        old.replace_all_uses_with(&made);
        old.erase_from_basic_block();
    }
    Ok(())
}

fn written(b: &Builder, target: &SpirvTarget, what: FileType) -> Result<Vec<u8>, LlvmError> {
    optimize(b, target)?;
    let machine = object::machine(&SpirvTarget::llvm())?;
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    object::write(b, &machine, what)
}

/// The SPIR-V of `kernel`. Cost: as of [`crate::compile`].
///
/// # Errors
/// `E0601` without LLVM, `E0603` for code that LLVM refuses.
pub fn compile(kernel: &Kernel, target: &SpirvTarget) -> Result<Module, LlvmError> {
    let (header, b) = prepare(kernel, target)?;
    Ok(Module { header, code: written(&b, target, FileType::Object)? })
}

/// The same as text, as SPIR-V's assembler takes it. Errors: as of [`compile`].
pub fn text(kernel: &Kernel, target: &SpirvTarget) -> Result<String, LlvmError> {
    let (header, b) = prepare(kernel, target)?;
    let text = written(&b, target, FileType::Assembly)?;
    Ok(format!("{}\n{}", header.comment(";"), String::from_utf8_lossy(&text).trim_end_matches('\0')))
}

/// LLVM IR of `kernel`, as emitted or as the passes leave it. Errors: as of [`compile`].
pub fn ir(kernel: &Kernel, target: &SpirvTarget, optimized: bool) -> Result<String, LlvmError> {
    let (_, b) = prepare(kernel, target)?;
    if optimized {
        optimize(&b, target)?;
    }
    Ok(b.module().print_to_string().to_string())
}

fn prepare(kernel: &Kernel, target: &SpirvTarget) -> Result<(Header, Builder), LlvmError> {
    lazy::load()?;
    let header = Header::of(kernel, target.dialect())?;
    // An operand has a place and an offset.
    Header { words: header.words + header.operands, ..header }.fits(target.params)?;
    let b = launch::threads(kernel, &SpirvTarget::llvm(), target.dialect(), header)?;
    b.flag("nounwind");
    b.group_of(header.block);
    Ok((header, b))
}

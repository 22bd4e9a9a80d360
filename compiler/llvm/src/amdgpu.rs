//! Kernels for AMD's GPUs: their assembly, to be read and counted. Nothing launches it yet.

use crate::dialect::Dialect;
use crate::instr::Builder;
use crate::launch::{self, Header};
use crate::object;
use crate::{HostTarget, LlvmError, lazy};
use inkwell::targets::FileType;
use tessera_ir::tile::Kernel;

/// A GPU, as LLVM names it: `gfx942`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AmdTarget {
    target: HostTarget,
}

impl AmdTarget {
    /// Of the name of an architecture that LLVM knows.
    pub fn of(cpu: &str) -> AmdTarget {
        let target = HostTarget { triple: "amdgcn-amd-amdhsa".into(), cpu: cpu.into(), features: String::new() };
        AmdTarget { target }
    }

    /// The same for LLVM.
    pub fn llvm(&self) -> &HostTarget {
        &self.target
    }
}

/// The assembly of `kernel`. Cost: as of [`crate::compile`].
///
/// # Errors
/// `E0601` without LLVM, `E0603` for code that LLVM refuses.
pub fn text(kernel: &Kernel, target: &AmdTarget) -> Result<String, LlvmError> {
    let (header, b) = prepare(kernel, target)?;
    let machine = object::machine(&target.target)?;
    object::optimize(&b, &machine)?;
    let text = object::write(&b, &machine, FileType::Assembly)?;
    Ok(format!("{}\n{}", header.comment(";"), String::from_utf8_lossy(&text).trim_end_matches('\0')))
}

/// LLVM IR of `kernel`, as emitted or as the passes leave it. Errors: as of [`text`].
pub fn ir(kernel: &Kernel, target: &AmdTarget, optimized: bool) -> Result<String, LlvmError> {
    let (_, b) = prepare(kernel, target)?;
    if optimized {
        object::optimize(&b, &object::machine(&target.target)?)?;
    }
    Ok(b.module().print_to_string().to_string())
}

fn prepare(kernel: &Kernel, target: &AmdTarget) -> Result<(Header, Builder), LlvmError> {
    lazy::load()?;
    let header = Header::of(kernel, Dialect::Amdgpu)?;
    let b = launch::threads(kernel, &target.target, Dialect::Amdgpu, header)?;
    for (key, value) in [
        ("target-cpu", target.target.cpu.as_str()),
        ("denormal-fp-math", "ieee,ieee"),
        ("no-builtins", ""),
        ("amdgpu-flat-work-group-size", &format!("{0},{0}", header.block)),
    ] {
        b.attribute(key, value);
    }
    b.flag("nounwind");
    Ok((header, b))
}

//! Kernels for NVIDIA's GPUs: PTX, which the driver or `ptxas` makes machine code of.
//!
//! What who launches a kernel has to know besides is the first line of the text ([`Header`]).

use crate::dialect::Dialect;
use crate::instr::Builder;
use crate::launch::{self, Header};
use crate::object;
use crate::{HostTarget, LlvmError, lazy};
use inkwell::targets::FileType;
use tessera_ir::tile::Kernel;

/// Bytes of parameters that a kernel may have.
pub const PARAMS_MAX: u32 = 4096;

/// A GPU, as LLVM and `ptxas` name its architecture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GpuTarget {
    target: HostTarget,
}

impl GpuTarget {
    /// Of compute capability `major.minor`: the newest architecture that LLVM knows and that it runs code of.
    pub fn of_capability(major: u32, minor: u32) -> GpuTarget {
        // With the version of PTX that each needs; drivers of the last years read all of them.
        const KNOWN: [(u32, &str, &str); 6] = [
            (80, "sm_80", "+ptx80"),
            (86, "sm_86", "+ptx80"),
            (89, "sm_89", "+ptx80"),
            (90, "sm_90", "+ptx80"),
            (100, "sm_100", "+ptx86"),
            (120, "sm_120", "+ptx87"),
        ];
        let known = KNOWN.iter().rev().find(|(n, ..)| *n <= 10 * major + minor).unwrap_or(&KNOWN[0]);
        let target = HostTarget { triple: "nvptx64-nvidia-cuda".into(), cpu: known.1.into(), features: known.2.into() };
        GpuTarget { target }
    }

    /// `sm_90`.
    pub fn arch(&self) -> &str {
        &self.target.cpu
    }

    /// The same for LLVM.
    pub fn llvm(&self) -> &HostTarget {
        &self.target
    }

    /// What besides a kernel decides its text.
    pub fn fingerprint(&self) -> String {
        format!("llvm22.1;nvptx;{};{}", self.target.cpu, self.target.features)
    }
}

/// The PTX of `kernel`, with `kernel.name` as its entry. Cost: as of [`crate::compile`].
///
/// # Errors
/// `E0601` without LLVM, `E0603` for code that LLVM refuses.
pub fn compile(kernel: &Kernel, target: &GpuTarget) -> Result<String, LlvmError> {
    let (header, b) = prepare(kernel, target)?;
    let machine = object::machine(&target.target)?;
    object::optimize(&b, &machine)?;
    let text = object::write(&b, &machine, FileType::Assembly)?;
    let text = String::from_utf8_lossy(&text);
    Ok(format!("{}\n{}", header.comment("//"), text.trim_end_matches('\0')))
}

/// LLVM IR of `kernel`, as emitted or as the passes leave it. Errors: as of [`compile`].
pub fn ir(kernel: &Kernel, target: &GpuTarget, optimized: bool) -> Result<String, LlvmError> {
    let (_, b) = prepare(kernel, target)?;
    if optimized {
        object::optimize(&b, &object::machine(&target.target)?)?;
    }
    Ok(b.module().print_to_string().to_string())
}

fn prepare(kernel: &Kernel, target: &GpuTarget) -> Result<(Header, Builder), LlvmError> {
    lazy::load()?;
    let header = Header::of(kernel, Dialect::Nvptx)?;
    header.fits(PARAMS_MAX)?;
    let b = launch::threads(kernel, &target.target, Dialect::Nvptx, header)?;
    for (key, value) in [
        ("target-cpu", target.target.cpu.as_str()),
        ("target-features", target.target.features.as_str()),
        ("denormal-fp-math", "ieee,ieee"),
        ("no-builtins", ""),
        ("nvvm.reqntid", &header.block.to_string()),
    ] {
        b.attribute(key, value);
    }
    b.flag("nounwind");
    Ok((header, b))
}

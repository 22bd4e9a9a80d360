//! The machine that kernels are compiled for.

use crate::{LlvmError, lazy};
use inkwell::targets::TargetMachine;

/// CPU name and features as LLVM spells them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostTarget {
    pub triple: String,
    pub cpu: String,
    pub features: String,
}

impl HostTarget {
    /// This machine. Loads LLVM. Errors: `E0601`.
    pub fn host() -> Result<HostTarget, LlvmError> {
        lazy::load()?;
        Ok(HostTarget {
            triple: TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned(),
            cpu: TargetMachine::get_host_cpu_name().to_string(),
            features: TargetMachine::get_host_cpu_features().to_string(),
        })
    }

    /// This machine without what is wider than 256 bits: its code runs here too, and is made in another way.
    pub fn narrower(&self) -> HostTarget {
        let kept = |f: &&str| !(f.starts_with("+avx512") || f.starts_with("+amx") || f.starts_with("+avx10"));
        let features: Vec<&str> = self.features.split(',').filter(kept).collect();
        let cpu = if self.wide() { "x86-64-v3" } else { &self.cpu };
        HostTarget { cpu: cpu.into(), features: features.join(","), ..self.clone() }
    }

    /// A machine of the kind that most are today, the same everywhere: for texts that are compared.
    pub fn reference(&self) -> HostTarget {
        let features = "+sse2,+avx,+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512dq,+avx512vl";
        HostTarget { cpu: "x86-64-v4".into(), features: features.into(), ..self.clone() }
    }

    /// What tells this machine's object code from another's: part of every cache key.
    /// Asks the CPU, not LLVM; microseconds.
    pub fn fingerprint() -> String {
        let mut text = format!("llvm22.1;{}", std::env::consts::ARCH);
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::__cpuid_count;
            for (leaf, sub) in [(0, 0), (1, 0), (7, 0), (7, 1), (0xd, 1), (0x8000_0001, 0)] {
                let r = __cpuid_count(leaf, sub);
                // Leaf 1 holds the number of the running core in ebx.
                let ebx = if leaf == 1 { 0 } else { r.ebx };
                text.push_str(&format!(";{:x}.{ebx:x}.{:x}.{:x}", r.eax, r.ecx, r.edx));
            }
        }
        // What the kernel of the system says of the processor's instructions.
        #[cfg(all(target_arch = "aarch64", target_os = "linux"))]
        for kind in [libc::AT_HWCAP, libc::AT_HWCAP2] {
            // SAFETY: reads a number that the process was started with.
            text.push_str(&format!(";{:x}", unsafe { libc::getauxval(kind) }));
        }
        text
    }

    /// Whether 512-bit vectors are there.
    pub fn wide(&self) -> bool {
        self.has("avx512f")
    }

    /// Whether a feature is there, as LLVM spells it.
    pub fn has(&self, feature: &str) -> bool {
        self.features.split(',').any(|f| f.strip_prefix('+') == Some(feature))
    }
}

//! Whether the processor's unit for matrices (AMX) can be used: it is there, and the system lets this process.

use std::sync::OnceLock;

/// Whether `tdpbf16ps` can be used. Asks the system for it, once; what it allows holds for all threads of the process.
pub fn matrix_unit() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    *ALLOWED.get_or_init(|| has_matrix_unit() && is_allowed())
}

/// Whether the processor has it, be it allowed or not.
#[cfg(target_arch = "x86_64")]
pub fn has_matrix_unit() -> bool {
    // Source: Intel SDM, CPUID leaf 7: AMX-BF16 and AMX-TILE.
    const WANTED: u32 = 1 << 22 | 1 << 24;
    std::arch::x86_64::__cpuid_count(0, 0).eax >= 7 && std::arch::x86_64::__cpuid_count(7, 0).edx & WANTED == WANTED
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn is_allowed() -> bool {
    // Source: Linux, Documentation/arch/x86/xstate.rst.
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: i64 = 0x1023;
    const XFEATURE_XTILEDATA: i64 = 18;
    let result: i64;
    // SAFETY: a system call that takes two numbers and reads or writes no memory of this process.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result == 0
}

#[cfg(not(target_arch = "x86_64"))]
pub fn has_matrix_unit() -> bool {
    false
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn is_allowed() -> bool {
    false
}

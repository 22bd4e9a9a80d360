//! LLVM, loaded on first use.
//!
//! The program is not linked against libLLVM: every symbol of its C interface is a local stub
//! that jumps through a table, and [`load`] fills the table. Commands that compile no kernel
//! never pay for mapping 150 MB, and a missing library is an ordinary error.

use crate::LlvmError;
use inkwell::targets::{InitializationConfig, Target};
use std::sync::OnceLock;
use tessera_base::Code;

include!(concat!(env!("OUT_DIR"), "/stubs.rs"));

// What the bindings of LLVM do not know.
unsafe extern "C" {
    fn LLVMInitializeSPIRVTargetInfo();
    fn LLVMInitializeSPIRVTarget();
    fn LLVMInitializeSPIRVTargetMC();
    fn LLVMInitializeSPIRVAsmPrinter();
}

extern "C" fn not_loaded() -> ! {
    eprintln!("internal error: LLVM was called before it was loaded, or lacks a function that is needed");
    std::process::abort()
}

/// Loads libLLVM 22 and initialises the host target, once.
///
/// Looks at `TESSERA_LLVM`, then for `libLLVM.so.22.1` on the loader's path and in Debian's
/// directory. Errors: `E0601` with the loader's message.
pub fn load() -> Result<(), LlvmError> {
    static ONCE: OnceLock<Result<(), LlvmError>> = OnceLock::new();
    ONCE.get_or_init(|| {
        let chosen = std::env::var("TESSERA_LLVM").ok().filter(|s| !s.is_empty());
        let names = match &chosen {
            Some(path) => vec![path.as_str()],
            None => vec!["libLLVM.so.22.1", "/usr/lib/llvm-22/lib/libLLVM.so.22.1", "libLLVM-22.so"],
        };
        let mut why = String::new();
        for name in names {
            match open(name) {
                Ok(()) => {
                    register();
                    options();
                    return Ok(());
                }
                Err(e) => why = e,
            }
        }
        Err(LlvmError::new(Code::E0601, format!("the LLVM 22 library could not be loaded: {why}")))
    })
    .clone()
}

fn open(name: &str) -> Result<(), String> {
    // SAFETY: libLLVM's initialisers have no precondition; the handle is never closed, so the
    // addresses stay valid. The table is written only here, before anyone may call a stub.
    unsafe {
        let library = libloading::Library::new(name).map_err(|e| e.to_string())?;
        let table = &raw mut TESSERA_LLVM_TABLE as *mut *const ();
        for (i, symbol) in SYMBOLS.iter().enumerate() {
            if let Ok(address) = library.get::<*const ()>(symbol.as_bytes()) {
                *table.add(i) = *address;
            }
        }
        std::mem::forget(library);
    }
    Ok(())
}

fn register() {
    let wanted = InitializationConfig {
        asm_parser: false,
        asm_printer: true,
        base: true,
        disassembler: false,
        info: true,
        machine_code: true,
    };
    #[cfg(target_arch = "x86_64")]
    Target::initialize_x86(&wanted);
    #[cfg(target_arch = "aarch64")]
    Target::initialize_aarch64(&wanted);
    Target::initialize_nvptx(&wanted);
    Target::initialize_amd_gpu(&wanted);
    // SAFETY: functions without a precondition, which were just loaded.
    unsafe {
        LLVMInitializeSPIRVTargetInfo();
        LLVMInitializeSPIRVTarget();
        LLVMInitializeSPIRVTargetMC();
        LLVMInitializeSPIRVAsmPrinter();
    }
}

/// Turns the loop strength reduction of the code generator off: the emitter writes pointers that
/// step, and the pass takes most of the time of large register tiles.
fn options() {
    let args = [c"tessera".as_ptr(), c"-disable-lsr".as_ptr()];
    // SAFETY: two C strings; called once, before any module exists.
    unsafe { llvm_sys::support::LLVMParseCommandLineOptions(2, args.as_ptr(), std::ptr::null()) }
}

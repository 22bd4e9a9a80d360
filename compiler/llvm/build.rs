//! Writes one jump stub per symbol of LLVM's C interface, so that the program starts without
//! libLLVM and loads it at the first kernel. See `src/lazy.rs`.

use std::fmt::Write;
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=llvm22_symbols.txt");
    println!("cargo:rerun-if-changed=build.rs");
    let symbols = std::fs::read_to_string("llvm22_symbols.txt").expect("the symbol list is part of the crate");
    let symbols: Vec<&str> = symbols.lines().filter(|l| !l.is_empty()).collect();
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let mut s = String::from("core::arch::global_asm!(r#\"\n.text\n");
    for (i, name) in symbols.iter().enumerate() {
        let at = 8 * i;
        let jump = match arch.as_str() {
            "aarch64" => {
                format!("adrp x16, TESSERA_LLVM_TABLE+{at}\nldr x16, [x16, #:lo12:TESSERA_LLVM_TABLE+{at}]\nbr x16")
            }
            _ => format!("jmpq *TESSERA_LLVM_TABLE+{at}(%rip)"),
        };
        let _ = writeln!(s, ".globl {name}\n.type {name},@function\n{name}: {jump}");
    }
    s.push_str(if arch == "x86_64" { "\"#, options(att_syntax));\n" } else { "\"#);\n" });
    let _ = writeln!(s, "static SYMBOLS: [&str; {}] = {symbols:?};", symbols.len());
    let _ = writeln!(
        s,
        "#[unsafe(no_mangle)]\nstatic mut TESSERA_LLVM_TABLE: [*const (); {0}] = [not_loaded as *const (); {0}];",
        symbols.len()
    );
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("stubs.rs"), s).expect("OUT_DIR can be written");
}

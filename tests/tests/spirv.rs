//! Code of kernels of many kinds for GPUs of other makers than NVIDIA: SPIR-V that its validator takes (Debian's spirv-tools), and
//! AMD's assembly without spills.

use std::path::Path;
use std::process::{Command, Stdio};
use tessera_tests::gpu_kernels::{emitted, functions};
use tessera_tests::laws::on_two_threads;
use tessera_tests::program::run_command;

/// What is wrong with every function in a form of `--ir`, by what is wrong with a kernel.
fn complaints(ir: &str, of_kernel: impl Fn(&Path, &str) -> Option<String> + Sync) -> Vec<String> {
    let (text, functions) = functions();
    on_two_threads(functions.len(), |i| {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        match emitted(dir.path(), &text, ir, &functions[i]) {
            Err(why) => vec![why],
            Ok(kernels) => {
                let said = kernels.iter().filter_map(|k| of_kernel(dir.path(), k));
                said.map(|why| format!("{}: {why}", functions[i].0)).collect()
            }
        }
    })
}

#[test]
fn modules_are_valid() {
    let there = Command::new("spirv-val").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !there.is_ok_and(|s| s.success()) {
        eprintln!("left out: there is no `spirv-val` (package spirv-tools)");
        return;
    }
    let found = complaints("spirv", |dir, kernel| {
        let (text, module) = (dir.join("kernel.spvasm"), dir.join("kernel.spv"));
        std::fs::write(&text, kernel).unwrap_or_else(|e| panic!("{e}"));
        let mut assemble = Command::new("spirv-as");
        assemble.args(["--target-env", "spv1.2", "-o"]).args([&module, &text]);
        let mut validate = Command::new("spirv-val");
        validate.args(["--target-env", "spv1.2"]).arg(&module);
        [assemble, validate].iter_mut().find_map(|command| {
            let ran = run_command(command, "").unwrap_or_else(|e| panic!("{e}"));
            (ran.code != 0).then(|| format!("{}{}\n{kernel}", ran.out, ran.err))
        })
    });
    assert!(found.is_empty(), "{} complaints:\n{}", found.len(), found.join("\n"));
}

#[test]
fn registers_of_amd_are_enough() {
    let found = complaints("amdgpu", |_, kernel| {
        let number = |name: &str| kernel.lines().find_map(|l| l.trim().strip_prefix(name)?.trim().parse::<u32>().ok());
        let (spills, memory) = (number(".vgpr_spill_count:"), number(".private_segment_fixed_size:"));
        let fine = (spills, memory) == (Some(0), Some(0));
        (!fine).then(|| format!("{spills:?} registers of vectors and {memory:?} bytes of memory of its own"))
    });
    assert!(found.is_empty(), "{} complaints:\n{}", found.len(), found.join("\n"));
}

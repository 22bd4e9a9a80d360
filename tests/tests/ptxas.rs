//! PTX of kernels of many kinds assembles for every architecture that they are made for, by NVIDIA's assembler: what no GPU is
//! needed for. The assembler is `$PTXAS`, that on the path, or what `./x fetch ptxas` obtains.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tessera_tests::gpu_kernels::{functions, kernels};
use tessera_tests::laws::on_two_threads;
use tessera_tests::program::{fetched, run_command};
use tessera_tests::standin;

/// Compute capabilities, each of which has an architecture of its own.
const CAPABILITIES: [&str; 6] = ["8.0", "8.6", "8.9", "9.0", "10.0", "12.0"];

fn assembler() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("PTXAS").filter(|p| !p.is_empty()) {
        return Some(path.into());
    }
    let on_path = Command::new("ptxas").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match on_path.is_ok_and(|s| s.success()) {
        true => Some("ptxas".into()),
        false => fetched("ptxas").map(|folder| folder.join("ptxas")),
    }
}

/// What is wrong with one kernel.
fn complaint(assembler: &Path, dir: &Path, kernel: &str, spills: bool) -> Option<String> {
    let target = kernel.lines().find_map(|l| l.strip_prefix(".target ")).unwrap_or_default().trim();
    let file = dir.join("kernel.ptx");
    std::fs::write(&file, kernel).unwrap_or_else(|e| panic!("{e}"));
    let mut command = Command::new(assembler);
    command.args(["-v", "-o", "/dev/null", "-arch", target]).arg(&file);
    let ran = run_command(&mut command, "").unwrap_or_else(|e| panic!("{}: {e}", assembler.display()));
    let said = format!("{}{}", ran.out, ran.err);
    let spilled = !spills && !said.contains(" 0 bytes spill stores, 0 bytes spill loads");
    let wrong = ran.code != 0 || said.contains("warning") || spilled;
    wrong.then(|| format!("{target}: {said}{}", if ran.code == 0 { "" } else { kernel }))
}

#[test]
fn kernels_assemble_without_warnings() {
    let Some(assembler) = assembler() else { return };
    let (text, functions) = functions();
    assert!(functions.len() > 30, "{functions:?}");
    let cases: Vec<_> = functions.iter().flat_map(|f| CAPABILITIES.map(|c| (f, c))).collect();
    let complaints = on_two_threads(cases.len(), |i| {
        let ((name, sizes), capability) = cases[i];
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        std::fs::write(dir.path().join("main.tsr"), &text).unwrap_or_else(|e| panic!("{e}"));
        let args = ["emit", "--target", "cuda", "--ir", "asm", "--function", name, "--sizes", sizes, "main.tsr"];
        let mut command = standin::command(dir.path(), &args, &[("TESSERA_STANDIN_ARCH", capability)]);
        let ran = run_command(&mut command, "").unwrap_or_else(|e| panic!("{e}"));
        let kernels = kernels(&ran.out);
        if ran.code != 0 || kernels.is_empty() {
            return vec![format!("{name}: exit {}\n{}", ran.code, ran.err)];
        }
        let one = |k: &String| complaint(&assembler, dir.path(), k, !name.starts_with("map"));
        kernels.iter().filter_map(one).map(|c| format!("{name}, {c}")).collect()
    });
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

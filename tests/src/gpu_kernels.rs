//! Kernels of many kinds, for tests that look at their code.

use crate::program::{binary, root, run_command};
use std::path::Path;
use std::process::Command;

const DTYPES: [&str; 12] =
    ["f64", "f32", "bf16", "f16", "fp8_e4m3", "fp8_e5m2", "i64", "i32", "i16", "i8", "u8", "c64"];

/// A program of functions, and each function with its sizes. Those that compute element by element begin with `map`.
pub fn functions() -> (String, Vec<(String, String)>) {
    let mut text = std::fs::read_to_string(root().join("tests/data/gpu_kernels.tsr")).unwrap_or_else(|e| panic!("{e}"));
    for d in DTYPES {
        let ty = format!("Tensor[N, {d}]");
        text.push_str(&format!("\n# N=1000000\ndef map_{d}(x: {ty}, y: {ty}) -> {ty}:\n    return x * y + x\n"));
    }
    let lines: Vec<&str> = text.lines().collect();
    let of = |pair: &[&str]| {
        let (sizes, name) = (pair[0].strip_prefix("# ")?, pair[1].strip_prefix("def ")?.split('(').next()?);
        Some((name.to_owned(), sizes.to_owned()))
    };
    let all = lines.windows(2).filter_map(of).collect();
    (text, all)
}

/// The kernels of a text of `emit --ir asm` of a GPU.
pub fn kernels(text: &str) -> Vec<String> {
    let mut all: Vec<String> = vec![];
    for line in text.lines() {
        if line.trim_start_matches(['/', ';']).starts_with(" tessera ") {
            all.push(String::new());
        }
        if let Some(kernel) = all.last_mut() {
            kernel.push_str(line);
            kernel.push('\n');
        }
    }
    all
}

/// The kernels that a function becomes in the form of `--ir`, as text.
///
/// # Errors
/// What the command says.
pub fn emitted(dir: &Path, text: &str, ir: &str, function: &(String, String)) -> Result<Vec<String>, String> {
    let (name, sizes) = function;
    std::fs::write(dir.join("main.tsr"), text).map_err(|e| e.to_string())?;
    let mut command = Command::new(binary());
    command.current_dir(dir).args(["emit", "--ir", ir, "--function", name, "--sizes", sizes, "main.tsr"]);
    let ran = run_command(&mut command, "").map_err(|e| e.to_string())?;
    let kernels = kernels(&ran.out);
    match ran.code == 0 && !kernels.is_empty() {
        true => Ok(kernels),
        false => Err(format!("{name}: exit {}\n{}", ran.code, ran.err)),
    }
}

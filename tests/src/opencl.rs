//! A device of OpenCL for tests.

use crate::program::{Ran, binary, fetched, run_command};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The library that `TESSERA_OPENCL` names, or that of a processor that `./x fetch opencl` has obtained.
pub fn library() -> Option<PathBuf> {
    match std::env::var_os("TESSERA_OPENCL").filter(|p| !p.is_empty()) {
        Some(path) => Some(path.into()),
        None => fetched("opencl").map(|folder| folder.join("libintelocl.so")),
    }
}

/// This process takes that library. Whether there is one; who has none is told once.
pub fn take() -> bool {
    static TAKEN: OnceLock<bool> = OnceLock::new();
    *TAKEN.get_or_init(|| match library() {
        None => {
            eprintln!("left out: there is no OpenCL (`./x fetch opencl` obtains one for the processor)");
            false
        }
        Some(path) => {
            tessera_runtime::opencl::take_library(path.as_os_str()).unwrap_or_else(|e| panic!("{}", e.why));
            true
        }
    })
}

/// Runs `tessera run --target opencl ARGS` on a text. Nothing is interpreted.
///
/// # Errors
/// What the system says where the program cannot be started.
pub fn run(source: &str, args: &[&str]) -> std::io::Result<Ran> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("main.tsr"), source)?;
    let mut command = Command::new(binary());
    command.current_dir(dir.path()).args(["run", "--target", "opencl"]).args(args).arg("main.tsr");
    command.env("TESSERA_ALWAYS_COMPILE", "1").envs(library().map(|path| ("TESSERA_OPENCL", path)));
    run_command(&mut command, "")
}

//! The stand-in for NVIDIA's driver: GPU code runs in an interpreter of PTX, where no GPU is.

use crate::program::{Ran, binary, run_command};
use std::path::PathBuf;
use std::process::Command;

/// The library, which is built beside the tests.
pub fn library() -> PathBuf {
    let exe = std::env::current_exe().unwrap_or_else(|e| panic!("{e}"));
    let folders = exe.ancestors().skip(1).take(2);
    let found = folders.map(|f| f.join("libtessera_ptx.so")).find(|p| p.exists());
    found.unwrap_or_else(|| panic!("libtessera_ptx.so is not beside {}", exe.display()))
}

/// This process finds the stand-in where it looks for a driver.
pub fn take() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let taken = tessera_runtime::cuda::take_driver(library().as_os_str());
        taken.unwrap_or_else(|e| panic!("{}", e.why));
    });
}

/// Runs `tessera run --target cuda ARGS` on a text, with the stand-in for a driver; nothing is interpreted.
pub fn run_on_gpu(source: &str, args: &[&str]) -> std::io::Result<Ran> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("main.tsr"), source)?;
    let mut command = Command::new(binary());
    command.current_dir(dir.path()).args(["run", "--target", "cuda"]).args(args).arg("main.tsr");
    command.env("TESSERA_CUDA", library()).env("TESSERA_ALWAYS_COMPILE", "1");
    run_command(&mut command, "")
}

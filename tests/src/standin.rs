//! The stand-in for NVIDIA's driver: GPU code runs in an interpreter of PTX, where no GPU is. `TESSERA_TEST_GPU=1` takes the
//! system's driver and a GPU of this machine in its place.

use crate::program::{Ran, binary, run_command};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether tests are to use a GPU of this machine.
pub fn is_real() -> bool {
    std::env::var_os("TESSERA_TEST_GPU").is_some_and(|v| v == "1")
}

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
        if !is_real() {
            let taken = tessera_runtime::cuda::take_driver(library().as_os_str());
            taken.unwrap_or_else(|e| panic!("{}", e.why));
        }
    });
}

/// `tessera ARGS` in a folder with the stand-in for a driver, settings of the environment besides. Nothing is interpreted.
pub fn command(dir: &Path, args: &[&str], settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(dir).args(args).env("TESSERA_ALWAYS_COMPILE", "1");
    if !is_real() {
        command.env("TESSERA_CUDA", library());
    }
    command.envs(settings.iter().copied());
    command
}

/// The same of a text: `tessera ARGS main.tsr`.
pub fn run(source: &str, args: &[&str], settings: &[(&str, &str)]) -> std::io::Result<Ran> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("main.tsr"), source)?;
    let mut command = command(dir.path(), args, settings);
    run_command(command.arg("main.tsr"), "")
}

/// Runs `tessera run --target cuda ARGS` on a text.
pub fn run_on_gpu(source: &str, args: &[&str]) -> std::io::Result<Ran> {
    run(source, &[&["run", "--target", "cuda"], args].concat(), &[])
}

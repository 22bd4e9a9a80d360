//! Where Jupyter looks for kernels, and what it is told of this one.

use crate::cli::Prefix;
use jupyter_protocol::JupyterKernelspec;
use std::path::{Path, PathBuf};
use std::process::Command;
use tessera_runtime::io::files::{write_atomically, write_fault};

/// The name of the folder, and of the kernel for `--kernel`.
const NAME: &str = "tessera";

/// The folder of the kernel: below a prefix, or that of the user.
///
/// # Errors
/// In words, where there is no such place.
pub fn folder(prefix: &Prefix) -> Result<PathBuf, String> {
    let data = match (&prefix.prefix, prefix.sys_prefix) {
        (Some(dir), _) => dir.join("share/jupyter"),
        (None, true) => python_prefix()?.join("share/jupyter"),
        (None, false) => match std::env::var_os("JUPYTER_DATA_DIR").filter(|d| !d.is_empty()) {
            Some(dir) => dir.into(),
            None => jupyter_zmq_client::user_data_dir()
                .map_err(|e| format!("there is no folder of the user: {e}; set HOME, or give `--prefix DIR`"))?,
        },
    };
    Ok(data.join("kernels").join(NAME))
}

/// Where the Python lies that is first on the path: the environment that is active.
fn python_prefix() -> Result<PathBuf, String> {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.prefix, end='')"]).output();
    let answer = asked.map_err(|e| format!("`python3` cannot be asked for its prefix: {e}; give `--prefix DIR`"))?;
    let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    match answer.status.success() && !text.is_empty() {
        true => Ok(text.into()),
        false => Err("`python3` does not say its prefix; give `--prefix DIR`".into()),
    }
}

/// Whether a kernel is installed where Jupyter finds it, and whether it is this program.
pub enum Found {
    Own(PathBuf),
    /// The folder, and the program that it starts instead.
    Other(PathBuf, String),
    None,
}

/// Looks in the folders of the user, of the Python environment that is active and of the system, as Jupyter does.
pub fn find() -> Found {
    let environment = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let system = ["/usr/local", "/usr"].map(PathBuf::from);
    let shared = environment.chain(system).map(|dir| Prefix { prefix: Some(dir), ..Prefix::default() });
    let user = Prefix::default();
    let own = std::env::current_exe().ok().and_then(|tool| tool.canonicalize().ok());
    for dir in std::iter::once(user).chain(shared).filter_map(|prefix| folder(&prefix).ok()) {
        let Ok(text) = std::fs::read_to_string(dir.join("kernel.json")) else { continue };
        let spec: Option<JupyterKernelspec> = serde_json::from_str(&text).ok();
        let tool = spec.and_then(|s| s.argv.first().cloned()).unwrap_or_default();
        let is_own = own.is_some() && Path::new(&tool).canonicalize().ok() == own;
        return if is_own { Found::Own(dir) } else { Found::Other(dir, tool) };
    }
    Found::None
}

/// Writes what Jupyter reads.
///
/// # Errors
/// In words, where the folder cannot be written.
pub fn install(dir: &Path) -> Result<(), String> {
    let tool = std::env::current_exe().map_err(|e| format!("where this program lies cannot be told: {e}"))?;
    let argv = [&tool.to_string_lossy(), "jupyter", "run", "{connection_file}"].map(str::to_owned).to_vec();
    let spec = JupyterKernelspec {
        argv,
        display_name: "Tessera".into(),
        language: NAME.into(),
        metadata: Some(Default::default()),
        interrupt_mode: Some("message".into()),
        env: Some(Default::default()),
    };
    let text = serde_json::to_string_pretty(&spec).map_err(|e| e.to_string())? + "\n";
    std::fs::create_dir_all(dir).map_err(|e| format!("{} cannot be made: {e}", dir.display()))?;
    for (name, text) in [("kernel.json", text.as_str()), ("logo-svg.svg", LOGO)] {
        let path = dir.join(name);
        let written = write_atomically(&path, |to| to.write_all(text.as_bytes()).map_err(|e| write_fault(&path, &e)));
        written.map_err(|fault| fault.message)?;
    }
    Ok(())
}

/// Takes the folder away.
///
/// # Errors
/// In words, where there is none or it stays.
pub fn uninstall(dir: &Path) -> Result<(), String> {
    if !dir.join("kernel.json").exists() {
        return Err(format!("there is no kernel in {}", dir.display()));
    }
    std::fs::remove_dir_all(dir).map_err(|e| format!("{} cannot be removed: {e}", dir.display()))
}

/// Four tiles.
const LOGO: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 64 64\"><rect x=\"6\" y=\"6\" width=\"24\" height=\"24\" rx=\"3\" fill=\"#3b6fb6\"/><rect x=\"34\" y=\"6\" width=\"24\" height=\"24\" rx=\"3\" fill=\"#e0883a\"/><rect x=\"6\" y=\"34\" width=\"24\" height=\"24\" rx=\"3\" fill=\"#4f9d5c\"/><rect x=\"34\" y=\"34\" width=\"24\" height=\"24\" rx=\"3\" fill=\"#8b62a8\"/></svg>\n";

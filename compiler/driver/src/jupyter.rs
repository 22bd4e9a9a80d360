//! A kernel for notebooks (`tessera jupyter`): the interactive session behind Jupyter's protocol.
//!
//! One thread has the session and answers what comes on the shell channel, in its order. Another has the sockets: it
//! forwards, and answers itself what must not wait for a cell, above all interrupts. Only that thread is asynchronous.

mod kernelspec;
mod answers;
mod rich;
mod sockets;
mod captured;
mod cell;
mod kernel;

use crate::cli::{JupyterAction, Prefix};
use crate::program::{Setup, out};
use std::path::Path;
use tessera_base::{Code, Diagnostic, Span};
use tessera_resolve::source::SourceMap;

/// Does what the command says; returns the exit code.
pub fn jupyter(setup: &Setup, action: &JupyterAction) -> u8 {
    let done = match action {
        JupyterAction::Install { prefix } => installed(prefix).map(|text| told(&text)),
        JupyterAction::Uninstall { prefix } => removed(prefix).map(|text| told(&text)),
        JupyterAction::Run { connection } => run(setup, connection),
    };
    done.unwrap_or_else(|why| {
        setup.show(&[Diagnostic::new(Code::E0706, Span::NONE, why)], &SourceMap::default());
        1
    })
}

/// Whether Jupyter finds this kernel, and the words for it.
pub fn found() -> (bool, String) {
    match kernelspec::find() {
        kernelspec::Found::Own(dir) => (true, format!("the kernel is in {}", dir.display())),
        kernelspec::Found::Other(dir, tool) => (
            false,
            format!(
                "the kernel in {} starts `{tool}`, not this program; `tessera jupyter install` sets it right",
                dir.display()
            ),
        ),
        kernelspec::Found::None => {
            (false, "no kernel; `tessera jupyter install` adds it (needed only for notebooks)".into())
        }
    }
}

fn told(text: &str) -> u8 {
    out(text);
    0
}

fn installed(prefix: &Prefix) -> Result<String, String> {
    let dir = kernelspec::folder(prefix)?;
    kernelspec::install(&dir)?;
    Ok(format!("the kernel of Tessera is in {}\n", dir.display()))
}

fn removed(prefix: &Prefix) -> Result<String, String> {
    let dir = kernelspec::folder(prefix)?;
    kernelspec::uninstall(&dir)?;
    Ok(format!("removed {}\n", dir.display()))
}

fn run(setup: &Setup, connection: &Path) -> Result<u8, String> {
    let info = sockets::connection(connection)?;
    kernel::Kernel::start(setup, info)?.run()
}

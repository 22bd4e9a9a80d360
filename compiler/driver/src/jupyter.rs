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

/// Does what the command says; returns the exit code.
pub fn jupyter(setup: &Setup, action: &JupyterAction) -> u8 {
    match action {
        JupyterAction::Install { prefix } => told(installed(prefix)),
        JupyterAction::Uninstall { prefix } => told(removed(prefix)),
        JupyterAction::Run { connection } => match run(setup, connection) {
            Ok(code) => code,
            Err(why) => {
                eprintln!("error[E0706]: {why}");
                1
            }
        },
    }
}

fn told(done: Result<String, String>) -> u8 {
    match done {
        Ok(text) => {
            out(&text);
            0
        }
        Err(why) => {
            eprintln!("error[E0706]: {why}");
            1
        }
    }
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

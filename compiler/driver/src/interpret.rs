//! `tessera run --interpret`: the program by the interpreter of Core, without host code and kernels.

use crate::files::read_source;
use crate::program::{Setup, checked, set_aside};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use tessera_base::Diagnostic;
use tessera_interpret::End;
use tessera_ir::graph::Policy;
use tessera_resolve::source::SourceMap;
use tessera_runtime::context::Context;
use tessera_runtime::io::replace::remove_pending;

/// Runs a program; returns the exit code.
pub fn interpret(setup: &Setup, path: &Path, args: &[String]) -> u8 {
    let loaded = match read_source(path) {
        Ok(l) => l,
        Err(d) => {
            setup.show(&[d], &SourceMap::default());
            return 1;
        }
    };
    let file = checked(setup, &loaded);
    setup.show(&file.diagnostics, &file.sources);
    let Some(program) = file.program.filter(|_| !file.diagnostics.iter().any(Diagnostic::is_error)) else { return 1 };
    let program = Arc::new(program);
    if let Some(gate) = setup.gate {
        let found = gate(setup, &program, &file.sources);
        setup.show(&found, &file.sources);
        if found.iter().any(Diagnostic::is_error) {
            return 1;
        }
    }
    let dir = path.parent().unwrap_or(Path::new("")).to_string_lossy().into_owned();
    let context = || {
        let stdout = std::io::stdout();
        let by_line = stdout.is_terminal();
        let mut context = Context::new(Box::new(stdout), by_line);
        context.args = args.to_vec();
        context.dir = if dir.is_empty() { ".".into() } else { dir.clone() };
        context
    };
    let policy = Policy::parse(&setup.global.policy).unwrap_or_default();
    match tessera_interpret::run(&program, policy, setup.machine().bf16, &context, &crate::interrupt::on_interrupt) {
        Ok(()) => 0,
        Err(end) => match *end {
            End::Exit(code) => code as u8,
            End::Failed(found) if found.iter().any(crate::program::is_interruption) => {
                remove_pending();
                crate::interrupt::tell();
                crate::interrupt::INTERRUPTED
            }
            End::Failed(found) => {
                setup.show(&set_aside(found, &file.sources), &file.sources);
                1
            }
        },
    }
}

//! One case: the file's text, then the call or the statements of the example, in a program of their own. What the file itself
//! prints does not count.

use super::cases::{Case, Statement, What};
use super::text::{by_statement, with_call, with_calls, with_example};
use crate::backend::Backend;
use crate::program::{self, CheckedFile, Ready, Setup};
use crate::regions::Reports;
use crate::repl::output::Buffer;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use tessera_base::Diagnostic;
use tessera_host::Session;
use tessera_resolve::source::{Loaded, Taken};
use tessera_runtime::context::{INTERRUPTED, Stop};
use tessera_runtime::pool::Pool;

/// Why a case failed.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    /// The line of the file that it is about.
    pub line: usize,
    pub why: String,
    /// What an example was to print, and what it printed.
    pub outputs: Option<(String, String)>,
}

impl Failure {
    pub fn new(line: usize, why: impl Into<String>) -> Failure {
        Failure { line, why: why.into(), outputs: None }
    }
}

/// What runs programs of cases, with the kernels of earlier ones.
pub struct Machine {
    pub setup: Setup,
    pub pool: Arc<Pool>,
    pub backend: Rc<Backend>,
}

impl Machine {
    pub fn new(setup: Setup) -> Machine {
        let pool = setup.pool();
        let backend = Rc::new(setup.backend(pool.clone()));
        Machine { setup, pool, backend }
    }

    /// Runs a case; `told` was said of the file before, and `watch` gets what stops the program.
    pub fn run(
        &self,
        file: &Loaded,
        told: &[Diagnostic],
        case: &Case,
        watch: &dyn Fn(&mut Session),
    ) -> Result<(), Failure> {
        let own = file.text.trim_end();
        let (text, taken) = match &case.what {
            What::Example(statements) => with_example(own, statements),
            What::Test => (with_call(own, &case.name), vec![]),
            What::Drawn(calls) => (with_calls(own, calls), vec![]),
            What::Refused(why) => return Err(Failure::new(case.line, why)),
        };
        let Some(ready) = self.ready(file, own.len(), text, taken, told) else {
            return Err(Failure::new(case.line, "it does not check"));
        };
        let output = Buffer::default();
        let mut session = Session::new(Box::new(output.clone()), false, vec![], self.setup.stack_bytes);
        session.set_dir(&Path::new(&*file.path).parent().unwrap_or(Path::new("")).to_string_lossy());
        watch(&mut session);
        let ended = execute(&self.setup, &mut session, &ready, self.backend.clone(), self.pool.clone());
        drop(session);
        let printed = output.take();
        let printed = by_statement(&printed);
        // The statement that was begun last is the one that did not end.
        let reached = printed.len().saturating_sub(1);
        let why = match ended {
            Ok(0) => return compared(case, &printed),
            Ok(code) => format!("ended with exit code {code}"),
            Err(why) => why,
        };
        Err(match &case.what {
            What::Example(statements) => Failure::new(statements.get(reached).map_or(case.line, |s| s.line), why),
            What::Drawn(calls) => match calls.get(reached) {
                Some(call) if !call.sizes.is_empty() => Failure::new(case.line, format!("{why} for {}", call.sizes)),
                _ => Failure::new(case.line, why),
            },
            _ => Failure::new(case.line, why),
        })
    }

    fn ready(&self, file: &Loaded, own: usize, text: String, taken: Vec<Taken>, told: &[Diagnostic]) -> Option<Ready> {
        let loaded = Loaded { path: file.path.clone(), text: text.into() };
        program::prepare_as(&self.setup, &loaded, |checked: &mut CheckedFile| {
            checked.sources.show(&file.path, file.text.clone(), own, taken);
            checked.diagnostics.retain(|d| !told.contains(d));
        })
    }
}

/// Holds what the statements of an example printed against what they were to print.
fn compared(case: &Case, printed: &[&str]) -> Result<(), Failure> {
    let What::Example(statements) = &case.what else { return Ok(()) };
    let found = statements.iter().enumerate().find_map(|(i, s)| {
        let printed = printed.get(i).copied().unwrap_or("");
        differs(s, &[printed]).map(|outputs| Failure { line: s.line, why: String::new(), outputs: Some(outputs) })
    });
    found.map_or(Ok(()), Err)
}

/// What a statement was to print and what it printed, if that is neither of these texts; space around lines and empty lines
/// do not count.
pub fn differs(statement: &Statement, printed: &[&str]) -> Option<(String, String)> {
    let lines = |s: &str| s.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect::<Vec<_>>();
    let wanted = lines(&statement.expected);
    let first = printed.first().copied().unwrap_or("");
    printed.iter().all(|p| lines(p) != wanted).then(|| (wanted.join("\n"), lines(first).join("\n")))
}

/// Runs a program to its end; gives its exit code, or why it could not start.
pub fn execute(
    setup: &Setup,
    session: &mut Session,
    ready: &Ready,
    backend: Rc<Backend>,
    pool: Arc<Pool>,
) -> Result<u8, String> {
    let reports = Reports::default();
    let program = program::start(setup, session, ready, backend, pool, reports.clone()).map_err(|d| d.message)?;
    match session.run(&program) {
        // Who interrupts tells it once, for all cases.
        Some(Stop::Error(e)) if e.code == INTERRUPTED => Ok(crate::interrupt::INTERRUPTED),
        stop => Ok(program::finish(setup, stop, ready, &reports)),
    }
}

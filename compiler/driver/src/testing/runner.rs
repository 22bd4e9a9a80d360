//! Many texts in one process, for tests of the compiler itself.

use super::run::execute;
use crate::backend::Backend;
use crate::cli::{Color, Global};
use crate::program::{self, CheckedFile, Setup};
use crate::render::Style;
use crate::repl::output::Buffer;
use crate::target::Choice;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tessera_base::{Code, Edit, Fix};
use tessera_core::ir::Program;
use tessera_host::Session;
use tessera_resolve::source::Loaded;
use tessera_runtime::pool::Pool;

/// What became of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It has these errors.
    Refused(Vec<Code>),
    /// It stopped while it ran.
    Stopped(String),
    Printed(String),
}

/// What the first error of a text says to write.
pub struct Advice {
    pub code: Code,
    pub title: String,
    /// The text with that written.
    pub text: String,
}

/// The fixes of the first error of a text that come with edits.
pub fn advice(text: &str) -> Vec<Advice> {
    let checked = program::check(&Loaded { path: "main.tsr".into(), text: text.into() });
    let Some(d) = checked.diagnostics.iter().find(|d| d.is_error()) else { return vec![] };
    let written = |f: &Fix| {
        let located = |e: &Edit| checked.sources.locate(e.span).map(|(_, range)| (range, e.text.clone()));
        let mut edits: Vec<_> = f.edits.iter().filter_map(located).collect();
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        let mut out = text.to_owned();
        edits.into_iter().for_each(|(range, by)| out.replace_range(range, &by));
        Advice { code: d.code, title: f.title.clone(), text: out }
    };
    d.fixes.iter().filter(|f| !f.edits.is_empty()).map(written).collect()
}

/// Runs many texts in one process, with the kernels of earlier ones, and says nothing.
pub struct Runner {
    setup: Setup,
    pool: Arc<Pool>,
    backend: Rc<Backend>,
}

impl Runner {
    /// For a thread whose stack has `stack_bytes` to spare.
    pub fn new(stack_bytes: usize) -> Runner {
        Runner::with(stack_bytes, false)
    }

    /// As [`Runner::new`], with every value held against its type.
    pub fn checked(stack_bytes: usize) -> Runner {
        Runner::with(stack_bytes, true)
    }

    fn with(stack_bytes: usize, checked: bool) -> Runner {
        let global = Global {
            target: Choice::default(),
            threads: Some(1),
            devices: None,
            mesh: None,
            policy: "deterministic".into(),
            json: false,
            color: Color::Never,
            quiet: true,
            verbose: false,
            checked,
            check_nan: false,
            no_cache: true,
            memory: None,
        };
        let style = Style { color: false, json: false, quiet: true };
        let setup = Setup { global, style, stack_bytes, profile: None, gate: None, held: Some(RefCell::default()) };
        let pool = setup.pool();
        let backend = Rc::new(setup.backend(pool.clone()));
        Runner { setup, pool, backend }
    }

    /// Checks a text and runs it, if it has no errors.
    pub fn run(&self, text: &str) -> Outcome {
        self.run_changed(text, |_| {})
    }

    /// As [`Runner::run`], of what becomes of the checked program by `change`.
    pub fn run_changed(&self, text: &str, change: impl FnOnce(&mut Program)) -> Outcome {
        let loaded = Loaded { path: "main.tsr".into(), text: text.into() };
        let found = program::check(&loaded).diagnostics;
        let errors: Vec<Code> = found.iter().filter(|d| d.is_error()).map(|d| d.code).collect();
        if !errors.is_empty() {
            return Outcome::Refused(errors);
        }
        let changed = |checked: &mut CheckedFile| {
            if let Some(program) = &mut checked.program {
                change(program);
            }
        };
        let Some(ready) = program::prepare_as(&self.setup, &loaded, changed) else { return Outcome::Refused(vec![]) };
        self.said();
        let output = Buffer::default();
        let mut session = Session::new(Box::new(output.clone()), false, vec![], self.setup.stack_bytes);
        match execute(&self.setup, &mut session, &ready, self.backend.clone(), self.pool.clone()) {
            Err(why) => return Outcome::Stopped(why),
            Ok(0) => {}
            Ok(code) => return Outcome::Stopped(format!("exit code {code}\n{}", self.said())),
        }
        drop(session);
        Outcome::Printed(output.take())
    }

    /// What was to be told since it was asked last.
    fn said(&self) -> String {
        let held = self.setup.held.as_ref().map(RefCell::take).unwrap_or_default();
        String::from_utf8_lossy(&held).into_owned()
    }
}

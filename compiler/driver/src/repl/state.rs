//! What a session holds: the checker with the inputs so far, the context with their values, the
//! executor of their tensor regions.

use super::interrupts::Interrupts;
use super::output::{Buffer, Each, Listener, Shown, ToListener};
use super::{directive, input, look, value};
use crate::backend::Backend;
use crate::files::Disk;
use crate::program::{self, Ready, Setup, diagnostic, out};
use crate::regions::{Executor, Reports, SharedExecutor};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::GlobalId;
use tessera_core::ty::Ty;
use tessera_host::Session as Machine;
use tessera_infer::{Last, Session as Checker};
use tessera_ir::host;
use tessera_lower::{Options, lower_roots};
use tessera_resolve::source::SourceMap;
use tessera_runtime::context::{Stop, Viewed};

/// What came of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Done,
    Failed,
    /// The session ends with this exit code.
    Exit(u8),
}

/// Where the time of an input went.
#[derive(Clone, Copy, Default, Debug)]
pub struct Times {
    pub check: Duration,
    pub compile: Duration,
    pub run: Duration,
}

/// A session.
pub struct State<'a> {
    pub setup: &'a Setup,
    pub checker: Checker,
    pub times: Times,
    /// Values of expressions are shown.
    pub echo: bool,
    engine: Option<Engine>,
    interrupts: Interrupts,
    /// Warnings that were shown: a function is checked again with each call.
    told: BTreeSet<(Code, Span)>,
    inputs: usize,
    piped: bool,
    failed: bool,
    output: Output,
    /// The inputs that ran to their end, in order.
    pub accepted: Vec<String>,
    /// Inputs are remembered.
    pub recording: bool,
    /// What messages call the next inputs; else they are numbered.
    pub place: Option<String>,
}

/// Where output goes.
enum Output {
    Stdout,
    /// What a session shows, and the same with values without their types.
    Held([Buffer; 2]),
    Told(Rc<dyn Listener>),
}

/// What runs the inputs; made with the first one.
struct Engine {
    machine: Machine,
    executor: Rc<RefCell<Executor>>,
    backend: Rc<Backend>,
    reports: Reports,
    /// Source places by the session's numbers.
    spans: Vec<Span>,
}

impl Engine {
    fn new(setup: &Setup, output: &Output) -> Engine {
        let (sink, by_line): (Box<dyn Write>, bool) = match output {
            Output::Stdout => (Box::new(std::io::stdout()), std::io::stdout().is_terminal()),
            Output::Held(buffers) => (Box::new(Each(buffers.clone())), false),
            Output::Told(listener) => (Box::new(ToListener(listener.clone())), true),
        };
        let mut machine = Machine::new(sink, by_line, vec![], setup.stack_bytes);
        machine.keep_globals();
        if let Output::Told(listener) = output {
            let listener = listener.clone();
            machine.set_viewer(Box::new(move |viewed| match viewed {
                Viewed::Picture(svg) => listener.picture(svg),
                Viewed::Progress(progress) => listener.progress(&progress),
            }));
        }
        let reports = Reports::default();
        let pool = setup.pool();
        pool.watch(machine.interrupt_flag());
        let backend = Rc::new(setup.backend(pool.clone()));
        let executor = Rc::new(RefCell::new(Executor::new(backend.clone(), pool, reports.clone())));
        Engine { machine, executor, backend, reports, spans: vec![] }
    }

    fn load(&mut self, setup: &Setup, ready: &Ready) -> Result<tessera_host::Loaded, Box<Diagnostic>> {
        let loaded = self
            .machine
            .load(&ready.lowered.host)
            .map_err(|e| Box::new(Diagnostic::new(Code::E0603, Span::NONE, e.to_string())))?;
        self.spans.extend(&ready.lowered.host.spans);
        let mut executor = self.executor.borrow_mut();
        executor.add(program::unit(&self.machine, &loaded, ready));
        executor.set_profiler(program::profiler(setup, &ready.sources));
        drop(executor);
        self.machine.set_regions(Box::new(SharedExecutor(self.executor.clone())));
        Ok(loaded)
    }
}

/// The value of `f`. A bug of the compiler ends the input and not the session.
pub fn survived<T>(f: impl FnOnce() -> T) -> Option<T> {
    // What a panic leaves is as before: the checker takes an input over when it is done.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).ok()
}

impl<'a> State<'a> {
    pub fn new(setup: &'a Setup, piped: bool) -> State<'a> {
        State::with(setup, piped, Interrupts::watch(piped), Output::Stdout)
    }

    /// A session whose output is held; nothing but its flag interrupts it.
    pub fn held(setup: &'a Setup, output: [Buffer; 2]) -> State<'a> {
        State::with(setup, true, Interrupts::default(), Output::Held(output))
    }

    /// A session for someone who listens, interrupted through `interrupts`.
    pub fn told(setup: &'a Setup, interrupts: Interrupts, listener: Rc<dyn Listener>) -> State<'a> {
        State::with(setup, false, interrupts, Output::Told(listener))
    }

    fn with(setup: &'a Setup, piped: bool, interrupts: Interrupts, output: Output) -> State<'a> {
        State {
            setup,
            checker: Checker::new(),
            times: Times::default(),
            echo: true,
            engine: None,
            interrupts,
            told: BTreeSet::new(),
            inputs: 0,
            piped,
            failed: false,
            output,
            accepted: vec![],
            recording: true,
            place: None,
        }
    }

    /// The flag that stops what runs.
    pub fn interrupt_flag(&mut self) -> Arc<AtomicBool> {
        self.engine.get_or_insert_with(|| Engine::new(self.setup, &self.output)).machine.interrupt_flag()
    }

    /// Shows a text as a command of the session does.
    pub fn say(&self, text: &str) {
        self.say_as(text, text);
    }

    /// Shows a text; to whom values are shown without types, `bare`.
    fn say_as(&self, text: &str, bare: &str) {
        match &self.output {
            Output::Stdout => out(text),
            Output::Held(buffers) => {
                for (buffer, text) in buffers.iter().zip([text, bare]) {
                    // Memory takes all.
                    let _ = buffer.clone().write_all(text.as_bytes());
                }
            }
            Output::Told(listener) => listener.out(text),
        }
    }

    /// Says something beside the output.
    pub fn remark(&self, text: &str) {
        match &self.output {
            Output::Told(listener) => listener.remark(text),
            Output::Stdout | Output::Held(_) => eprint!("{text}"),
        }
    }

    /// Shows diagnostics.
    pub fn show(&self, diagnostics: &[Diagnostic], sources: &SourceMap) {
        match &self.output {
            Output::Told(listener) => listener.told(diagnostics, sources),
            Output::Stdout | Output::Held(_) => self.setup.show(diagnostics, sources),
        }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.checker = Checker::new();
        self.engine = None;
        self.told.clear();
        self.accepted.clear();
    }

    /// Does what an input says.
    pub fn take(&mut self, text: &str) -> Outcome {
        if text.trim().is_empty() {
            return Outcome::Done;
        }
        self.interrupts.forget();
        let outcome = match text.trim().strip_prefix(':') {
            Some(rest) => directive::run(self, rest),
            None if directive::leaves(self, text) => Outcome::Exit(self.code()),
            None => match input::asked(text) {
                Some((path, source)) => look::look(self, path, source),
                None => self.eval(text),
            },
        };
        self.failed |= outcome == Outcome::Failed;
        outcome
    }

    /// The exit code when the session ends by itself: through a pipe, 1 if an input failed.
    pub fn code(&self) -> u8 {
        u8::from(self.piped && self.failed)
    }

    /// As [`State::take`], of an input that stands at a line of a file.
    pub fn take_from(&mut self, path: &str, line: usize, text: &str) -> Outcome {
        if text.trim_start().starts_with(':') {
            return self.take(text);
        }
        self.times = Times::default();
        self.parts(path, &format!("{}{text}", "\n".repeat(line.saturating_sub(1))))
    }

    /// Checks and runs the statements of an input. The first that fails ends it; those before
    /// it have counted.
    pub fn eval(&mut self, text: &str) -> Outcome {
        self.inputs += 1;
        self.times = Times::default();
        let path = self.place.clone().unwrap_or_else(|| format!("<input {}>", self.inputs));
        self.parts(&path, text)
    }

    /// As [`State::eval`], without showing values.
    pub fn eval_silently(&mut self, text: &str) -> Outcome {
        let echo = std::mem::replace(&mut self.echo, false);
        let outcome = self.eval(text);
        self.echo = echo;
        outcome
    }

    /// Runs the text of a file as an input, without showing values.
    pub fn load(&mut self, path: &str, text: &str) -> Outcome {
        self.times = Times::default();
        let echo = std::mem::replace(&mut self.echo, false);
        let outcome = self.parts(path, text);
        self.echo = echo;
        outcome
    }

    /// The type of a variable's value.
    pub fn type_of_variable(&self, name: &str) -> Option<String> {
        let variable = self.checker.variables().into_iter().find(|v| &*v.name == name)?;
        let id = host::GlobalId(variable.id.0);
        let value = self.engine.as_ref().and_then(|e| e.machine.global(id));
        Some(value::type_text(&variable.ty, value.as_ref()))
    }

    /// Tells that a command was wrong.
    pub fn wrong(&self, message: &str) -> Outcome {
        self.show(&[Diagnostic::new(Code::E0602, Span::NONE, message)], &SourceMap::default());
        Outcome::Failed
    }

    fn parts(&mut self, path: &str, text: &str) -> Outcome {
        let shown = self.echo && !input::is_silent(text);
        let echo = std::mem::replace(&mut self.echo, shown);
        let outcome = self.each_part(path, text);
        self.echo = echo;
        outcome
    }

    fn each_part(&mut self, path: &str, text: &str) -> Outcome {
        for part in input::parts(text) {
            match self.part(path, text, part) {
                Outcome::Done => {}
                other => return other,
            }
        }
        Outcome::Done
    }

    fn part(&mut self, path: &str, text: &str, part: Range<usize>) -> Outcome {
        if let Output::Told(listener) = &self.output {
            listener.value(None);
        }
        let start = Instant::now();
        let before: BTreeMap<GlobalId, Ty> = self.checker.variables().into_iter().map(|v| (v.id, v.ty)).collect();
        let own = text.get(part.clone()).unwrap_or("").to_owned();
        let Some(checked) = survived(|| self.checker.check_part(path, text, part, &Disk)) else {
            return Outcome::Failed;
        };
        self.times.check += start.elapsed();
        self.tell(&checked.diagnostics, &checked.sources);
        let Some(program) = checked.program else { return Outcome::Failed };
        let start = Instant::now();
        let roots: Vec<_> = program.entry.into_iter().collect();
        let options = Options { keep_globals: true, checked: self.setup.global.checked };
        let Some(lowered) = survived(|| lower_roots(&program, &roots, options)) else {
            self.checker.undo();
            return Outcome::Failed;
        };
        self.tell(&lowered.diagnostics, &checked.sources);
        if lowered.diagnostics.iter().any(Diagnostic::is_error) {
            self.checker.undo();
            return Outcome::Failed;
        }
        let ready = Ready { program: Arc::new(program), lowered, sources: checked.sources };
        let engine = self.engine.get_or_insert_with(|| Engine::new(self.setup, &self.output));
        let loaded = match engine.load(self.setup, &ready) {
            Ok(l) => l,
            Err(d) => {
                self.checker.undo();
                self.show(&[*d], &ready.sources);
                return Outcome::Failed;
            }
        };
        self.times.compile += start.elapsed();
        let start = Instant::now();
        let stays = |id: host::GlobalId, old: &_, new: &_| {
            before.get(&GlobalId(id.0)).is_some_and(|ty| value::stays(ty, old, new))
        };
        let flag = engine.machine.interrupt_flag();
        let stop = self.interrupts.during(flag, || engine.machine.try_run(&loaded, &stays));
        self.times.run += start.elapsed();
        match stop {
            None => {
                if self.recording {
                    self.accepted.push(own);
                }
                self.show_last(checked.last.as_ref());
                Outcome::Done
            }
            Some(stop) => self.stopped(stop, &ready.sources),
        }
    }

    /// Shows diagnostics, but no warning twice.
    fn tell(&mut self, diagnostics: &[Diagnostic], sources: &SourceMap) {
        let new: Vec<Diagnostic> =
            diagnostics.iter().filter(|d| d.is_error() || self.told.insert((d.code, d.span))).cloned().collect();
        self.show(&new, sources);
    }

    fn stopped(&mut self, stop: Stop, sources: &SourceMap) -> Outcome {
        let Some(engine) = &self.engine else { return Outcome::Failed };
        let error = match stop {
            Stop::Exit(code) => return Outcome::Exit(code as u8),
            Stop::Error(e) => e,
        };
        let mut found = std::mem::take(&mut *engine.reports.borrow_mut());
        self.checker.undo();
        if error.code == tessera_runtime::context::interrupted().code {
            tessera_runtime::io::replace::remove_pending();
            if self.piped {
                return Outcome::Exit(crate::interrupt::INTERRUPTED);
            }
            if let Output::Stdout = self.output {
                // After the `^C` that the terminal shows.
                eprintln!();
            }
        }
        if found.is_empty() {
            found.push(program::at_imports(diagnostic(&error, &engine.spans), sources));
        }
        self.show(&found, sources);
        Outcome::Failed
    }

    /// The value of the input, after its type.
    fn show_last(&self, last: Option<&Last>) {
        let (Some(Last { ty, global }), Some(engine), true) = (last, &self.engine, self.echo) else { return };
        let Some(id) = global else {
            if let Ty::Mesh(Some(mesh)) = ty {
                self.show_value(Shown { ty: ty.clone(), value: None, text: format!("{mesh}\n") });
            }
            return;
        };
        let id = host::GlobalId(id.0);
        let value = engine.machine.global(id);
        let shown = value::type_text(ty, value.as_ref());
        let facts = value.as_ref().and_then(value::facts).map_or_else(String::new, |f| f + "\n");
        let text = engine.machine.global_text(id).filter(|_| !matches!(ty, Ty::FnRef(_) | Ty::Fn(..)));
        let after_type = |shown: &str| match &text {
            Some(text) => format!("{shown}{}{text}\n{facts}", if text.contains('\n') { '\n' } else { ' ' }),
            None => format!("{shown}\n"),
        };
        if let Output::Told(listener) = &self.output {
            let text = after_type(&shown);
            return listener.value(Some(Shown { ty: ty.clone(), value, text }));
        }
        let colored = if self.setup.colors_out() { format!("\x1b[36m{shown}\x1b[0m") } else { shown };
        let whole = after_type(&colored);
        match text {
            Some(text) => self.say_as(&whole, &format!("{text}\n")),
            None => self.say(&whole),
        }
    }

    /// Shows what is all in its type.
    fn show_value(&self, shown: Shown) {
        match &self.output {
            Output::Told(listener) => listener.value(Some(shown)),
            Output::Stdout | Output::Held(_) => self.say(&shown.text),
        }
    }

    /// Runs an input and gives the graphs of the tensor regions that it called.
    pub fn graphs(&mut self, text: &str) -> (Outcome, Vec<tessera_ir::graph::Graph>, Rc<Backend>) {
        let backend = self.engine.get_or_insert_with(|| Engine::new(self.setup, &self.output)).backend.clone();
        backend.watch();
        let outcome = self.eval_silently(text);
        let graphs = backend.watched().into_iter().map(|(_, optimised)| optimised).collect();
        (outcome, graphs, backend)
    }
}

//! A program from text to its end: check, lower, compile, run.

mod processes;

use crate::advise;
use crate::backend::{Backend, Options};
use crate::cache::DiskCache;
use crate::called;
use crate::cli::{Color, Global, Kept};
use crate::files::{Disk, Texts};
use crate::profile::{self, Saved};
use crate::regions::{Executor, Profiler, Reports, Unit};
use crate::render::{Style, render};
use crate::roof;
use crate::target::{self, Choice, Target, is_reference};
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_base::{Code, Diagnostic, Limits, Mesh, Span, limits};
use tessera_core::ir::Program;
use tessera_core::layouts;
use tessera_core::ty::Ty;
use tessera_host::Session;
use tessera_infer::db::Database;
use tessera_ir::graph::Policy;
use tessera_ir::schedule::Machine;
use tessera_lower::{Lowered, lower};
use tessera_resolve::source::{Loaded, SourceMap};
use tessera_runtime::context::{INTERRUPTED, RunError, Stop};
use tessera_runtime::fault::Fault;
use tessera_runtime::pool::Pool;
use tessera_runtime::profile::{Wanted, stage};
use tessera_runtime::world::{self, World};

/// What keeps a program from running, beside the checker.
pub type Gate = fn(&Setup, &Arc<Program>, &SourceMap) -> Vec<Diagnostic>;

/// What all commands know of how they were called.
pub struct Setup {
    pub global: Global,
    pub style: Style,
    pub stack_bytes: usize,
    /// Show where the time went when the program ends, and keep it there.
    pub profile: Option<Kept>,
    /// What is asked of a program that is right, before anything of it runs.
    pub gate: Option<Gate>,
    /// In a run over several processes: what is to be told once it is known by whom.
    pub held: Option<RefCell<Vec<u8>>>,
}

impl Setup {
    pub fn pool(&self) -> Arc<Pool> {
        Arc::new(Pool::new(self.global.threads.map_or_else(world::launch::cores, |n| n as usize)))
    }

    pub fn cache(&self) -> DiskCache {
        let dir = if self.global.no_cache { None } else { DiskCache::default_dir() };
        // A size that is none was refused with the options.
        DiskCache::new(dir).bounded(DiskCache::default_limit().unwrap_or_default())
    }

    /// What programs run on: the target, or the processor where nothing can run on it and a command only looks at what becomes
    /// of a program.
    pub fn backend(&self, pool: Arc<Pool>) -> Backend {
        let target = self.target();
        match target.ready() {
            Ok(()) => self.backend_on(target, self.machine(), pool),
            Err(_) => {
                let machine = if is_reference() { tessera_schedule::reference() } else { tessera_schedule::host() };
                self.backend_on(target::of(Choice::Cpu, false), machine, pool)
            }
        }
    }

    /// What the texts of kernels come from; nothing runs on it.
    pub fn texts(&self) -> Backend {
        let mut backend = self.backend_on(target::of(Choice::Cpu, false), self.machine(), self.pool());
        backend.set_texts(self.target());
        backend
    }

    fn backend_on(&self, target: Arc<dyn Target>, machine: Machine, pool: Arc<Pool>) -> Backend {
        let options = Options {
            verbose: self.global.verbose,
            quiet: self.global.quiet,
            style: self.style,
            checked: self.global.checked,
            check_nan: self.global.check_nan,
            memory: self.global.memory,
            always_compile: std::env::var_os("TESSERA_ALWAYS_COMPILE").is_some(),
        };
        let mut backend = Backend::on(target, options, self.cache(), pool);
        backend.set_machine(machine);
        let global = self.global.clone();
        backend.set_rates(Box::new(move || {
            let roof = roof::roof(&std::env::current_exe().ok()?, &global)?;
            Some((roof.flops, roof.bytes))
        }));
        backend
    }

    /// What kernels are made for.
    pub fn target(&self) -> Arc<dyn Target> {
        target::of(self.global.target, self.global.checked)
    }

    /// What the target allows.
    pub fn limits(&self) -> &'static Limits {
        self.target().limits()
    }

    /// The machine that kernels are made for.
    pub fn machine(&self) -> Machine {
        match is_reference() {
            true if self.global.target == Choice::Cpu => tessera_schedule::reference(),
            _ => self.target().machine(),
        }
    }

    /// Whether what goes to stdout is coloured.
    pub fn colors_out(&self) -> bool {
        match self.global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        }
    }

    /// Writes diagnostics to stderr, or keeps them for later.
    pub fn show(&self, diagnostics: &[Diagnostic], sources: &SourceMap) {
        if let Some(held) = &self.held {
            return render(&mut *held.borrow_mut(), diagnostics, &Texts(sources), self.style);
        }
        let mut err = std::io::stderr().lock();
        render(&mut err, diagnostics, &Texts(sources), self.style);
    }
}

/// The result of checking a file.
pub struct CheckedFile {
    pub program: Option<Program>,
    pub sources: SourceMap,
    pub diagnostics: Vec<Diagnostic>,
    /// What is compared when the program runs: see [`tessera_infer::session::Checked`].
    pub kept: Vec<(Span, Arc<str>)>,
}

/// Checks a text with everything that it imports.
pub fn check(loaded: &Loaded) -> CheckedFile {
    check_on(&limits::CPU, Policy::default(), None, loaded)
}

/// A text as the options say: a program, or Core.
pub fn checked(setup: &Setup, loaded: &Loaded) -> CheckedFile {
    let policy = Policy::parse(&setup.global.policy).unwrap_or_default();
    check_on(setup.limits(), policy, setup.global.mesh.clone(), loaded)
}

/// Core that is given as text: read and verified.
fn check_core(text: &str) -> CheckedFile {
    let read = tessera_core::text::parse(text).map_err(|e| {
        let (line, column) = crate::render::line_column(text, e.at);
        Diagnostic::new(Code::E0012, Span::NONE, format!("line {line}, column {column}: {}", e.message))
    });
    let verified = read.and_then(|program| match tessera_core::verify::verify(&program) {
        Ok(()) => Ok(program),
        Err(d) => Err(Diagnostic::new(Code::E0012, Span::NONE, d.message)),
    });
    let (program, diagnostics) = match verified {
        Ok(program) => (Some(program), vec![]),
        Err(d) => (None, vec![d]),
    };
    CheckedFile { program, sources: SourceMap::default(), diagnostics, kept: vec![] }
}

/// As [`check`], for a program that begins with this policy, on a mesh given from outside.
fn check_on(limits: &'static Limits, policy: Policy, mesh: Option<Mesh>, loaded: &Loaded) -> CheckedFile {
    if tessera_core::text::is_core(&loaded.text) {
        return check_core(&loaded.text);
    }
    let mut db = Database::with(limits, policy, mesh);
    let checked = tessera_infer::check_program(&mut db, &loaded.path, &loaded.text, &Disk);
    CheckedFile {
        program: checked.program,
        sources: checked.sources,
        diagnostics: checked.diagnostics,
        kept: checked.kept,
    }
}

/// The diagnostics alone, for a process that ends soon: taking the database apart would take as long as a
/// third of the checking.
pub fn check_only(setup: &Setup, loaded: &Loaded) -> CheckedFile {
    let db = Database::with(&limits::CPU, Policy::default(), setup.global.mesh.clone());
    let mut db = std::mem::ManuallyDrop::new(db);
    let checked = tessera_infer::check_program_only(&mut db, &loaded.path, &loaded.text, &Disk);
    CheckedFile { program: None, sources: checked.sources, diagnostics: checked.diagnostics, kept: checked.kept }
}

/// A program that can run.
pub struct Ready {
    pub program: Arc<Program>,
    pub lowered: Lowered,
    pub sources: SourceMap,
}

/// Checks and lowers; shows what is to be told. `None` if there was an error.
pub fn prepare(setup: &Setup, loaded: &Loaded) -> Option<Ready> {
    prepare_as(setup, loaded, |_| {})
}

/// The same, where `told` may change what is told before it is shown.
pub fn prepare_as(setup: &Setup, loaded: &Loaded, told: impl FnOnce(&mut CheckedFile)) -> Option<Ready> {
    let mut checked = checked(setup, loaded);
    if tessera_core::text::is_core(&loaded.text) && checked.diagnostics.is_empty() {
        // Its verifier leaves to the checker what a number must not be read as.
        let d = Diagnostic::new(Code::E0012, Span::NONE, "Core that is given as text is not compiled");
        checked.diagnostics.push(d.help("`run --interpret` runs it, and `emit --ir core` reads and verifies it"));
    }
    told(&mut checked);
    setup.show(&checked.diagnostics, &checked.sources);
    let program = checked.program.filter(|_| !checked.diagnostics.iter().any(Diagnostic::is_error))?;
    if let Some(d) = setup.global.devices.and_then(|n| too_many_devices(&program, u64::from(n))) {
        setup.show(&[d], &checked.sources);
        return None;
    }
    if let Some(mesh) = setup.global.mesh.as_ref().filter(|mesh| !lies_on(&program, mesh)) {
        eprintln!("error[E0602]: nothing of the program lies on a mesh with the axes {}", mesh.names().join(", "));
        return None;
    }
    let program = Arc::new(program);
    if let Some(gate) = setup.gate {
        let found = gate(setup, &program, &checked.sources);
        setup.show(&found, &checked.sources);
        if found.iter().any(Diagnostic::is_error) {
            return None;
        }
    }
    let options = tessera_lower::Options { checked: setup.global.checked, ..Default::default() };
    let lowered = lower(&program, options);
    if !lowered.diagnostics.is_empty() {
        setup.show(&lowered.diagnostics, &checked.sources);
        if lowered.diagnostics.iter().any(Diagnostic::is_error) {
            return None;
        }
    }
    Some(Ready { program, lowered, sources: checked.sources })
}

/// Whether a variable of the program is this mesh, or lies on it.
fn lies_on(program: &Program, mesh: &Mesh) -> bool {
    let is = |found: &Option<Arc<Mesh>>| found.as_ref().is_some_and(|m| **m == *mesh);
    let on = |ty: &Ty| match ty {
        Ty::Mesh(found) => is(found),
        ty => layouts::tensors(ty).iter().any(|t| is(&t.sharding.mesh)),
    };
    program.globals.iter().chain(program.insts.iter().flat_map(|f| &f.locals)).any(|v| on(&v.ty))
}

/// E0402 for a mesh that has more devices than there are.
fn too_many_devices(program: &Program, devices: u64) -> Option<Diagnostic> {
    let locals = program.insts.iter().flat_map(|f| &f.locals);
    let (mesh, span) = program.globals.iter().chain(locals).find_map(|v| match &v.ty {
        Ty::Mesh(Some(mesh)) if mesh.devices() > devices => Some((mesh, v.span)),
        _ => None,
    })?;
    let text = format!("{mesh} has {} devices, and `--devices` gives {devices}", mesh.devices());
    Some(
        Diagnostic::new(Code::E0402, span, text)
            .help("leave `--devices` out: there are then as many as the largest mesh has"),
    )
}

/// Runs a program, together with other processes where `mpirun` started several; returns the exit
/// code.
pub fn run(setup: &mut Setup, path: &Path, args: Vec<String>) -> u8 {
    if let Err(fault) = processes::join(setup) {
        fault.into_iter().for_each(|f| setup.show(&[told(f)], &SourceMap::default()));
        return processes::close(1);
    }
    processes::close(run_here(setup, path, args))
}

/// What the world says is wrong.
pub fn told(fault: Fault) -> Diagnostic {
    let code = Code::parse(&format!("E{:04}", fault.code)).unwrap_or(Code::E0999);
    fault.notes.into_iter().fold(Diagnostic::new(code, Span::NONE, fault.message), Diagnostic::note)
}

/// What this process does of a run.
fn run_here(setup: &Setup, path: &Path, args: Vec<String>) -> u8 {
    let started = Instant::now();
    // The first process has the profile. What is wrong here ends all of them where they start together.
    let look = |kept: &Kept| {
        kept.advise.as_ref().and_then(|a| a.against.as_deref()).map(advise::read).transpose()?;
        profile::ready(kept, path)
    };
    let asked = setup.profile.as_ref().filter(|_| world::is_first()).map(look).transpose();
    let (earlier, fit) = match asked {
        Ok(earlier) => (earlier.flatten(), true),
        Err(d) => {
            setup.show(&[*d], &SourceMap::default());
            (None, false)
        }
    };
    // Before anything else, so that all of the run is in it.
    let mut uncounted = String::new();
    if let Some(kept) = &setup.profile {
        // Before there are other threads, which are counted, too.
        if kept.counters {
            uncounted = profile::uncounted(&tessera_runtime::counters::start());
        }
        tessera_runtime::profile::start(Wanted { all_events: kept.trace.is_some(), memory: kept.peak });
        tessera_runtime::traffic::start();
        if kept.advise.is_some() {
            called::start();
        }
    }
    let checking = stage("checking");
    let read = || crate::files::read_source(path);
    let loaded = if path == Path::new("-") { processes::from_input(read) } else { read() };
    let ready = match loaded {
        Ok(_) if !fit => None,
        Ok(l) => prepare(setup, &l),
        Err(d) => {
            setup.show(&[d], &SourceMap::default());
            None
        }
    };
    let ready = match processes::start(setup, ready, &args) {
        Ok(ready) => ready,
        Err(code) => return code,
    };
    drop(checking);
    let starting = stage("starting threads and devices");
    let stdout = std::io::stdout();
    let by_line = stdout.is_terminal();
    let sink: Box<dyn Write> = if world::is_first() { Box::new(stdout) } else { Box::new(std::io::sink()) };
    let mut session = Session::new(sink, by_line, args, setup.stack_bytes);
    session.set_dir(&path.parent().unwrap_or(Path::new("")).to_string_lossy());
    crate::interrupt::on_interrupt(session.interrupt_flag());
    let reports = Reports::default();
    let pool = setup.pool();
    let mut backend = setup.backend(pool.clone());
    backend.follow(path);
    let backend = Rc::new(backend);
    drop(starting);
    let making = stage("making host code");
    let program = start(setup, &mut session, &ready, backend.clone(), pool, reports.clone());
    drop(making);
    let stop = match program {
        Ok(program) => {
            let _host = stage("host code");
            session.run(&program)
        }
        Err(d) => {
            setup.show(&[*d], &ready.sources);
            processes::end(setup, 1, true);
            return 1;
        }
    };
    if setup.global.verbose {
        let (made, found, time) = backend.compiled.get();
        eprintln!("kernels: {made} compiled in {:.1} ms, {found} from the cache", time.as_secs_f64() * 1e3);
    }
    let kept = setup.profile.as_ref().map(|kept| {
        let whole = started.elapsed();
        profiled(setup, kept, earlier.as_ref(), &backend, whole, &ready.sources, &uncounted)
    });
    let failed = matches!(stop, Some(Stop::Error(_)));
    let code = finish(setup, stop, &ready, &reports);
    let unkept = kept.and_then(Result::err);
    unkept.iter().for_each(|d| setup.show(std::slice::from_ref(d), &SourceMap::default()));
    // The others end as the program did.
    processes::end(setup, code, failed);
    if unkept.is_some() { code.max(1) } else { code }
}

/// Tells where the time went, and keeps it where that was asked for.
///
/// # Errors
/// E0706 where a file cannot be read or written.
fn profiled(
    setup: &Setup,
    kept: &Kept,
    earlier: Option<&Saved>,
    backend: &Backend,
    whole: Duration,
    sources: &SourceMap,
    uncounted: &str,
) -> Result<(), Box<Diagnostic>> {
    let profile = tessera_runtime::profile::end();
    let sent = processes::traffic(tessera_runtime::traffic::taken());
    let crossed = processes::crossed();
    if !world::is_first() {
        return Ok(());
    }
    let roof = match kept.roof {
        true => std::env::current_exe().ok().and_then(|tool| roof::roof(&tool, &setup.global)),
        false => roof::known(&setup.global),
    };
    let roof = roof.as_ref();
    if let Some(advised) = &kept.advise {
        let (calls, noting) = called::end();
        let of = |graph| backend.groups(graph).into_iter().map(|p| p.group).collect::<Vec<_>>();
        let groups: Vec<Vec<Vec<_>>> = calls.iter().map(|c| c.sized.iter().map(|s| of(&s.graph)).collect()).collect();
        let whole = whole.saturating_sub(noting);
        let facts = advise::Facts { calls: &calls, profile: &profile, groups: &groups, roof, whole };
        return advise::report(&facts, advised, setup.global.json, sources);
    }
    let mut value = profile::json(&profile, &sent, whole, roof, sources);
    let changed = earlier.map(|earlier| profile::against(earlier, &value));
    if setup.global.json {
        value["changed"] = changed.clone().into();
        if kept.counters {
            value["uncounted"] = uncounted.into();
        }
        eprintln!("{value}");
    } else {
        eprint!("{}", world::world().map_or_else(String::new, processes::whose));
        eprint!("{}", profile::table(&profile, whole, roof, sources));
        eprint!("{}", profile::taken(&profile.rows));
        backend.notes().iter().for_each(|note| eprintln!("{note}"));
        eprint!("{}{crossed}", profile::exchanges(&sent));
        if kept.fusion {
            eprint!("{}", profile::fusion(&profile.rows, sources));
        }
        eprint!("{}", profile::fullest(profile.fullest.as_ref(), sources));
        eprint!("{}{uncounted}", profile::counted(&profile.rows));
    }
    if let Some(changed) = changed.filter(|_| !setup.global.json) {
        eprint!("{changed}");
    }
    profile::keep(kept, &profile, &value, sources)
}

/// Loads a program into a session, ready to run.
pub fn start(
    setup: &Setup,
    session: &mut Session,
    ready: &Ready,
    backend: Rc<Backend>,
    pool: Arc<Pool>,
    reports: Reports,
) -> Result<tessera_host::Loaded, Box<Diagnostic>> {
    let loaded = session
        .load(&ready.lowered.host)
        .map_err(|e| Box::new(Diagnostic::new(Code::E0603, Span::NONE, e.to_string())))?;
    pool.watch(session.interrupt_flag());
    let mut executor = Executor::new(backend, pool, reports);
    executor.add(unit(session, &loaded, ready));
    executor.set_profiler(profiler(setup, &ready.sources));
    session.set_regions(Box::new(executor));
    Ok(loaded)
}

/// Who makes lines of what a program measured of a function.
pub fn profiler(setup: &Setup, sources: &SourceMap) -> Box<Profiler> {
    let (global, sources) = (setup.global.clone(), sources.clone());
    Box::new(move |measured| profile::lines(measured, roof::known(&global).as_ref(), &sources))
}

/// What the executor of regions needs of a loaded program.
pub fn unit(session: &Session, loaded: &tessera_host::Loaded, ready: &Ready) -> Unit {
    Unit {
        program: ready.program.clone(),
        regions: ready.lowered.regions.clone(),
        closures: ready.lowered.closures.iter().map(|(f, inst)| (session.address(loaded, *f), *inst)).collect(),
        spans: ready.lowered.host.spans.clone(),
        library: ready.sources.library_items(),
        sources: ready.sources.clone(),
    }
}

/// Tells why a program ended early, and the exit code.
pub fn finish(setup: &Setup, stop: Option<Stop>, ready: &Ready, reports: &Reports) -> u8 {
    match stop {
        None => 0,
        Some(Stop::Exit(code)) => code as u8,
        // Another process tells.
        Some(Stop::Error(e)) if e.code == world::ELSEWHERE => 1,
        Some(Stop::Error(e)) if e.code == INTERRUPTED && world::world().is_some() => {
            tessera_runtime::io::replace::remove_pending();
            let why = world::world().map(World::ended_from_outside);
            why.into_iter().for_each(|f| setup.show(&[told(f)], &ready.sources));
            1
        }
        Some(Stop::Error(e)) if e.code == INTERRUPTED => {
            tessera_runtime::io::replace::remove_pending();
            crate::interrupt::tell();
            crate::interrupt::INTERRUPTED
        }
        Some(Stop::Error(e)) => {
            let mut found = std::mem::take(&mut *reports.borrow_mut());
            match found.first_mut() {
                None => found.push(diagnostic(&e, &ready.lowered.host.spans)),
                Some(first) => add_labels(first, &e, &ready.lowered.host.spans),
            }
            setup.show(&set_aside(found, &ready.sources), &ready.sources);
            1
        }
    }
}

/// Run-time errors with their places in the user's own files.
pub fn set_aside(found: Vec<Diagnostic>, sources: &SourceMap) -> Vec<Diagnostic> {
    found.into_iter().map(|d| at_imports(outside_library(d, sources), sources)).collect()
}

/// Whether an error is that the user wants the program to stop.
pub fn is_interruption(d: &Diagnostic) -> bool {
    d.code == Code::E0713
}

/// A run-time error as a diagnostic.
pub fn diagnostic(e: &RunError, spans: &[Span]) -> Diagnostic {
    let place = |span: u32| spans.get(span as usize).copied().unwrap_or_default();
    let code = Code::parse(&format!("E{:04}", e.code)).unwrap_or(Code::E0999);
    let mut d = Diagnostic::new(code, place(e.span), e.message.clone());
    d.notes = e.notes.clone();
    add_labels(&mut d, e, spans);
    d
}

/// The places that a run-time error brings along, each once.
fn add_labels(d: &mut Diagnostic, e: &RunError, spans: &[Span]) {
    for (span, text) in &e.labels {
        let span = spans.get(*span as usize).copied().unwrap_or_default();
        if !span.is_none() && d.span != span && d.labels.iter().all(|l| l.span != span) {
            d.labels.push(tessera_base::Label { span, text: text.clone() });
        }
    }
}

/// An error while an imported module runs: the statement that imports it is no call.
pub fn at_imports(mut d: Diagnostic, sources: &SourceMap) -> Diagnostic {
    for label in &mut d.labels {
        let place = sources.locate(label.span).and_then(|(file, range)| sources.file(file)?.text.get(range));
        if label.text == "called here" && place.is_some_and(|t| t.starts_with("import ") || t.starts_with("from ")) {
            label.text = "imported here".into();
        }
    }
    d
}

/// An error in the standard library, told at the call that led into it.
fn outside_library(mut d: Diagnostic, sources: &SourceMap) -> Diagnostic {
    let library = |span: Span| {
        let file = sources.locate(span).and_then(|(file, _)| sources.file(file));
        file.is_some_and(|f| f.library)
    };
    let call = d.labels.iter().position(|l| l.text == "called here" && !library(l.span));
    if let (true, Some(i)) = (library(d.span), call) {
        let call = d.labels.remove(i);
        let text = if d.label.is_empty() { "here".to_owned() } else { std::mem::take(&mut d.label) };
        d.labels.insert(0, tessera_base::Label { span: d.span, text });
        (d.span, d.label) = (call.span, "in this call".into());
    }
    d
}

/// Writes a result to stdout as JSON: an object on a line of its own.
pub fn out_json(value: &serde_json::Value) {
    out(&format!("{value}\n"));
}

/// Writes the page of a topic, as JSON where that is asked for.
pub fn topic_shown(setup: &Setup, topic: Option<&str>, text: &str) {
    match setup.global.json {
        true => out_json(&serde_json::json!({"schema": 1, "topic": topic, "text": text})),
        false => out(text),
    }
}

/// Writes text to stdout; a closed pipe is no error.
pub fn out(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

//! Files that are tested at once, each on one thread; what they say is told in the order of the files.
//!
//! The cases of a file run one after the other: they may write and read the same files.

use super::cases::{self, Case, What};
use super::collect::{Found, is_markdown};
use super::document::Document;
use super::markdown;
use super::report::Done;
use super::run::{Failure, Machine};
use super::stops::Stops;
use crate::cli::Global;
use crate::files;
use crate::program::{self, Setup};
use crate::render::Style;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use tessera_base::Diagnostic;
use tessera_resolve::source::{Loaded, SourceMap};
use tessera_runtime::world::launch;

/// What a file says.
pub enum Event {
    /// For stderr.
    Said(String),
    Done(Done),
}

/// What all threads work on.
pub struct Work<'a> {
    pub global: &'a Global,
    pub style: Style,
    pub stack_bytes: usize,
    pub files: &'a [Found],
    /// Only cases whose name contains this.
    pub only: Option<&'a str>,
    /// Files at once.
    pub jobs: usize,
    pub stops: &'a Stops,
}

/// Tests the files, and gives what they say to `tell` in their order; returns the names of all cases.
pub fn in_order(work: &Work, mut tell: impl FnMut(Event)) -> Vec<String> {
    let files = work.files;
    // `None` ends a file.
    let (send, receive) = channel::<(usize, Option<Event>)>();
    let next = AtomicUsize::new(0);
    let mut names = vec![];
    std::thread::scope(|scope| {
        let next = &next;
        let start = |_| {
            let send = send.clone();
            let thread = std::thread::Builder::new().name("test".into()).stack_size(work.stack_bytes);
            thread.spawn_scoped(scope, move || worker(work, next, &send)).ok()
        };
        let threads: Vec<_> = (0..work.jobs).map(start).collect();
        // Where not even one thread can be had, this one does the work.
        if threads.iter().all(Option::is_none) {
            names.extend(worker(work, next, &send));
        }
        drop(send);
        let (mut current, mut ended) = (0, vec![false; files.len()]);
        let mut waiting: Vec<Vec<Event>> = files.iter().map(|_| vec![]).collect();
        for (file, event) in receive {
            match event {
                Some(event) if file == current => tell(event),
                Some(event) => waiting[file].push(event),
                None => ended[file] = true,
            }
            while ended.get(current).is_some_and(|e| *e) {
                current += 1;
                waiting.get_mut(current).into_iter().flat_map(std::mem::take).for_each(&mut tell);
            }
        }
        for thread in threads.into_iter().flatten() {
            names.extend(thread.join().unwrap_or_default());
        }
        // What a thread said that did not come to its end.
        waiting.into_iter().flatten().for_each(tell);
    });
    names
}

/// Tests one file after the other until there are none; returns the names of their cases.
fn worker(work: &Work, next: &AtomicUsize, send: &Sender<(usize, Option<Event>)>) -> Vec<String> {
    let mut global = work.global.clone();
    if work.jobs > 1 && global.threads.is_none() {
        global.threads = Some((launch::cores() / work.jobs).clamp(1, 1024) as u32);
    }
    // Results hold what is told in words.
    let style = Style { json: false, color: work.style.color && !global.json, ..work.style };
    let held = Some(RefCell::default());
    let machine = Machine::new(Setup { global, style, stack_bytes: work.stack_bytes, profile: None, gate: None, held });
    let mut names = vec![];
    loop {
        let at = next.fetch_add(1, Ordering::SeqCst);
        let Some(file) = work.files.get(at).filter(|_| !work.stops.stopped()) else { return names };
        let tell = |event| drop(send.send((at, Some(event))));
        let tester = Tester { work, machine: &machine, tell: &tell };
        names.extend(tester.file(file));
        drop(send.send((at, None)));
    }
}

/// What tests a file.
struct Tester<'a> {
    work: &'a Work<'a>,
    machine: &'a Machine,
    tell: &'a dyn Fn(Event),
}

impl Tester<'_> {
    /// Tests a file; returns the names of its cases.
    fn file(&self, file: &Found) -> Vec<String> {
        let loaded = match files::read_source(&file.path) {
            Ok(l) => l,
            Err(d) => {
                let path = file.path.to_string_lossy().into_owned();
                self.broken(&path, 1, &[d], &SourceMap::default());
                return vec![];
            }
        };
        let markdown = is_markdown(&file.path);
        let mut cases = if markdown { markdown::of_document(&loaded.text) } else { cases::of_program(&loaded.text) };
        let names = cases.iter().map(|c| c.name.clone()).collect();
        // A block of a document needs what those before it defined.
        let wanted = |c: &Case| self.work.only.is_none_or(|o| c.name.contains(o));
        if markdown {
            self.document(&loaded, &cases, &wanted);
        } else {
            cases.retain(wanted);
            if file.named || !cases.is_empty() {
                self.program(&loaded, &cases);
            }
        }
        names
    }

    /// A file that cannot be tested counts as a case that failed.
    fn broken(&self, path: &str, line: usize, found: &[Diagnostic], sources: &SourceMap) {
        self.told(found, sources);
        let why = found.iter().find(|d| d.is_error()).map_or("it does not check", |d| &d.message).to_owned();
        let done = Done {
            name: "the file".into(),
            detail: String::new(),
            file: path.into(),
            line,
            time: Duration::ZERO,
            said: String::new(),
            failure: Some(Failure::new(line, why)),
            broken: true,
        };
        (self.tell)(Event::Done(done));
    }

    /// Tells diagnostics as they are told elsewhere.
    fn told(&self, found: &[Diagnostic], sources: &SourceMap) {
        let mut bytes = vec![];
        crate::render::render(&mut bytes, found, &files::Texts(sources), self.work.style);
        if !bytes.is_empty() {
            (self.tell)(Event::Said(String::from_utf8_lossy(&bytes).into_owned()));
        }
    }

    fn program(&self, loaded: &Loaded, cases: &[Case]) {
        let checked = program::check(loaded);
        let error = checked.diagnostics.iter().find(|d| d.is_error());
        if checked.program.is_none() || error.is_some() {
            let place = error.and_then(|d| checked.sources.line_col(d.span));
            return self.broken(
                &loaded.path,
                place.map_or(1, |(_, line, _)| line),
                &checked.diagnostics,
                &checked.sources,
            );
        }
        self.told(&checked.diagnostics, &checked.sources);
        for case in cases {
            self.case(loaded, case, || {
                self.work.stops.during(|watch| {
                    self.machine.run(loaded, &checked.diagnostics, case, &|session| watch(session.interrupt_flag()))
                })
            });
        }
    }

    fn document(&self, loaded: &Loaded, cases: &[Case], wanted: &dyn Fn(&Case) -> bool) {
        let Some(last) = cases.iter().rposition(wanted) else { return };
        self.work.stops.during(|watch| {
            let mut document = Document::new(&loaded.path, &self.machine.setup, watch);
            for case in &cases[..=last] {
                if wanted(case) {
                    self.case(loaded, case, || document.run(case));
                } else {
                    // What a block that was not asked for says is not asked for either.
                    let _ = catch_unwind(AssertUnwindSafe(|| document.run(case)));
                    self.held();
                }
            }
        });
    }

    /// Runs a case and tells what came of it. A fault of the compiler ends the case alone.
    fn case(&self, loaded: &Loaded, case: &Case, run: impl FnOnce() -> Result<(), Failure>) {
        if self.work.stops.stopped() {
            return;
        }
        let start = Instant::now();
        let bug = |_| Err(Failure::new(case.line, "the compiler is at fault"));
        let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(bug);
        let said = self.held();
        // What was interrupted neither passed nor failed.
        if self.work.stops.stopped() {
            return;
        }
        let detail = match &case.what {
            What::Drawn(calls) => format!(" ({} sizes)", calls.len()),
            _ => String::new(),
        };
        (self.tell)(Event::Done(Done {
            name: case.name.clone(),
            detail,
            file: loaded.path.to_string(),
            line: case.line,
            time: start.elapsed(),
            said,
            failure: result.err(),
            broken: false,
        }));
    }

    /// What was told since this was asked last.
    fn held(&self) -> String {
        let held = self.machine.setup.held.as_ref().map(RefCell::take).unwrap_or_default();
        String::from_utf8_lossy(&held).into_owned()
    }
}

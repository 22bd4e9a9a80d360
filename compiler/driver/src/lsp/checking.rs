//! What is wrong with the programs of open files: found on another thread, told to the client.

use super::world::{Found, Ruler, World};
use crate::budget::{self, On};
use crate::program::Setup;
use crossbeam_channel::Sender;
use lsp_types::{DiagnosticRelatedInformation, DiagnosticSeverity, Location, PublishDiagnosticsParams};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tessera_base::{Diagnostic, FileId, Severity, quote};
use tessera_core::ir::Program;
use tessera_infer::check_only;
use tessera_infer::db::Database;
use tessera_infer::session::check_program;
use tessera_resolve::source::SourceMap;

/// What a thread found, of which state of the texts.
pub struct Result {
    pub generation: u64,
    pub found: Vec<(FileId, Found)>,
    /// What went wrong in the checker itself.
    pub fault: Option<String>,
}

/// The state of the texts that was last asked for.
static LATEST: AtomicU64 = AtomicU64::new(0);
/// One thread plans at a time.
static PLANS: Mutex<()> = Mutex::new(());
/// Programs are as deep as those that are run.
const STACK_BYTES: usize = 256 << 20;

/// Checks the programs of some files on a thread of its own. Where an edit comes first, nothing is told.
///
/// Budgets of programs that are right are held against them too. That plans functions, so it waits until no other thread does it.
pub fn start(db: &Database, roots: Vec<FileId>, generation: u64, setup: Setup, tell: Sender<Result>) {
    let db = db.clone();
    LATEST.store(generation, Ordering::Relaxed);
    let thread = std::thread::Builder::new().name("diagnostics".into()).stack_size(STACK_BYTES);
    let spawned = thread.spawn(move || {
        let mut result = Result { generation, found: vec![], fault: None };
        for root in roots {
            match catch_unwind(AssertUnwindSafe(|| check_only(&db, root))) {
                Ok(checked) => result.found.push((root, Found::of(checked))),
                Err(payload) if payload.is::<salsa::Cancelled>() => return,
                Err(payload) => result.fault = Some(super::server::message(&*payload)),
            }
        }
        // Whoever edits next waits for this picture of the texts to go.
        let programs = match catch_unwind(AssertUnwindSafe(|| with_budgets(&db, &result))) {
            Ok(programs) => programs,
            Err(payload) if payload.is::<salsa::Cancelled>() => return,
            Err(_) => vec![],
        };
        drop(db);
        if !programs.is_empty() {
            let _one = PLANS.lock();
            for (at, program) in programs {
                if LATEST.load(Ordering::Relaxed) != generation {
                    return;
                }
                let found = &mut result.found[at].1;
                let planned = || budget::check(&setup, &program, &found.sources, On::Known);
                match catch_unwind(AssertUnwindSafe(planned)) {
                    Ok(over) => found.diagnostics.extend(over),
                    Err(payload) => result.fault = Some(super::server::message(&*payload)),
                }
            }
        }
        let _ = tell.send(result);
    });
    if let Err(e) = spawned {
        eprintln!("a thread cannot be had: {e}");
    }
}

/// The programs that may have budgets and have no errors, by their place among what was found.
fn with_budgets(db: &Database, result: &Result) -> Vec<(usize, Arc<Program>)> {
    let mut out = vec![];
    for (at, (root, found)) in result.found.iter().enumerate() {
        let may_have = found.sources.files.iter().any(|f| budget::may_have(&f.text));
        if may_have && !found.diagnostics.iter().any(Diagnostic::is_error) {
            out.extend(check_program(db, *root).program.map(|p| (at, Arc::new(p))));
        }
    }
    out
}

impl World {
    /// What is to be said of the open files: of each what its own program says, and of files that are not open what the
    /// programs say that import them.
    pub fn to_publish(&self) -> Vec<PublishDiagnosticsParams> {
        let mut all: BTreeMap<String, Vec<lsp_types::Diagnostic>> = BTreeMap::new();
        for (root, found) in &self.found {
            for d in &found.diagnostics {
                let file = found.sources.locate(d.span).map_or(*root, |(file, _)| file);
                let Some(path) = found.sources.file(file).map(|f| f.path.to_string()) else { continue };
                if file != *root && self.documents.open.contains_key(&path) {
                    continue;
                }
                let shown = self.diagnostic(d, &found.sources);
                let of_file = all.entry(path).or_default();
                if !of_file.contains(&shown) {
                    of_file.push(shown);
                }
            }
        }
        for path in self.documents.open.keys() {
            all.entry(path.clone()).or_default();
        }
        let publish = |(path, diagnostics): (String, Vec<lsp_types::Diagnostic>)| {
            let version = self.documents.open.get(&path).map(|o| o.version);
            Some(PublishDiagnosticsParams { uri: self.uri(&path)?, version, diagnostics })
        };
        all.into_iter().filter_map(publish).collect()
    }

    /// What is wrong with one open file.
    pub fn of_file(&self, root: FileId) -> Vec<lsp_types::Diagnostic> {
        let Some(found) = self.found.get(&root) else { return vec![] };
        let here = |d: &&Diagnostic| found.sources.locate(d.span).is_none_or(|(file, _)| file == root);
        found.diagnostics.iter().filter(here).map(|d| self.diagnostic(d, &found.sources)).collect()
    }

    /// A diagnostic as the client shows it.
    pub fn diagnostic(&self, d: &Diagnostic, sources: &SourceMap) -> lsp_types::Diagnostic {
        let spelled = |text: &str| {
            let text = quote::spelled(text, |span| {
                let (file, range) = sources.locate(span)?;
                sources.file(file)?.text.get(range)
            });
            text.into_owned()
        };
        let located = |span| {
            let (file, range) = sources.locate(span)?;
            let file = sources.file(file)?;
            Some((file.path.clone(), Ruler::of(self.units, &file.text).range(range)))
        };
        let range = located(d.span).map_or_else(Default::default, |(_, range)| range);
        let mut message = spelled(&d.message);
        let mut line = |prefix: &str, text: &str| {
            message.push('\n');
            message.push_str(prefix);
            message.push_str(text);
        };
        if !d.label.is_empty() {
            line("", &spelled(&d.label));
        }
        if let Some(w) = &d.witness {
            line("for example ", w);
        }
        d.notes.iter().for_each(|n| line("note: ", &spelled(n)));
        d.fixes.iter().for_each(|f| line("help: ", &spelled(&f.title)));
        let related = d.labels.iter().filter_map(|l| {
            let (path, range) = located(l.span)?;
            let location = Location { uri: self.uri(&path)?, range };
            Some(DiagnosticRelatedInformation { location, message: spelled(&l.text) })
        });
        let related: Vec<_> = related.collect();
        lsp_types::Diagnostic {
            range,
            severity: Some(match d.severity() {
                Severity::Error => DiagnosticSeverity::Error,
                Severity::Warning => DiagnosticSeverity::Warning,
                Severity::Note => DiagnosticSeverity::Information,
            }),
            code: Some(lsp_types::Code::String(d.code.name().to_owned())),
            code_description: None,
            source: Some("tessera".into()),
            message: message.into(),
            tags: None,
            related_information: (!related.is_empty()).then_some(related),
            data: None,
        }
    }

    /// What is wrong with a file that is not open.
    pub fn checked_now(&mut self, root: FileId) -> Vec<lsp_types::Diagnostic> {
        self.found.insert(root, Arc::new(Found::of(check_only(&self.db, root))));
        let items = self.of_file(root);
        self.found.remove(&root);
        items
    }

    /// Takes what a thread found.
    pub fn take(&mut self, result: Result) {
        for (root, found) in result.found {
            self.found.insert(root, Arc::new(found));
        }
    }
}

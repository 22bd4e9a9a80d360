//! What the page shows of a program: its functions, what calls make of them, their graphs and texts.

use super::{chosen, told};
use crate::ask::{self, Asked};
use crate::cli::Ir;
use crate::emit::text_of;
use crate::explain::function::{instances, signature};
use crate::graph_facts::{self, Place};
use crate::program::Setup;
use crate::regions::as_run;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tessera_base::{Diagnostic, Span};
use tessera_core::ir::{Effect, InstId, Program as Core};
use tessera_infer::asked;
use tessera_resolve::source::{Loaded, SourceMap};

/// What tells one state of a file from another.
type Stamp = Option<(SystemTime, u64)>;

/// A function as a call makes it, or one that nothing calls.
struct Item {
    name: String,
    head: Span,
    inst: Option<InstId>,
}

/// A file with all that it imports, as it was last read.
pub struct Program {
    loaded: Option<Loaded>,
    core: Option<Arc<Core>>,
    sources: SourceMap,
    items: Vec<Item>,
    diagnostics: Vec<Value>,
    stamps: Vec<(PathBuf, Stamp)>,
}

fn stamp(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

impl Program {
    /// Reads and checks a file.
    pub fn read(setup: &Setup, path: &Path) -> Program {
        let stamps = vec![(path.to_owned(), stamp(path))];
        let mut out = Program {
            loaded: None,
            core: None,
            sources: SourceMap::default(),
            items: vec![],
            diagnostics: vec![],
            stamps,
        };
        match crate::files::read_source(path) {
            Ok(loaded) => out.check(setup, loaded),
            Err(d) => setup.show(&[d], &SourceMap::default()),
        }
        out.diagnostics = told(setup);
        out
    }

    fn check(&mut self, setup: &Setup, loaded: Loaded) {
        let (db, id) = ask::open(setup, &loaded);
        let checked = tessera_infer::session::check_program(&db, id);
        setup.show(&checked.diagnostics, &checked.sources);
        let others = checked.sources.files.iter().filter(|f| !f.library && *f.path != *loaded.path);
        self.stamps.extend(others.map(|f| (PathBuf::from(&*f.path), stamp(Path::new(&*f.path)))));
        self.sources = checked.sources;
        self.loaded = Some(loaded);
        let program = checked.program.filter(|_| !checked.diagnostics.iter().any(Diagnostic::is_error));
        let heads = asked::functions(&db, id);
        for (name, head) in heads {
            let calls = program.as_ref().map_or_else(Vec::new, |p| instances(p, head.item, &name));
            let item = |inst| Item { name: name.to_string(), head, inst };
            if calls.is_empty() {
                self.items.push(item(None));
            }
            self.items.extend(calls.iter().map(|(id, _)| item(Some(*id))));
        }
        self.core = program.map(Arc::new);
    }

    /// Whether a file is another one than was read.
    pub fn is_stale(&self) -> bool {
        self.stamps.iter().any(|(path, was)| stamp(path) != *was)
    }

    /// Files, functions and diagnostics.
    pub fn json(&self) -> Value {
        let file =
            |f: &tessera_resolve::source::SourceText| json!({"path": *f.path, "text": *f.text, "library": f.library});
        let function = |item: &Item| {
            let inst = item.inst.zip(self.core.as_ref()).map(|(i, core)| &core.insts[i.0 as usize]);
            let effect = inst.map(|f| match &f.effect {
                Effect::Graph => "graph function".to_owned(),
                Effect::Host { why, .. } => format!("host function: it {why}"),
            });
            let compared = inst.map(|f| f.kept.iter().map(|(_, what)| what.to_string()).collect::<Vec<_>>());
            json!({
                "name": item.name,
                "place": Place::of(item.head, &self.sources),
                "signature": inst.map(signature),
                "effect": effect,
                "compared": compared,
            })
        };
        json!({
            "schema": 1,
            "file": self.stamps.first().map(|(p, _)| p.display().to_string()),
            "checks": self.core.is_some(),
            "files": self.sources.files.iter().map(file).collect::<Vec<_>>(),
            "functions": self.items.iter().map(function).collect::<Vec<_>>(),
            "diagnostics": self.diagnostics,
        })
    }

    fn asked(&self, setup: &Setup, item: &Item) -> Option<Asked> {
        let Some((inst, core)) = item.inst.zip(self.core.clone()) else {
            return ask::find(setup, self.loaded.as_ref()?, &item.name);
        };
        Some(Asked::instance(core, self.sources.clone(), inst, item.head))
    }

    /// The graphs of a function: as it is run and as it is written, its memory, its mesh; or why it has none.
    pub fn graph(&self, setup: &Setup, number: usize) -> Value {
        let why = |setup: &Setup| json!({"schema": 1, "diagnostics": told(setup)});
        let Some(asked) = self.items.get(number).and_then(|item| self.asked(setup, item)) else { return why(setup) };
        let shown = || {
            let called = asked.call(setup, &chosen())?;
            let backend = setup.texts();
            let graph = as_run(&backend, &called.graph, asked.function.head).map_err(|d| vec![*d])?;
            Ok(json!({
                "schema": 1,
                "notes": called.notes,
                "run": graph_facts::of(&backend, &graph, &asked.sources),
                "written": graph_facts::as_traced(&called.graph, &asked.sources),
                "mesh": graph_facts::mesh(&called.graph, &asked.sources),
                "products": graph_facts::products(&called.graph, &asked.sources),
                "again": graph_facts::again(&backend, &asked.sources),
            }))
        };
        shown().unwrap_or_else(|found: Vec<Diagnostic>| {
            setup.show(&found, &asked.sources);
            why(setup)
        })
    }

    /// What a function becomes, in one form; or why it does not.
    pub fn ir(&self, setup: &Setup, number: usize, form: Ir) -> Value {
        let why = |setup: &Setup| json!({"schema": 1, "diagnostics": told(setup)});
        let Some(asked) = self.items.get(number).and_then(|item| self.asked(setup, item)) else { return why(setup) };
        let shown = || {
            if let Some(text) = crate::emit::before_graphs(&asked, form) {
                return Ok(text);
            }
            let called = asked.call(setup, &chosen())?;
            let backend = setup.texts();
            let graph = as_run(&backend, &called.graph, asked.function.head).map_err(|d| vec![*d])?;
            text_of(&backend, &graph, form).map_err(|d| vec![*d])
        };
        match shown() {
            Ok(text) => json!({"schema": 1, "form": form.name(), "text": text}),
            Err(found) => {
                setup.show(&found, &asked.sources);
                why(setup)
            }
        }
    }
}

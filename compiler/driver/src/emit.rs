//! `tessera emit`: what a program becomes, level by level.
//!
//! Core and Host IR are there without running. Graphs exist at concrete shapes only, so the program is run,
//! prints nothing and leaves no files, and every region that is called shows its graph (or what follows
//! from it) once per shapes.

use crate::backend::Backend;
use crate::cli::Ir;
use crate::program::{Setup, checked, out, prepare};
use std::path::Path;
use std::rc::Rc;
use tessera_base::{Diagnostic, Span};
use tessera_ir::graph::Graph;
use tessera_ir::text::TextError;
use tessera_llvm::{Emission, HostTarget};
use tessera_resolve::source::{Loaded, SourceMap};

/// The module that a model stands for.
fn model(setup: &Setup, path: &Path) -> u8 {
    match tessera_onnx::module(&path.to_string_lossy()) {
        Ok(text) => {
            out(&text);
            0
        }
        Err(why) => {
            let d = Diagnostic::new(why.code, Span::NONE, why.message);
            setup.show(&[why.notes.into_iter().fold(d, Diagnostic::note)], &SourceMap::default());
            1
        }
    }
}

/// Runs the command; returns the exit code.
pub fn emit(setup: &Setup, path: &Path, ir: Ir, after: Option<&str>) -> u8 {
    let after = match after.map(|a| a.strip_prefix("after:").unwrap_or(a)) {
        Some("list") => {
            for pass in tessera_graph::PIPELINE {
                out(&format!("{:<16} {}\n", pass.name, pass.doc));
            }
            return 0;
        }
        Some(name) if !tessera_graph::PIPELINE.iter().any(|p| p.name == name) => {
            let names: Vec<&str> = tessera_graph::PIPELINE.iter().map(|p| p.name).collect();
            let near = tessera_base::nearest(name, names.iter().copied());
            let hint =
                near.map_or_else(|| format!("the passes are {}", names.join(", ")), |n| format!("did you mean `{n}`?"));
            eprintln!("error[E0602]: there is no pass `{name}`; {hint}");
            return 2;
        }
        other => other,
    };
    if path.extension().is_some_and(|e| e == "onnx") {
        return model(setup, path);
    }
    let loaded = match crate::files::read_source(path) {
        Ok(l) => l,
        Err(d) => {
            setup.show(&[d], &SourceMap::default());
            return 1;
        }
    };
    // A file may hold a graph as text.
    if loaded.text.trim_start().starts_with("\"tessera.graph\"") {
        return from_text(setup, &loaded.text, ir, after);
    }
    if ir == Ir::Ast {
        return ast(setup, &loaded);
    }
    if ir == Ir::Core {
        return core(setup, &loaded);
    }
    let Some(ready) = prepare(setup, &loaded) else { return 1 };
    if ir == Ir::Host {
        out(&format!("{:#?}\n", ready.lowered.host));
        return 0;
    }
    tessera_runtime::io::aside::start();
    let mut session = tessera_host::Session::new(Box::new(std::io::sink()), false, vec![], setup.stack_bytes);
    let reports = crate::regions::Reports::default();
    let pool = setup.pool();
    let backend = Rc::new(setup.backend(pool.clone()));
    backend.watch();
    let program = match crate::program::start(&mut session, &ready, backend.clone(), pool, reports.clone()) {
        Ok(p) => p,
        Err(d) => {
            setup.show(&[*d], &ready.sources);
            return 1;
        }
    };
    let stop = session.run(&program);
    for (before, graph) in backend.watched() {
        let shown = match after {
            Some(pass) => tessera_graph::run_until(&before, pass).unwrap_or(before),
            None => graph,
        };
        if let Err(d) = show(&backend, &shown, ir) {
            setup.show(&[*d], &ready.sources);
            return 1;
        }
    }
    crate::program::finish(setup, stop, &ready, &reports)
}

/// Core of a program, or of Core as text, which it reads and verifies.
fn core(setup: &Setup, loaded: &Loaded) -> u8 {
    let file = checked(setup, loaded);
    setup.show(&file.diagnostics, &file.sources);
    match file.program.filter(|_| !file.diagnostics.iter().any(Diagnostic::is_error)) {
        Some(program) => {
            out(&tessera_core::text::print(&program, false));
            0
        }
        None => 1,
    }
}

/// Says what is wrong with the text of an IR.
fn not_read(text: &str, e: &TextError) -> u8 {
    let (line, column) = crate::render::line_column(text, e.at);
    eprintln!("error[E0012]: line {line}, column {column}: {}", e.message);
    1
}

fn from_text(setup: &Setup, text: &str, ir: Ir, after: Option<&str>) -> u8 {
    let parsed = tessera_ir::graph_text::parse(text);
    let graph = match parsed {
        Ok(g) => g,
        Err(e) => return not_read(text, &e),
    };
    let wrong = tessera_ir::verify::verify(&graph);
    if !wrong.is_empty() {
        wrong.iter().for_each(|w| eprintln!("error[E0012]: {w}"));
        return 1;
    }
    let backend = setup.backend(setup.pool());
    let graph = match after {
        Some(pass) => tessera_graph::run_until(&graph, pass).unwrap_or(graph),
        None => backend.optimise(&graph),
    };
    match show(&backend, &graph, ir) {
        Ok(()) => 0,
        Err(d) => {
            setup.show(&[*d], &SourceMap::default());
            1
        }
    }
}

fn ast(setup: &Setup, loaded: &tessera_resolve::source::Loaded) -> u8 {
    let split = tessera_grammar::split(&loaded.text);
    let mut errors = split.diagnostics.len();
    for item in &split.items {
        let text = loaded.text.get(item.range.start as usize..item.range.end as usize).unwrap_or("");
        let parsed = tessera_grammar::parse_item(text, tessera_base::ItemId(0));
        errors += parsed.diagnostics.len();
        for stmt in &parsed.stmts {
            out(&format!("{stmt:#?}\n"));
        }
    }
    if errors > 0 {
        let checked = crate::program::check(loaded);
        setup.show(&checked.diagnostics, &checked.sources);
    }
    u8::from(errors > 0)
}

/// Prints a graph, or what it becomes.
pub fn show(backend: &Backend, graph: &Graph, ir: Ir) -> Result<(), Box<Diagnostic>> {
    if matches!(ir, Ir::Graph | Ir::Host | Ir::Core | Ir::Ast) {
        out(&graph.to_string());
        return Ok(());
    }
    if ir == Ir::Kernels {
        out(&crate::kernel_table::of(backend, graph));
        return Ok(());
    }
    for planned in backend.groups(graph) {
        let names: Vec<String> = planned.group.members.iter().map(|m| m.to_string()).collect();
        let Some(lowered) = &planned.lowered else {
            out(&format!("// {} runs without a kernel of its own ({:?})\n", names.join(", "), planned.group.kind));
            continue;
        };
        if ir == Ir::Schedule {
            // The kernels of a Fourier transform are written without one.
            let text = planned.schedule.as_ref().map(tessera_ir::schedule::text::print);
            out(&text
                .unwrap_or_else(|| format!("// {} has no schedule ({:?})\n", names.join(", "), planned.group.kind)));
            continue;
        }
        for step in &lowered.steps {
            if ir == Ir::Tile {
                out(&tessera_ir::tile::text::print(&step.kernel));
                continue;
            }
            let what = if ir == Ir::Llvm { Emission::Ir } else { Emission::Assembly };
            let text = HostTarget::host().and_then(|t| tessera_llvm::text(&step.kernel, &t, what));
            out(&text.map_err(|e| Box::new(e.diagnostic(tessera_base::Span::NONE)))?);
        }
    }
    Ok(())
}

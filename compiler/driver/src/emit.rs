//! `tessera emit`: what a program becomes, level by level.
//!
//! Core and Host IR are there without running. Graphs exist at concrete shapes only, so the program is run,
//! prints nothing and leaves no files, and every region that is called shows its graph (or what follows
//! from it) once per shapes. One function is traced at sizes that are given or chosen, and nothing runs. A text of an IR is
//! read, and goes on from there ([`feed`]).

pub mod feed;

use crate::ask;
use crate::backend::Backend;
use crate::cli::{Choice, Ir, OfFunction};
use crate::kernel_table::KernelTable;
use crate::program::{Setup, checked, out, out_json, prepare};
use crate::regions::as_run;
use crate::target::Target;
use feed::Level;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::InstId;
use tessera_core::walk::{called, each_expr_in};
use tessera_ir::graph::Graph;
use tessera_ir::tile::Kernel;
use tessera_llvm::Emission;
use tessera_lower as lower;
use tessera_resolve::source::{Loaded, SourceMap};

/// What stands for no pass.
pub const AS_IT_IS: &str = "none";

/// The module that a model stands for.
fn model(setup: &Setup, path: &Path) -> u8 {
    match tessera_onnx::module(&path.to_string_lossy()) {
        Ok(text) => {
            give(setup, "tsr", &[], &text, None);
            0
        }
        Err(why) => {
            let d = Diagnostic::new(why.code, Span::NONE, why.message);
            setup.show(&[why.notes.into_iter().fold(d, Diagnostic::note)], &SourceMap::default());
            1
        }
    }
}

/// Writes what something becomes, in one form; `notes` say what was chosen.
pub fn give(setup: &Setup, form: &str, notes: &[String], text: &str, table: Option<&[KernelTable]>) {
    if setup.global.json {
        out_json(&json!({"schema": 1, "form": form, "notes": notes, "text": text, "kernels": table}));
    } else {
        out(text);
    }
}

/// A wrong use of the command; returns its exit code.
fn misused(setup: &Setup, message: String, help: String) -> u8 {
    setup.show(&[Diagnostic::new(Code::E0602, Span::NONE, message).help(help)], &SourceMap::default());
    2
}

/// Runs the command; returns the exit code.
pub fn emit(setup: &Setup, path: &Path, ir: Ir, after: Option<&str>, of: &OfFunction) -> u8 {
    let after = match after.map(|a| a.strip_prefix("after:").unwrap_or(a)) {
        Some("list") => {
            let none = (AS_IT_IS, "The graph as it is traced, or read, without any pass");
            for (name, doc) in std::iter::once(none).chain(tessera_graph::PIPELINE.iter().map(|p| (p.name, p.doc))) {
                match setup.global.json {
                    true => out_json(&json!({"schema": 1, "pass": name, "text": doc})),
                    false => out(&format!("{name:<16} {doc}\n")),
                }
            }
            return 0;
        }
        Some(name) if name != AS_IT_IS && !tessera_graph::PIPELINE.iter().any(|p| p.name == name) => {
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
    match (Level::of(&loaded.text), &of.function) {
        (None | Some(Level::Core), Some(name)) => function(setup, &loaded, name, ir, after, of),
        (Some(level), Some(_)) => {
            let text = format!("`--function`: {} is {}, which has no functions", path.display(), level.what());
            misused(setup, text, "leave `--function` out".into())
        }
        (Some(Level::Core), None) if ir != Ir::Core => {
            let text = "Core that is given as text is not compiled as a whole";
            let d = Diagnostic::new(Code::E0012, Span::NONE, text);
            let d = d.note("a number of it could be read as an address where host code is compiled");
            let help = "`--function NAME` shows what a function becomes, `run --interpret` runs it, and `--ir core` \
                        reads and verifies it";
            setup.show(&[d.help(help)], &SourceMap::default());
            1
        }
        (Some(level), None) if level != Level::Core => {
            feed::emit(setup, path, &loaded.text, level, ir, after, &of.sizes.clone().unwrap_or_default())
        }
        (None, None) if of.misplaced().is_some() => misused(
            setup,
            "`--sizes` says nothing of a whole program".into(),
            "name a function: `--function NAME`".into(),
        ),
        _ if ir == Ir::Ast => ast(setup, &loaded),
        _ if ir == Ir::Core => core(setup, &loaded),
        _ => program(setup, &loaded, ir, after),
    }
}

/// Runs a program and shows what its tensor code becomes.
fn program(setup: &Setup, loaded: &Loaded, ir: Ir, after: Option<&str>) -> u8 {
    let Some(ready) = prepare(setup, loaded) else { return 1 };
    if ir == Ir::Host {
        give(setup, &ir.name(), &[], &format!("{:#?}\n", ready.lowered.host), None);
        return 0;
    }
    tessera_runtime::io::sandbox::start();
    let mut session = tessera_host::Session::new(Box::new(std::io::sink()), false, vec![], setup.stack_bytes);
    let reports = crate::regions::Reports::default();
    let pool = setup.pool();
    let mut backend = setup.backend(pool.clone());
    backend.follow(Path::new(&*loaded.path));
    let backend = Rc::new(backend);
    backend.watch();
    let program = match crate::program::start(setup, &mut session, &ready, backend.clone(), pool, reports.clone()) {
        Ok(p) => p,
        Err(d) => {
            setup.show(&[*d], &ready.sources);
            return 1;
        }
    };
    let stop = session.run(&program);
    let texts = (setup.global.target != Choice::Cpu).then(|| setup.texts());
    for (before, graph) in backend.watched() {
        let shown = match (after, &texts) {
            (Some(pass), _) => tessera_graph::run_until(&before, pass).unwrap_or(before),
            (None, Some(texts)) => texts.optimise(&before),
            (None, None) => graph,
        };
        match text_of(texts.as_ref().unwrap_or(&backend), &shown, ir) {
            Ok(text) => {
                let backend = texts.as_ref().unwrap_or(&backend);
                give(setup, &ir.name(), &[], &text, table(setup, backend, &shown, ir).as_deref());
            }
            Err(d) => {
                setup.show(&[*d], &ready.sources);
                return 1;
            }
        }
    }
    crate::program::finish(setup, stop, &ready, &reports)
}

/// What one function becomes, without running anything.
fn function(setup: &Setup, loaded: &Loaded, name: &str, ir: Ir, after: Option<&str>, of: &OfFunction) -> u8 {
    let Some(asked) = ask::find(setup, loaded, name) else { return 1 };
    let inst = asked.function.inst;
    match ir {
        Ir::Core => {
            give(setup, &ir.name(), &[], &before_graphs(&asked, ir).unwrap_or_default(), None);
            return 0;
        }
        Ir::Host if Level::of(&loaded.text).is_none() => {
            let lowered = lower::lower_roots(&asked.program, &[inst], lower::Options::default());
            setup.show(&lowered.diagnostics, &asked.sources);
            give(setup, &ir.name(), &[], &format!("{:#?}\n", lowered.host), None);
            return 0;
        }
        Ir::Host | Ir::Ast if Level::of(&loaded.text).is_some() => {
            let text = format!("{} does not become Host IR or syntax", Level::Core.what());
            return misused(setup, text, "it becomes graph, kernels, schedule, tile, llvm and asm".into());
        }
        Ir::Ast => {
            give(setup, &ir.name(), &[], &before_graphs(&asked, ir).unwrap_or_default(), None);
            return 0;
        }
        _ => {}
    }
    let shown = || -> Result<_, Vec<Diagnostic>> {
        let called = asked.call(setup, of)?;
        let backend = setup.texts();
        let graph = match after {
            Some(pass) => tessera_graph::run_until(&called.graph, pass).unwrap_or(called.graph),
            None => as_run(&backend, &called.graph, asked.function.head).map_err(|d| vec![*d])?,
        };
        let mark = |note: &String| format!("{} {note}\n", comment(backend.texts(), ir));
        // Notes stand in the text, or beside it.
        let marked: String = called.notes.iter().filter(|_| !setup.global.json).map(mark).collect();
        let text = marked + &text_of(&backend, &graph, ir).map_err(|d| vec![*d])?;
        Ok((called.notes, text, table(setup, &backend, &graph, ir)))
    };
    match shown() {
        Ok((notes, text, table)) => {
            give(setup, &ir.name(), &notes, &text, table.as_deref());
            0
        }
        Err(found) => asked.refused(setup, &found),
    }
}

/// What a function is before there are graphs: its syntax, Core with all that it calls, Host IR; `None` of later forms.
pub fn before_graphs(asked: &ask::Asked, ir: Ir) -> Option<String> {
    let inst = asked.function.inst;
    match ir {
        Ir::Core => {
            let reached = reached(&asked.program, inst);
            Some(tessera_core::text::print_some(&asked.program, &|id| reached.contains(&id), false))
        }
        Ir::Host => {
            let lowered = lower::lower_roots(&asked.program, &[inst], lower::Options::default());
            Some(format!("{:#?}\n", lowered.host))
        }
        Ir::Ast => {
            let place = asked.sources.locate(Span::new(asked.function.head.item, 0, 0));
            let file = place.as_ref().and_then(|(file, _)| asked.sources.file(*file));
            let text = file.zip(place.as_ref()).and_then(|(f, (_, at))| f.text.get(at.start..));
            let split = tessera_grammar::split(text.unwrap_or_default());
            let item = split.items.first().and_then(|i| text?.get(i.range.start as usize..i.range.end as usize));
            let parsed = tessera_grammar::parse_item(item.unwrap_or_default(), tessera_base::ItemId(0));
            Some(parsed.stmts.iter().map(|stmt| format!("{stmt:#?}\n")).collect())
        }
        _ => None,
    }
}

/// A function with all that it calls.
fn reached(program: &tessera_core::ir::Program, inst: InstId) -> BTreeSet<InstId> {
    let (mut out, mut todo) = (BTreeSet::new(), vec![inst]);
    while let Some(id) = todo.pop() {
        let f = &program.insts[id.0 as usize];
        if out.insert(id) {
            todo.extend(f.backward);
            each_expr_in(&f.body, &mut |e| todo.extend(called(e)));
        }
    }
    out
}

/// Core of a program, or of Core as text, which it reads and verifies.
fn core(setup: &Setup, loaded: &Loaded) -> u8 {
    let file = checked(setup, loaded);
    setup.show(&file.diagnostics, &file.sources);
    match file.program.filter(|_| !file.diagnostics.iter().any(Diagnostic::is_error)) {
        Some(program) => {
            give(setup, Ir::Core.name().as_str(), &[], &tessera_core::text::print(&program, false), None);
            0
        }
        None => 1,
    }
}

fn ast(setup: &Setup, loaded: &tessera_resolve::source::Loaded) -> u8 {
    let split = tessera_grammar::split(&loaded.text);
    let (mut errors, mut text) = (split.diagnostics.len(), String::new());
    for item in &split.items {
        let of = loaded.text.get(item.range.start as usize..item.range.end as usize).unwrap_or("");
        let parsed = tessera_grammar::parse_item(of, tessera_base::ItemId(0));
        errors += parsed.diagnostics.len();
        parsed.stmts.iter().for_each(|stmt| text.push_str(&format!("{stmt:#?}\n")));
    }
    give(setup, &Ir::Ast.name(), &[], &text, None);
    if errors > 0 {
        let checked = crate::program::check(loaded);
        setup.show(&checked.diagnostics, &checked.sources);
    }
    u8::from(errors > 0)
}

/// A graph as text, or what it becomes.
///
/// # Errors
/// What the code generator says of a kernel.
pub fn text_of(backend: &Backend, graph: &Graph, ir: Ir) -> Result<String, Box<Diagnostic>> {
    if matches!(ir, Ir::Graph | Ir::Host | Ir::Core | Ir::Ast) {
        return Ok(graph.to_string());
    }
    if ir == Ir::Kernels {
        return Ok(crate::kernel_table::of(backend, graph));
    }
    let mut text = String::new();
    for planned in backend.groups(graph) {
        let names: Vec<String> = planned.group.members.iter().map(|m| m.to_string()).collect();
        let (mark, names, kind) = (comment(backend.texts(), ir), names.join(", "), planned.group.kind);
        let Some(lowered) = &planned.lowered else {
            text.push_str(&format!("{mark} {names} runs without a kernel of its own ({kind:?})\n"));
            continue;
        };
        if ir == Ir::Schedule {
            // The kernels of a Fourier transform are written without one.
            let schedule = planned.schedule.as_ref().map(tessera_ir::schedule::text::print);
            text.push_str(&schedule.unwrap_or_else(|| format!("{mark} {names} has no schedule ({kind:?})\n")));
            continue;
        }
        for step in &lowered.steps {
            text.push_str(&kernel(backend.texts(), &step.kernel, ir)?);
        }
    }
    Ok(text)
}

/// The table of kernels as data, where that is what is asked for.
fn table(setup: &Setup, backend: &Backend, graph: &Graph, ir: Ir) -> Option<Vec<KernelTable>> {
    let is_wanted = setup.global.json && ir == Ir::Kernels;
    is_wanted.then(|| vec![crate::kernel_table::table(graph, &backend.groups(graph))])
}

/// A kernel as Tile IR, LLVM IR or assembly.
fn kernel(texts: &dyn Target, kernel: &Kernel, ir: Ir) -> Result<String, Box<Diagnostic>> {
    if ir == Ir::Tile {
        return Ok(tessera_ir::tile::text::print(kernel));
    }
    let what = if ir == Ir::Llvm { Emission::Ir } else { Emission::Assembly };
    texts.text(kernel, what).map_err(|e| Box::new(e.diagnostic(Span::NONE)))
}

/// What a line begins with that says something about a text of this form.
fn comment(texts: &dyn Target, ir: Ir) -> &'static str {
    match ir {
        Ir::Llvm => ";",
        Ir::Asm => match texts.limits().target {
            "cpu" => "#",
            "cuda" => "//",
            _ => ";",
        },
        _ => "//",
    }
}

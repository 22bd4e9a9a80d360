//! A text of an IR as the file of `tessera emit`: read, verified, and on from there to what it becomes.
//!
//! A text is known by its first operation. It may hold several graphs, schedules or kernels, as `emit` prints them; lines of
//! comments between them stay where they are.

use super::{comment, kernel, misused, text_of};
use crate::backend::Backend;
use crate::cli::{Ir, Sizes};
use crate::program::Setup;
use crate::render::line_column;
use crate::target::Target;
use std::path::Path;
use tessera_base::{Code, Diagnostic, Span};
use tessera_ir::graph::Graph;
use tessera_ir::graph_text;
use tessera_ir::products::{self, Products};
use tessera_ir::schedule::{self, Schedule};
use tessera_ir::text::{Op, TextError, parse};
use tessera_ir::tile::{self, Kernel};
use tessera_resolve::source::SourceMap;

/// What a text is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    Core,
    Graph,
    Schedule,
    Tile,
    Llvm,
}

impl Level {
    /// The IR of a text; `None` of a program.
    pub fn of(text: &str) -> Option<Level> {
        if tessera_core::text::is_core(text) {
            return Some(Level::Core);
        }
        let mut lines = text.lines().map(str::trim_start);
        let first = lines.find(|l| !l.is_empty() && !l.starts_with("//"))?;
        let name = match first.strip_prefix('%') {
            Some(rest) => rest.split_once('=')?.1.trim_start(),
            None => first,
        };
        if let Some(name) = name.strip_prefix("\"tessera.") {
            let word = name.split(['.', '"']).next();
            let levels = [("graph", Level::Graph), ("schedule", Level::Schedule), ("tile", Level::Tile)];
            return levels.into_iter().find(|(w, _)| Some(*w) == word).map(|(_, level)| level);
        }
        let llvm = ["; ModuleID = ", "source_filename = \"", "target triple = \"", "target datalayout = \""];
        let mut rest = text.lines().skip_while(|l| l.is_empty() || l.starts_with("; ") && !l.starts_with(llvm[0]));
        let first = rest.next()?;
        llvm.iter().any(|l| first.starts_with(l)).then_some(Level::Llvm)
    }

    /// What to call a text of it.
    pub fn what(self) -> &'static str {
        match self {
            Level::Core => "a text of Core",
            Level::Graph => "a text of Graph IR",
            Level::Schedule => "a text of Schedule IR",
            Level::Tile => "a text of Tile IR",
            Level::Llvm => "a text of LLVM IR",
        }
    }

    /// The forms that it has, and becomes.
    pub fn forms(self) -> &'static [Ir] {
        const ALL: [Ir; 6] = [Ir::Graph, Ir::Kernels, Ir::Schedule, Ir::Tile, Ir::Llvm, Ir::Asm];
        match self {
            Level::Core | Level::Graph => &ALL,
            Level::Schedule => &ALL[2..],
            Level::Tile => &ALL[3..],
            Level::Llvm => &ALL[4..],
        }
    }
}

/// A part of a text.
enum Piece<'t> {
    /// A line between two others.
    Comment(&'t str),
    Graph(Graph),
    Schedule(Schedule),
    Kernel(Kernel),
    Products(Products),
}

/// What is wrong with a text, each with its place.
type Wrong = Vec<TextError>;

/// Reads a text and shows what it becomes; returns the exit code.
pub fn emit(setup: &Setup, path: &Path, text: &str, level: Level, ir: Ir, after: Option<&str>, sizes: &Sizes) -> u8 {
    if !level.forms().contains(&ir) {
        let names: Vec<String> = level.forms().iter().map(|form| form.name()).collect();
        let message = format!("{} is {}, and does not become {}", path.display(), level.what(), ir.name());
        return misused(setup, message, format!("it becomes {}", names.join(", ")));
    }
    if after.is_some() && level != Level::Graph {
        let message = format!("{} is {}, and passes are of graphs", path.display(), level.what());
        return misused(setup, message, "leave `--emit` out".into());
    }
    let backend = setup.texts();
    match becomes(&backend, text, level, ir, after, sizes) {
        Ok(text) => {
            super::give(setup, &ir.name(), &[], &text, None);
            0
        }
        Err(wrong) => {
            setup.show(&wrong, &SourceMap::default());
            if wrong.iter().any(|d| d.code == Code::E0602) { 2 } else { 1 }
        }
    }
}

/// What a text of an IR is in another form, which it has or becomes.
///
/// # Errors
/// E0012 for a text that cannot be read, breaks a rule or has no kernel, with its line and column; E0602 for a size that it
/// does not leave open.
pub fn becomes(
    backend: &Backend,
    text: &str,
    level: Level,
    ir: Ir,
    after: Option<&str>,
    sizes: &Sizes,
) -> Result<String, Vec<Diagnostic>> {
    if level == Level::Llvm {
        return llvm(backend.texts(), text, ir).map_err(|d| vec![*d]);
    }
    let pieces = read(text, level, sizes).map_err(|wrong| {
        let told = wrong.into_iter().map(|e| {
            let (line, column) = line_column(text, e.at);
            Diagnostic::new(Code::E0012, Span::NONE, format!("line {line}, column {column}: {}", e.message))
        });
        told.collect::<Vec<_>>()
    })?;
    let takes = |name: &str| pieces.iter().any(|p| matches!(p, Piece::Products(p) if p.takes(name)));
    if let Some((name, _)) = sizes.0.iter().find(|(name, _)| !takes(name)) {
        let message = format!("`--sizes {name}=…`: the text leaves no size `{name}` open");
        let help = "`tessera.schedule.tile` leaves M, N and K open, as far as nothing before says them";
        return Err(vec![Diagnostic::new(Code::E0602, Span::NONE, message).help(help)]);
    }
    pieces.iter().map(|piece| piece.shown(backend, ir, after).map_err(|d| vec![*d])).collect()
}

/// The parts of a text, each verified.
fn read<'t>(text: &'t str, level: Level, sizes: &Sizes) -> Result<Vec<Piece<'t>>, Wrong> {
    let ops = parse(text).map_err(|e| vec![e])?;
    let is_product = |op: &&Op| match level {
        Level::Schedule => op.name == products::TILE,
        Level::Tile => op.name == products::FRAGMENTS,
        _ => false,
    };
    // Products are one graph, at the place of the first.
    let all: Vec<Op> = ops.iter().filter(is_product).cloned().collect();
    let mut pieces: Vec<(usize, Piece)> = vec![];
    if let Some(first) = all.first() {
        let given = sizes.0.iter().map(|(name, n)| (name.clone(), n.unsigned_abs())).collect();
        let read = products::read(&all, &given).map_err(|e| vec![e])?;
        verified(&read.graph, first)?;
        pieces.push((first.at, Piece::Products(read)));
    }
    for op in ops.iter().filter(|op| !is_product(op)) {
        let broken = |why: String| vec![op.error(why)];
        let piece = match level {
            Level::Graph => {
                let graph = graph_text::read(op).map_err(|e| vec![e])?;
                verified(&graph, op)?;
                Piece::Graph(graph)
            }
            Level::Schedule => {
                let s = schedule::text::read(op).map_err(|e| vec![e])?;
                schedule::verify::verify(&s).map_err(broken)?;
                Piece::Schedule(s)
            }
            Level::Tile => {
                let k = tile::text::read(op).map_err(|e| vec![e])?;
                tile::verify::verify(&k).map_err(broken)?;
                Piece::Kernel(k)
            }
            Level::Core | Level::Llvm => return Err(broken("is of another IR".into())),
        };
        pieces.push((op.at, piece));
    }
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("//") {
            pieces.push((at, Piece::Comment(line.trim_end())));
        }
        at += line.len();
    }
    pieces.sort_by_key(|p| p.0);
    Ok(pieces.into_iter().map(|p| p.1).collect())
}

fn verified(graph: &Graph, op: &Op) -> Result<(), Wrong> {
    let wrong = tessera_ir::verify::verify(graph);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into_iter().map(|w| op.error(w)).collect()) }
}

impl Piece<'_> {
    /// Prints it in another form.
    fn shown(&self, backend: &Backend, ir: Ir, after: Option<&str>) -> Result<String, Box<Diagnostic>> {
        match self {
            Piece::Comment(line) => Ok(format!("{}{}\n", comment(backend.texts(), ir), line.trim_start_matches('/'))),
            Piece::Graph(graph) => {
                let graph = match after {
                    Some(pass) => tessera_graph::run_until(graph, pass).unwrap_or_else(|| graph.clone()),
                    None => backend.optimise(graph),
                };
                text_of(backend, &graph, ir)
            }
            Piece::Schedule(s) if ir == Ir::Schedule => Ok(schedule::text::print(s)),
            Piece::Schedule(s) => {
                let refused = |why: String| {
                    let text = format!("the schedule of `{}` has no kernel: {why}", s.name);
                    Box::new(Diagnostic::new(Code::E0012, Span::NONE, text))
                };
                let lowered = tessera_tile::lower(s).map_err(|e| refused(e.to_string()))?;
                let steps = lowered.steps.iter().map(|step| {
                    tile::verify::verify(&step.kernel).map_err(refused)?;
                    kernel(backend.texts(), &step.kernel, ir)
                });
                steps.collect()
            }
            Piece::Kernel(k) => kernel(backend.texts(), k, ir),
            Piece::Products(read) => {
                let mark = comment(backend.texts(), ir);
                let inputs: Vec<String> = read.inputs.iter().map(|(name, ty)| format!("%{name}: {ty}")).collect();
                let mut text = format!("{mark} of {}\n", inputs.join(", "));
                let chosen: Vec<String> = read.chosen.iter().map(|(name, n)| format!("{name}={n}")).collect();
                if !chosen.is_empty() {
                    text.push_str(&format!("{mark} {}: chosen; --sizes says others\n", chosen.join(" ")));
                }
                Ok(text + &text_of(backend, &backend.optimise(&read.graph), ir)?)
            }
        }
    }
}

/// Modules of LLVM, as they are or as assembly.
fn llvm(texts: &dyn Target, text: &str, ir: Ir) -> Result<String, Box<Diagnostic>> {
    let mut out = String::new();
    let mut modules: Vec<String> = vec![];
    for line in text.split_inclusive('\n') {
        match modules.last_mut() {
            Some(module) if !line.starts_with("; ModuleID") => module.push_str(line),
            _ => modules.push(line.to_owned()),
        }
    }
    for module in modules {
        // What stands before the first one.
        if module.lines().all(|l| l.trim().is_empty() || l.starts_with(';')) {
            module
                .lines()
                .for_each(|l| out.push_str(&format!("{}{}\n", comment(texts, ir), l.trim_start_matches(';'))));
            continue;
        }
        let made = texts.again(&module, ir == Ir::Asm);
        out.push_str(&made.map_err(|e| Box::new(e.diagnostic(Span::NONE)))?);
    }
    Ok(out)
}

//! `tessera explain FILE --function NAME` and `FILE:LINE:COLUMN`: what is known of a function without running anything.

use crate::ask::{self, Asked};
use crate::backend::{Backend, kernel_name};
use crate::cli::OfFunction;
use crate::explain::graphs::Graphs;
use crate::explain::line::Line;
use crate::graph_facts;
use crate::program::{Setup, out, out_json};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, ItemId, Span};
use tessera_core::ir::{Effect, FnInst, InstId, Program};
use tessera_core::ty::Ty;
use tessera_graph::fuse::unfused;
use tessera_infer::asked;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::Partition;
use tessera_ir::prim::row;
use tessera_resolve::source::{Loaded, SourceMap};
use tessera_runtime::fault::human_bytes;

/// `FILE:LINE` or `FILE:LINE:COLUMN`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub file: PathBuf,
    pub line: usize,
    pub column: Option<usize>,
}

impl Place {
    /// A place in a file, if the text is one.
    pub fn parse(text: &str) -> Option<Place> {
        let (rest, last) = text.rsplit_once(':')?;
        let last: usize = last.parse().ok()?;
        let whole = rest.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        let (file, line, column) = whole.map_or((rest, last, None), |(file, line)| (file, line, Some(last)));
        (!file.is_empty()).then(|| Place { file: file.into(), line, column })
    }
}

fn read(setup: &Setup, path: &Path) -> Option<Loaded> {
    match crate::files::read_source(path) {
        Ok(loaded) => Some(loaded),
        Err(d) => {
            setup.show(&[d], &SourceMap::default());
            None
        }
    }
}

/// Explains a function of a file; returns the exit code.
pub fn function(setup: &Setup, path: &Path, name: &str, of: &OfFunction) -> u8 {
    let Some(loaded) = read(setup, path) else { return 1 };
    explain(setup, &loaded, name, (of, None))
}

/// What a function is looked at with, and the line of it that is meant.
type Meant<'a> = (&'a OfFunction, Option<&'a Line>);

fn explain(setup: &Setup, loaded: &Loaded, name: &str, meant: Meant) -> u8 {
    if tessera_core::text::is_core(&loaded.text) {
        return ask::find(setup, loaded, name).map_or(1, |asked| whole(setup, &asked, meant));
    }
    let Some((program, sources, function)) = ask::look(setup, loaded, name) else { return 1 };
    match function {
        Ok(function) => whole(setup, &Asked { program, sources, function }, meant),
        Err(why) if why.code == Code::E0213 => {
            // A template: what its calls make of it.
            let calls = instances(&program, why.span.item, name.rsplit('.').next().unwrap_or(name));
            if calls.is_empty() {
                setup.show(&[*why], &sources);
                return 1;
            }
            let as_graph = calls.iter().find(|(_, f)| f.effect == Effect::Graph && meant.1.is_some());
            if setup.global.json && as_graph.is_none() {
                calls.iter().for_each(|(_, f)| out_json(&head(f, signature(f), &sources)));
                return 0;
            }
            // A line is looked at as the first call has it that has a graph.
            if let Some((inst, _)) = as_graph {
                if !setup.global.json {
                    out(&format!("{}; its first call is\n", why.message));
                }
                let asked = Asked::instance(program.clone(), sources, *inst, why.span);
                return whole(setup, &asked, meant);
            }
            out(&format!("{}\n", why.message));
            out("the program calls it as\n");
            for (_, f) in calls {
                out(&format!("  {}\n", signature(f)));
                out(&effect(&f.effect, &sources, "    "));
                out(&compares(f, &sources, "    "));
            }
            0
        }
        Err(why) => {
            setup.show(&[*why], &sources);
            1
        }
    }
}

/// The instances of the function that an item defines, each signature once.
pub fn instances<'p>(program: &'p Program, item: ItemId, name: &str) -> Vec<(InstId, &'p FnInst)> {
    let (mut seen, mut out) = (BTreeSet::new(), vec![]);
    let of_item = |f: &&FnInst| !f.span.is_none() && f.span.item == item && *f.name == *name;
    for (i, f) in program.insts.iter().enumerate().filter(|(_, f)| of_item(f)) {
        if seen.insert(signature(f)) {
            out.push((InstId(i as u32), f));
        }
    }
    out
}

/// `f(x: Tensor[N, f32]) -> Tensor[N, f32]`, with the types of an instance.
pub fn signature(f: &FnInst) -> String {
    let param = |l: &tessera_core::ir::LocalId| {
        let v = &f.locals[l.0 as usize];
        format!("{}: {}", v.name, v.ty)
    };
    format!("{}({}) -> {}", f.name, f.params.iter().map(param).collect::<Vec<_>>().join(", "), f.ret)
}

fn at(span: Span, sources: &SourceMap) -> String {
    let place = sources.line_col(span).and_then(|(file, line, column)| Some((&sources.file(file)?.path, line, column)));
    place.map_or_else(String::new, |(path, line, column)| format!("{path}:{line}:{column}"))
}

fn effect(effect: &Effect, sources: &SourceMap, pad: &str) -> String {
    match effect {
        Effect::Graph => format!("{pad}graph function: it computes tensors and nothing else\n"),
        Effect::Host { why, span, .. } => format!("{pad}host function: it {why} ({})\n", at(*span, sources)),
    }
}

/// What is compared when a program runs, with its places.
pub fn compared(kept: &[(Span, Arc<str>)], sources: &SourceMap) -> Vec<Value> {
    kept.iter().map(|(span, what)| json!({"what": **what, "place": graph_facts::Place::of(*span, sources)})).collect()
}

/// What is known of an instance before there is a graph.
fn head(f: &FnInst, signature: String, sources: &SourceMap) -> Value {
    let (kind, why, place) = match &f.effect {
        Effect::Graph => ("graph", None, None),
        Effect::Host { why, span, .. } => ("host", Some(why.to_string()), graph_facts::Place::of(*span, sources)),
    };
    json!({
        "schema": 1,
        "function": &*f.name,
        "signature": signature,
        "place": graph_facts::Place::of(f.span, sources),
        "effect": {"kind": kind, "why": why, "place": place},
        "compared": compared(&f.kept, sources),
    })
}

fn compares(f: &FnInst, sources: &SourceMap, pad: &str) -> String {
    if f.kept.is_empty() {
        return format!("{pad}compares nothing when it runs: its types say all\n");
    }
    let mut text = format!("{pad}compares when it runs:\n");
    for (span, what) in &f.kept {
        let _ = writeln!(text, "{pad}  {what} ({})", at(*span, sources));
    }
    text
}

/// Structs that types mention, with their fields.
fn structs(ty: &Ty, out: &mut Vec<String>) {
    match ty {
        Ty::Struct(s) => {
            let fields: Vec<String> = s.fields.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
            let line = format!("{}: {}", s.name, fields.join(", "));
            if !out.contains(&line) {
                out.push(line);
                s.fields.iter().for_each(|(_, ty)| structs(ty, out));
            }
        }
        Ty::List(t) | Ty::Dict(_, t) => structs(t, out),
        Ty::Tuple(ts) => ts.iter().for_each(|t| structs(t, out)),
        _ => {}
    }
}

/// All that is known of a function.
fn whole(setup: &Setup, asked: &Asked, (of, line): Meant) -> u8 {
    let f = asked.inst();
    if setup.global.json {
        return whole_json(setup, asked, (of, line));
    }
    out(&format!("{}\n", asked.signature()));
    let mut of_structs = vec![];
    asked.params().for_each(|(_, ty)| structs(ty, &mut of_structs));
    structs(&f.ret, &mut of_structs);
    of_structs.iter().for_each(|line| out(&format!("  {line}\n")));
    out(&effect(&f.effect, &asked.sources, ""));
    out(&compares(f, &asked.sources, ""));
    out(&called_as(asked));
    if matches!(f.effect, Effect::Host { .. }) {
        if let Some(line) = line {
            let why = "host code: statements run one after the other, and neighbours that only compute tensors become a \
                       graph when they run (`tessera emit --ir kernels`, `tessera profile`)";
            out(&format!("{}  {why}\n", line.head()));
        }
        return 0;
    }
    match Graphs::of(setup, asked, of) {
        Ok(graphs) => {
            if let Some(line) = line {
                let known = graphs.facts(&asked.sources);
                out(&line.text(&known.graph, &known.of_line(line)));
            }
            out("\n");
            graphs.notes.iter().skip(1).for_each(|note| out(&format!("{note}\n")));
            out(&kernels(&graphs.backend, &graphs.run, &asked.sources));
            0
        }
        Err(found) => asked.refused(setup, &found),
    }
}

/// The same as data: what the page of `tessera view` has of a function.
fn whole_json(setup: &Setup, asked: &Asked, (of, line): Meant) -> u8 {
    let f = asked.inst();
    let mut shown = head(f, asked.signature(), &asked.sources);
    let mut code = 0;
    if f.effect == Effect::Graph {
        match Graphs::of(setup, asked, of) {
            Ok(graphs) => {
                let known = graphs.facts(&asked.sources);
                shown["notes"] = json!(known.notes);
                shown["line"] = json!(line.map(|line| known.of_line(line)));
                shown["graph"] = json!(known.graph);
                shown["products"] = json!(known.products);
                shown["splits"] = json!(known.splits);
                shown["again"] = json!(known.again);
            }
            Err(found) => code = asked.refused(setup, &found),
        }
    }
    out_json(&shown);
    code
}

/// Calls that are listed at most.
const CALLS_MAX: usize = 8;

/// What the program's calls make of a function, where that says more than its signature.
fn called_as(asked: &Asked) -> String {
    let own = signature(asked.inst());
    let all = instances(&asked.program, asked.function.head.item, &asked.inst().name);
    let calls: Vec<String> = all.iter().map(|(_, f)| signature(f)).filter(|s| *s != own).collect();
    let mut text = if calls.is_empty() { String::new() } else { "the program calls it as\n".to_owned() };
    calls.iter().take(CALLS_MAX).for_each(|call| text.push_str(&format!("  {call}\n")));
    if calls.len() > CALLS_MAX {
        text.push_str(&format!("  and in {} other ways\n", calls.len() - CALLS_MAX));
    }
    text
}

/// The kernels of a graph: the table, what each computes, what keeps them apart, and the memory.
fn kernels(backend: &Backend, graph: &Graph, sources: &SourceMap) -> String {
    let mut text = crate::kernel_table::of(backend, graph);
    let planned = backend.groups(graph);
    let partition = Partition { groups: planned.iter().map(|p| p.group.clone()).collect() };
    let name = |i: usize| format!("{} {}", i + 1, kernel_name(graph, &partition.groups[i]));
    text.push_str("\nwhat each kernel computes\n");
    for (i, group) in partition.groups.iter().enumerate() {
        let mut parts: Vec<String> = vec![];
        for &m in &group.members {
            let part = operation(graph, m, sources);
            if parts.last() != Some(&part) {
                parts.push(part);
            }
        }
        let _ = writeln!(text, "  {}: {}", name(i), parts.join(", "));
    }
    let apart = unfused(graph, &partition);
    if !apart.is_empty() {
        text.push_str("what keeps them apart\n");
    }
    for a in apart {
        let _ = writeln!(text, "  {} and {}: {}", name(a.from), name(a.to), a.why);
    }
    if let Ok(needs) = backend.footprint(graph) {
        let bytes = [needs.arguments, needs.outputs, needs.arena].map(human_bytes);
        let [arguments, outputs, between] = bytes;
        let _ = writeln!(text, "memory: arguments {arguments}, results {outputs}, in between {between}");
    }
    text
}

/// `exp (3:12)`.
fn operation(graph: &Graph, id: NodeId, sources: &SourceMap) -> String {
    let node = graph.node(id);
    let name = row(&node.prim).word().into_owned();
    match sources.line_col(node.origin.span) {
        Some((_, line, column)) => format!("{name} ({line}:{column})"),
        None => name,
    }
}

/// Explains the function at a place of a file, and the type of the expression there; returns the exit code.
pub fn place(setup: &Setup, place: &Place, of: &OfFunction) -> u8 {
    let Some(loaded) = read(setup, &place.file) else { return 1 };
    let lines = loaded.text.lines().count();
    if place.line == 0 || place.line > lines {
        let text = format!("{} has {lines} lines, and no line {}", place.file.display(), place.line);
        setup.show(&[Diagnostic::new(Code::E0602, Span::NONE, text)], &SourceMap::default());
        return 2;
    }
    let (db, id) = ask::open(setup, &loaded);
    let sources = db.source_map();
    let byte = byte_of(&loaded.text, place.line, place.column.unwrap_or(1));
    let found = sources.item_at(id, byte);
    let types = found.filter(|_| place.column.is_some()).and_then(|(item, at)| asked::types_at(&db, id, item, at));
    for ty in types.iter().flat_map(|(_, types)| types) {
        let text = types.as_ref().map_or_else(String::new, |(span, _)| written(*span, &sources));
        match setup.global.json {
            true => out_json(&json!({"schema": 1, "expression": text, "type": ty.to_string()})),
            false => out(&format!("`{text}`: {ty}\n")),
        }
    }
    let checked = tessera_infer::session::check_program(&db, id);
    if checked.program.is_none() {
        setup.show(&checked.diagnostics, &checked.sources);
        return 1;
    }
    let said = |text: &str| {
        if !setup.global.json {
            out(text)
        }
    };
    let Some((item, _)) = found else {
        said("nothing of the program stands there\n");
        return 0;
    };
    match asked::functions(&db, id).into_iter().find(|(_, head)| head.item == item) {
        Some((name, _)) => {
            if types.is_some() {
                said("\n");
            }
            let text = loaded.text.lines().nth(place.line - 1).unwrap_or_default().trim().to_owned();
            let line = Line { file: loaded.path.to_string(), number: place.line, text };
            explain(setup, &loaded, &name, (of, Some(&line)))
        }
        None => {
            if types.is_none() {
                said(
                    "no function is there, and no expression; `FILE:LINE:COLUMN` shows the type of one\n\
                     statements of the file itself are host code: they run one after the other, and neighbours that only \
                     compute tensors become a graph when they run\n",
                );
            }
            0
        }
    }
}

/// The byte of a line and column, both from 1; columns count characters.
fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = text[start..].lines().next().unwrap_or_default();
    start + rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(i, _)| i)
}

/// What stands at a place, in one line.
fn written(span: Span, sources: &SourceMap) -> String {
    let text = sources.locate(span).and_then(|(file, range)| sources.file(file)?.text.get(range));
    text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_from_names() {
        let place = |line, column| Some(Place { file: "a.tsr".into(), line, column });
        assert_eq!(Place::parse("a.tsr:3"), place(3, None));
        assert_eq!(Place::parse("a.tsr:3:14"), place(3, Some(14)));
        assert_eq!([":3", "a.tsr", "softmax", "a:b"].map(Place::parse), [None, None, None, None]);
        assert_eq!([byte_of("ab\ncä d\n", 1, 2), byte_of("ab\ncä d\n", 2, 3), byte_of("ab\n", 1, 9)], [1, 6, 2]);
    }
}

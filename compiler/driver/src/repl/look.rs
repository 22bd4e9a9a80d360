//! `?name` and `??name`: what something is, and how it is written.

use super::input::is_path;
use super::state::{Outcome, State};
use crate::files::Disk;
use tessera_base::{Code, FileId, Span};
use tessera_ide::analysis::Analysis;
use tessera_ide::hover::hover;
use tessera_ide::library;
use tessera_ide::symbol::Symbol;
use tessera_ops::surface;

/// Shows what there is to say of a path, or how it is written.
pub fn look(state: &mut State, path: &str, source: bool) -> Outcome {
    match found(state, path, source) {
        Some(text) => {
            state.say(&format!("{}\n", text.trim_end()));
            Outcome::Done
        }
        None => state.wrong(&format!("there is nothing that is named `{path}`{}", hint(state, path))),
    }
}

/// What there is to say of a path, or how it is written.
pub fn found(state: &mut State, path: &str, source: bool) -> Option<String> {
    let path = path.strip_suffix("()").unwrap_or(path);
    if let Some(code) = Code::parse(path) {
        return Some(code.page().to_owned());
    }
    let text = is_path(path).then(|| texts(path).into_iter().find_map(|text| about(state, &text, source))).flatten()?;
    let variable = if source { None } else { state.type_of_variable(path) };
    Some(variable.map_or(text, |shown| format!("{path}: {shown}")))
}

/// What a path may stand for: a name of the session, one of a module that was not imported, an operator without its module.
fn texts(path: &str) -> Vec<String> {
    let mut out = vec![path.to_owned()];
    let first = path.split('.').next().unwrap_or("");
    if library::modules().any(|m| m == first) {
        out.push(format!("import std.{first} as {first}\n{path}"));
    }
    if surface::find(path).is_some() {
        out.push(format!("op.{path}"));
    }
    for (ty, value) in [("Tensor.", "op.zeros((1,))"), ("str.", "\"\""), ("list.", "[1]"), ("dict.", "{1: 1}")] {
        out.extend(path.strip_prefix(ty).map(|name| format!("{value}.{name}")));
    }
    out
}

/// What is known of the name at the end of a text.
fn about(state: &mut State, text: &str, source: bool) -> Option<String> {
    // The text becomes one that the next input could be; what is wrong with it is of no interest.
    let _ = state.checker.type_of(text, &Disk);
    let db = state.checker.database();
    let sources = db.source_map();
    // The newest of those that were asked about.
    let file = FileId(sources.files.iter().rposition(|f| &*f.path == "<type>")? as u32);
    let cx = Analysis::new(db, file);
    let byte = text.len().checked_sub(1)?;
    let (_, symbol) = cx.symbol_at(file, byte)?;
    if let (Symbol::Def(id) | Symbol::Struct(id), true) = (&symbol, source) {
        let item = cx.item(*id)?;
        let place = cx.place(Span::new(*id, 0, 1));
        let place = place.map_or_else(String::new, |p| {
            let line = cx.text(p.file).get(..p.start).map_or(1, |t| t.matches('\n').count() + 1);
            format!("# {}:{line}\n", cx.path(p.file))
        });
        return Some(format!("{place}{}", item.text(db).trim_end()));
    }
    let found = hover(&cx, file, byte)?;
    // At a prompt a function is called by the next input.
    let shown = |l: &&str| !l.starts_with("```") && !l.starts_with("Nothing calls it: ");
    let lines: Vec<&str> = found.markdown.lines().filter(shown).collect();
    let mut out = lines.join("\n");
    while out.contains("\n\n\n") {
        out = out.replace("\n\n\n", "\n\n");
    }
    Some(out)
}

fn hint(state: &State, path: &str) -> String {
    let own =
        state.checker.names().into_iter().map(|(n, _)| n).chain(state.checker.variables().into_iter().map(|v| v.name));
    let names: Vec<String> = own.map(|n| n.to_string()).chain(surface::all().map(|d| d.name.to_owned())).collect();
    let near = tessera_base::nearest(path.strip_prefix("op.").unwrap_or(path), names.iter().map(String::as_str));
    near.map_or_else(String::new, |n| format!("; did you mean `{n}`?"))
}

//! Files that import others: where they name them, and how they name them once files have moved.

use crate::analysis::{Analysis, Place};
use crate::path::every_stmt;
use crate::symbol::Symbol;
use std::path::{Component, Path, PathBuf};
use tessera_base::{FileId, Span};
use tessera_core::builtins::MODULES;
use tessera_grammar::ast::{Name, StmtKind};
use tessera_grammar::token::{Tok, lex};
use tessera_infer::check::modules::beside;
use tessera_infer::db::{Entity, Target};
use tessera_resolve::syntax::dotted_path;

/// An import of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// The path as it is written.
    pub place: Place,
    /// Its names with dots between them.
    pub module: String,
    pub file: FileId,
    /// `import a.b`, and neither `from a.b import …` nor `import a.b as c`.
    pub binds_path: bool,
}

/// The imports of a file that name files, in the order of the text.
pub fn imported(cx: &Analysis, file: FileId) -> Vec<Imported> {
    let Some(targets) = cx.file(file).map(|f| f.imports(cx.db).clone()) else { return vec![] };
    let mut out = vec![];
    for item in cx.heads(file).iter().filter_map(|head| cx.item(head.id)) {
        let mut one = |path: &[Name], binds_path: bool| {
            let module = dotted_path(path);
            let (Some(Target::File(of)), Some(first), Some(last)) = (targets.get(&module), path.first(), path.last())
            else {
                return;
            };
            if let Some(place) = cx.place(Span { end: last.span.end, ..first.span }) {
                out.push(Imported { place, module: module.to_string(), file: *of, binds_path });
            }
        };
        every_stmt(&item.syntax(cx.db).stmts, &mut |stmt| match &stmt.kind {
            StmtKind::Import { path, alias } => one(path, alias.is_none()),
            StmtKind::FromImport { path, .. } => one(path, false),
            _ => {}
        });
    }
    out
}

/// What is to be written where, so that a file imports what it did when files have moved: `moved` says where the file of a path
/// is then. What cannot be imported from there is left alone.
pub fn after_moving(cx: &Analysis, file: FileId, moved: &dyn Fn(&Path) -> PathBuf) -> Vec<(Place, String)> {
    let text = cx.text(file);
    let home = moved(Path::new(&*cx.path(file)));
    let there = |of: FileId| {
        let own = cx.sources.file(of).is_some_and(|f| !f.library);
        own.then(|| module_of(home.parent()?, &moved(Path::new(&*cx.path(of)))))?
    };
    let from_folders = of_folders(cx, file);
    let mut out: Vec<(Place, String)> = from_folders.iter().flat_map(|f| f.rewritten(cx, file, &there)).collect();
    for import in imported(cx, file) {
        // Where a statement names files of a folder, all of it has been written.
        if from_folders.iter().any(|f| f.path.start == import.place.start) {
            continue;
        }
        let Some(module) = there(import.file).filter(|module| *module != import.module) else { continue };
        if import.binds_path {
            let (old, new) = (first_name(&import.module), first_name(&module));
            // The file has the new name for something already, other than a folder: what is imported keeps the one that it had.
            let folder = matches!(cx.entity(file, new), Some(Entity::Module(_)));
            let stands = || lex(&text).iter().any(|t| t.kind == Tok::Name && t.text(&text) == new);
            let taken = old != new && !folder && stands();
            if taken && !import.module.contains('.') {
                out.push((import.place, format!("{module} as {old}")));
                continue;
            }
            // What a statement takes from a folder is decided there.
            let decided =
                |p: &Place| from_folders.iter().any(|f| f.statement.start <= p.start && p.end <= f.statement.end);
            let written = written_out(cx, &import, file).into_iter().filter(|p| !decided(p));
            out.extend(written.map(|place| (place, module.clone())));
        }
        out.push((import.place, module));
    }
    out.sort();
    out.dedup();
    out
}

/// `from a.b import c, d` where some of the names are files of the folder `a/b`.
struct FromFolder {
    path: Place,
    module: String,
    /// The whole statement.
    statement: Place,
    /// The file of the path, if there is one of its name: names that are no files of the folder are members of it.
    file: Option<FileId>,
    names: Vec<FromName>,
}

struct FromName {
    place: Place,
    name: String,
    alias: Option<String>,
    /// The file that it is.
    file: Option<FileId>,
}

impl FromName {
    /// As it is written behind `import`: what it binds stays.
    fn written(&self, name: &str) -> String {
        let binds = self.alias.as_deref().unwrap_or(&self.name);
        if binds == name { name.to_owned() } else { format!("{name} as {binds}") }
    }
}

impl FromFolder {
    fn rewritten(&self, cx: &Analysis, file: FileId, there: &dyn Fn(FileId) -> Option<String>) -> Vec<(Place, String)> {
        let of_path = self.file.and_then(there).unwrap_or_else(|| self.module.clone());
        // From where each name comes then, and what it is called there.
        let new = |n: &FromName| match n.file {
            None => (of_path.clone(), n.name.clone()),
            Some(of) => match there(of) {
                None => (self.module.clone(), n.name.clone()),
                Some(path) => match path.rsplit_once('.') {
                    Some((folder, last)) => (folder.to_owned(), last.to_owned()),
                    None => (String::new(), path),
                },
            },
        };
        let new: Vec<(String, String)> = self.names.iter().map(new).collect();
        let stays = |((from, name), n): (&(String, String), &FromName)| *from == self.module && *name == n.name;
        if new.iter().zip(&self.names).all(stays) {
            return vec![];
        }
        let Some((first, _)) = new.first() else { return vec![] };
        if !first.is_empty() && new.iter().all(|(from, _)| from == first) {
            let renamed = new.iter().zip(&self.names).filter(|((_, name), n)| *name != n.name);
            let renamed = renamed.map(|((_, name), n)| (n.place.clone(), n.written(name)));
            return std::iter::once((self.path.clone(), first.clone())).chain(renamed).collect();
        }
        // One statement for each place that names come from, in the order of the names.
        let mut from: Vec<(&str, Vec<String>)> = vec![];
        for ((module, name), n) in new.iter().zip(&self.names) {
            let written = n.written(name);
            match from.iter_mut().find(|(m, _)| *m == module && !m.is_empty()) {
                Some((_, names)) => names.push(written),
                None => from.push((module, vec![written])),
            }
        }
        let statement = |(module, names): (&str, Vec<String>)| match module {
            "" => format!("import {}", names.join(", ")),
            _ => format!("from {module} import {}", names.join(", ")),
        };
        let all: Vec<String> = from.into_iter().map(statement).collect();
        let text = cx.text(file);
        let line = text[..self.statement.start].rfind('\n').map_or(0, |i| i + 1);
        let alone = text[line..self.statement.start].trim().is_empty()
            && !text[self.statement.end..].trim_start_matches([' ', '\t']).starts_with(';');
        vec![(self.statement.clone(), all.join(if alone { "\n" } else { "; " }))]
    }
}

/// The imports of a file that name files of folders.
fn of_folders(cx: &Analysis, file: FileId) -> Vec<FromFolder> {
    let Some(targets) = cx.file(file).map(|f| f.imports(cx.db).clone()) else { return vec![] };
    let target = |path: &str| match targets.get(path) {
        Some(Target::File(id)) => Some(*id),
        _ => None,
    };
    let mut out = vec![];
    for item in cx.heads(file).iter().filter_map(|head| cx.item(head.id)) {
        for stmt in &item.syntax(cx.db).stmts {
            let StmtKind::FromImport { path, names } = &stmt.kind else { continue };
            let module = dotted_path(path);
            let of_path = target(&module);
            let one = |(name, alias): &(Name, Option<Name>)| {
                let own = of_path.and_then(|of| cx.scope(of)).map(|s| s.get(&name.text)).is_some_and(|s| s.is_known());
                let found = if own { None } else { target(&format!("{module}.{}", name.text)) };
                let end = alias.as_ref().map_or(name.span, |alias| alias.span);
                let place = cx.place(Span { end: end.end, ..name.span })?;
                let alias = alias.as_ref().map(|a| a.text.to_string());
                Some(FromName { place, name: name.text.to_string(), alias, file: found })
            };
            let names: Vec<FromName> = names.iter().filter_map(one).collect();
            let (Some(first), Some(last)) = (path.first(), path.last()) else { continue };
            let places = (cx.place(Span { end: last.span.end, ..first.span }), cx.place(stmt.span));
            let (Some(path), Some(statement)) = places else { continue };
            if names.iter().any(|n| n.file.is_some()) {
                out.push(FromFolder { path, module: module.to_string(), statement, file: of_path, names });
            }
        }
    }
    out
}

fn first_name(module: &str) -> &str {
    module.split('.').next().unwrap_or(module)
}

/// How files in a folder import a file, if they can.
fn module_of(folder: &Path, file: &Path) -> Option<String> {
    let inside = file.strip_prefix(folder).ok().filter(|f| f.extension().is_some_and(|e| e == "tsr"))?;
    let inside = inside.with_extension("");
    let names = inside.components().map(|c| match c {
        Component::Normal(name) => name.to_str().filter(|name| is_name(name)),
        _ => None,
    });
    let names = names.collect::<Option<Vec<&str>>>()?;
    // What is built in hides a file of its name.
    let hidden = names.first().is_some_and(|first| MODULES.contains(first));
    (!hidden).then(|| names.join("."))
}

fn is_name(text: &str) -> bool {
    matches!(&lex(text)[..], [one] if one.kind == Tok::Name && one.range() == (0..text.len()))
}

/// Where a file writes the path out that an import binds.
fn written_out(cx: &Analysis, import: &Imported, file: FileId) -> Vec<Place> {
    let symbol = Symbol::File(import.file);
    if !import.module.contains('.') {
        let text = cx.text(file);
        let importer = cx.file(file);
        // `w.v` of a file `w/v.tsr` is not of the file `w.tsr`.
        let beside = |end: usize| {
            let tokens = lex(text[end..].split('\n').next().unwrap_or(""));
            let [dot, name, ..] = &tokens[..] else { return false };
            let name = name.text(&text[end..]);
            let own = cx.scope(import.file).is_some_and(|s| s.get(name).is_known());
            dot.kind == Tok::Dot && !own && importer.is_some_and(|f| beside(cx.db, f, import.file, name).is_some())
        };
        let all = cx.occurrences(&symbol, &[file]).into_iter().map(|o| o.place);
        return all.filter(|p| text.get(p.range()) == Some(&*import.module) && !beside(p.end)).collect();
    }
    // Of a longer path the first name is bound, and stands for a folder.
    let text = cx.text(file);
    let tokens = lex(&text);
    let first = first_name(&import.module);
    let begins = |i: usize| tokens[i].text(&text) == first && (i == 0 || tokens[i - 1].kind != Tok::Dot);
    let place = |i: usize| {
        let start = tokens[i].start as usize;
        let rest = text[start..].strip_prefix(&*import.module)?;
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let (item, at) = cx.item_at(file, start)?;
        let seen = cx.name_seen(item, at, first);
        let folder = match &seen {
            Some(Symbol::Module(m)) => **m == *first,
            Some(Symbol::File(id)) => cx.name(&Symbol::File(*id)) == first.into(),
            _ => false,
        };
        (ends && folder).then(|| Place { file, start, end: start + import.module.len() })
    };
    (0..tokens.len()).filter(|i| tokens[*i].kind == Tok::Name && begins(*i)).filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_imported_by_its_way_from_the_folder() {
        let of = |file: &str| module_of(Path::new("/p"), Path::new(file));
        assert_eq!(of("/p/a.tsr").as_deref(), Some("a"));
        assert_eq!(of("/p/a/b.tsr").as_deref(), Some("a.b"));
        for other in ["/q/a.tsr", "/p/a.txt", "/p/2a.tsr", "/p/for.tsr", "/p/a b/c.tsr"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}

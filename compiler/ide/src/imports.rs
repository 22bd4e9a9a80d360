//! Files that import others: where they name them, and how they name them once files have moved.

use crate::analysis::{Analysis, Place};
use crate::path::every_stmt;
use crate::symbol::Symbol;
use std::path::{Component, Path, PathBuf};
use tessera_base::{FileId, Span};
use tessera_core::builtins::MODULES;
use tessera_grammar::ast::{Name, StmtKind};
use tessera_grammar::token::{Tok, lex};
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
    let mut out: Vec<(Place, String)> = vec![];
    for import in imported(cx, file) {
        if cx.sources.file(import.file).is_none_or(|f| f.library) {
            continue;
        }
        let there = moved(Path::new(&*cx.path(import.file)));
        let Some(module) = home.parent().and_then(|folder| module_of(folder, &there)) else { continue };
        if module == import.module {
            continue;
        }
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
            out.extend(written_out(cx, &import, file).into_iter().map(|place| (place, module.clone())));
        }
        out.push((import.place, module));
    }
    out.sort();
    out.dedup();
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
        let all = cx.occurrences(&symbol, &[file]).into_iter().map(|o| o.place);
        return all.filter(|p| cx.text(file).get(p.range()) == Some(&*import.module)).collect();
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
        let folder = matches!(&seen, Some(Symbol::Module(m)) if **m == *first);
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

//! The definitions of a file, and what of it can be run.

use crate::analysis::{Analysis, Place};
use std::sync::Arc;
use tessera_base::{FileId, Span};
use tessera_grammar::ast::*;
use tessera_infer::db::Item;
use tessera_resolve::names::{BindingId, Kind};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sort {
    Function,
    Struct,
    Field,
    Variable,
}

/// A definition with those inside of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub name: Arc<str>,
    pub sort: Sort,
    /// What stands behind the name: the parameters, the type.
    pub detail: String,
    /// All of it.
    pub place: Place,
    /// Its name.
    pub at: Place,
    pub inner: Vec<Entry>,
}

/// The definitions of a file, in the order of its text; a variable of the file where it is bound first.
pub fn outline(cx: &Analysis, file: FileId) -> Vec<Entry> {
    let mut out = vec![];
    let mut seen = std::collections::BTreeSet::new();
    for head in cx.heads(file).iter() {
        let Some(item) = cx.item(head.id) else { continue };
        let stmts = &item.syntax(cx.db).stmts;
        out.extend(definitions(cx, item, stmts));
        let names = item.names(cx.db);
        for (i, b) in names.bindings.iter().enumerate() {
            let variable = b.kind == Kind::Variable && names.is_of_file(BindingId(i as u32));
            if let (true, Some(at)) =
                (variable && seen.insert(b.name.clone()), b.places.first().and_then(|p| cx.place(*p)))
            {
                let stmt =
                    stmts.iter().find(|s| b.places.iter().any(|p| s.span.start <= p.start && p.end <= s.span.end));
                let place = stmt.and_then(|s| cx.place(s.span)).unwrap_or_else(|| at.clone());
                out.push(Entry {
                    name: b.name.clone(),
                    sort: Sort::Variable,
                    detail: String::new(),
                    place,
                    at,
                    inner: vec![],
                });
            }
        }
    }
    out.sort_by_key(|e| (e.place.start, e.at.start));
    out
}

fn definitions(cx: &Analysis, item: Item, stmts: &[Stmt]) -> Vec<Entry> {
    let mut out = vec![];
    let mut add = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Def(def) => {
            let rest = Span { start: def.name.span.end, ..def.head };
            let detail = cx.one_line(item, rest).trim_end_matches(':').to_owned();
            if let (Some(place), Some(at)) = (cx.place(stmt.span), cx.place(def.name.span)) {
                let inner = definitions(cx, item, &def.body);
                out.push(Entry { name: def.name.text.clone(), sort: Sort::Function, detail, place, at, inner });
            }
        }
        StmtKind::Struct(def) => {
            let field = |f: &FieldDef| {
                let (start, end) = (f.name.span, f.default.as_ref().map_or(f.ty.span, |d| d.span));
                let detail = cx.one_line(item, f.ty.span);
                let (place, at) = (cx.place(start.to(end))?, cx.place(start)?);
                Some(Entry { name: f.name.text.clone(), sort: Sort::Field, detail, place, at, inner: vec![] })
            };
            if let (Some(place), Some(at)) = (cx.place(stmt.span), cx.place(def.name.span)) {
                let inner = def.fields.iter().filter_map(field).collect();
                let name = def.name.text.clone();
                out.push(Entry { name, sort: Sort::Struct, detail: String::new(), place, at, inner });
            }
        }
        _ => {}
    };
    tessera_resolve::syntax::each_stmt(stmts, &mut add);
    out
}

/// What of a file can be run by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Runnable {
    /// The file.
    Program,
    /// A function `test_…`.
    Test(Arc<str>),
    /// The `>>>` examples of a definition.
    Examples(Arc<str>),
}

/// What can be run, with the line that it is shown at.
pub fn runnables(cx: &Analysis, file: FileId) -> Vec<(Place, Runnable)> {
    let mut out = vec![];
    let heads = cx.heads(file);
    // A file of definitions alone does nothing when it is run.
    let acts = heads.iter().filter_map(|h| cx.item(h.id)).flat_map(|i| i.syntax(cx.db).stmts.clone()).any(|s| {
        !matches!(
            s.kind,
            StmtKind::Def(_)
                | StmtKind::Struct(_)
                | StmtKind::Import { .. }
                | StmtKind::FromImport { .. }
                | StmtKind::Error
        ) && !matches!(&s.kind, StmtKind::Expr(Expr { kind: ExprKind::Str(_), .. }))
    });
    if acts {
        out.push((Place { file, start: 0, end: 0 }, Runnable::Program));
    }
    for head in heads.iter() {
        let Some(item) = cx.item(head.id) else { continue };
        for stmt in &item.syntax(cx.db).stmts {
            let (name, doc) = match &stmt.kind {
                StmtKind::Def(def) => (&def.name, &def.doc),
                StmtKind::Struct(def) => (&def.name, &def.doc),
                _ => continue,
            };
            let Some(at) = cx.place(name.span) else { continue };
            if matches!(stmt.kind, StmtKind::Def(_)) && name.text.starts_with("test_") {
                out.push((at.clone(), Runnable::Test(name.text.clone())));
            }
            if doc.as_ref().is_some_and(|d| d.lines().any(|l| l.trim_start().starts_with(">>>"))) {
                out.push((at, Runnable::Examples(name.text.clone())));
            }
        }
    }
    out
}

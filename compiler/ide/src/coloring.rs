//! What each word of a text is, for colours: the tokens by their spelling, names by what they stand for.

use crate::analysis::Analysis;
use crate::path::{Spot, every_stmt, spot};
use crate::symbol::Symbol;
use crate::written::is_type;
use std::collections::BTreeMap;
use std::ops::Range;
use tessera_base::FileId;
use tessera_grammar::{TokenClass, highlight};
use tessera_infer::db::Item;
use tessera_resolve::names::{Kind, Reference};

/// In the words of the language server protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    Keyword,
    Number,
    String,
    Comment,
    Operator,
    Decorator,
    Function,
    Method,
    Struct,
    Type,
    /// A size, or a parameter of a struct.
    TypeParameter,
    Parameter,
    Variable,
    Property,
    Namespace,
}

impl Class {
    pub const ALL: &[Class] = &[
        Class::Keyword,
        Class::Number,
        Class::String,
        Class::Comment,
        Class::Operator,
        Class::Decorator,
        Class::Function,
        Class::Method,
        Class::Struct,
        Class::Type,
        Class::TypeParameter,
        Class::Parameter,
        Class::Variable,
        Class::Property,
        Class::Namespace,
    ];
}

/// A colored part of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Colored {
    pub range: Range<usize>,
    pub class: Class,
    /// It is defined here.
    pub declares: bool,
    /// It belongs to the language or its library.
    pub built_in: bool,
}

/// What a name is: its class, whether it is bound there, whether it is built in.
type Known = (Class, bool, bool);

/// The words of a part of a file, in its order, without overlaps; white space and brackets are left out.
pub fn coloring(cx: &Analysis, file: FileId, part: Range<usize>) -> Vec<Colored> {
    let text = cx.text(file);
    let mut names: BTreeMap<usize, Known> = BTreeMap::new();
    let heads = cx.heads(file);
    let starts: Vec<(usize, Item)> = heads
        .iter()
        .filter_map(|h| Some((cx.place(tessera_base::Span::new(h.id, 0, 0))?.start, cx.item(h.id)?)))
        .collect();
    for (i, (start, item)) in starts.iter().enumerate() {
        let end = starts.get(i + 1).map_or(text.len(), |(s, _)| *s);
        if *start < part.end && part.start < end {
            names_of(cx, file, *item, *start, &mut names);
        }
    }
    let colored = highlight(&text).into_iter().filter(|(r, _)| r.start < part.end && part.start < r.end);
    let one = |(range, class): (Range<usize>, TokenClass)| {
        let (class, declares, built_in) = match class {
            TokenClass::Keyword | TokenClass::Constant => (Class::Keyword, false, false),
            TokenClass::Number => (Class::Number, false, false),
            TokenClass::String => (Class::String, false, false),
            TokenClass::Comment => (Class::Comment, false, false),
            TokenClass::Operator => (Class::Operator, false, false),
            TokenClass::Bracket | TokenClass::Error => return None,
            by_spelling => names.get(&range.start).copied().or_else(|| spelled(&text[range.clone()], by_spelling))?,
        };
        Some(Colored { range, class, declares, built_in })
    };
    colored.filter_map(one).collect()
}

/// Of a name that nothing else is known of.
fn spelled(text: &str, class: TokenClass) -> Option<Known> {
    Some(match class {
        TokenClass::Decorator => (Class::Decorator, false, false),
        TokenClass::Definition => (Class::Function, true, false),
        _ if is_type(text) => (Class::Type, false, true),
        TokenClass::Call => (Class::Function, false, false),
        TokenClass::Attribute => (Class::Property, false, false),
        TokenClass::Capital => (Class::TypeParameter, false, false),
        TokenClass::Name => (Class::Variable, false, false),
        _ => return None,
    })
}

fn names_of(cx: &Analysis, file: FileId, item: Item, start: usize, out: &mut BTreeMap<usize, Known>) {
    let names = item.names(cx.db);
    let at = |place: u32| start + place as usize;
    for u in &names.uses {
        let known = match u.to {
            Reference::Local(b) => {
                cx.local(item, b).map_or_else(|| of_kind(names.binding(b).kind), |s| of_symbol(cx, &s))
            }
            Reference::Outside => match cx.top(file, &u.name) {
                Some(symbol) => of_symbol(cx, &symbol),
                None => continue,
            },
        };
        out.insert(at(u.span.start), known);
    }
    for b in &names.bindings {
        // A size is named by the annotations that use it, which is what makes it.
        let imported = (b.kind == Kind::Import).then(|| cx.top(file, &b.name)).flatten();
        let (class, _, built_in) = imported.map_or_else(|| of_kind(b.kind), |s| of_symbol(cx, &s));
        for (i, place) in b.places.iter().enumerate() {
            out.insert(at(place.start), (class, i == 0 && b.kind != Kind::Import, built_in));
        }
    }
    let stmts = &item.syntax(cx.db).stmts;
    for e in crate::path::every_expr(stmts) {
        match &e.kind {
            tessera_grammar::ast::ExprKind::Attr { base, name } => {
                let path = crate::path::dotted(base).and_then(|p| cx.path_seen(item, base.span.start, &p));
                let found = match path {
                    Some(of @ (Symbol::Module(_) | Symbol::File(_))) => cx.member(item, &of, &name.text, &[]),
                    _ => None,
                };
                let known = found.map_or((Class::Property, false, false), |s| of_symbol(cx, &s));
                out.insert(at(name.span.start), known);
            }
            tessera_grammar::ast::ExprKind::Call { func, args } => {
                for name in args.iter().filter_map(|a| a.name.as_ref()) {
                    out.insert(at(name.span.start), (Class::Parameter, false, false));
                }
                if let tessera_grammar::ast::ExprKind::Attr { name, .. } = &func.kind
                    && out.get(&at(name.span.start)).is_none_or(|k| k.0 == Class::Property)
                {
                    out.insert(at(name.span.start), (Class::Method, false, false));
                }
            }
            _ => {}
        }
    }
    every_stmt(stmts, &mut |s| match &s.kind {
        tessera_grammar::ast::StmtKind::Struct(def) => {
            for f in &def.fields {
                out.insert(at(f.name.span.start), (Class::Property, true, false));
            }
        }
        tessera_grammar::ast::StmtKind::Import { path, .. }
        | tessera_grammar::ast::StmtKind::FromImport { path, .. } => {
            for name in path {
                out.insert(at(name.span.start), (Class::Namespace, false, false));
            }
            if let tessera_grammar::ast::StmtKind::FromImport { names, .. } = &s.kind {
                for (name, _) in names {
                    if let Some(spot @ Spot::Imported { .. }) = spot(stmts, name.span.start)
                        && let Some((_, symbol)) = cx.symbol_at(file, at(spot.name().span.start))
                    {
                        out.insert(at(name.span.start), of_symbol(cx, &symbol));
                    }
                }
            }
        }
        _ => {}
    });
}

fn of_kind(kind: Kind) -> Known {
    let class = match kind {
        Kind::Parameter => Class::Parameter,
        Kind::Variable | Kind::Target => Class::Variable,
        Kind::Function => Class::Function,
        Kind::Struct => Class::Struct,
        Kind::Import => Class::Namespace,
        Kind::Generic | Kind::Size => Class::TypeParameter,
    };
    (class, false, false)
}

fn of_symbol(cx: &Analysis, symbol: &Symbol) -> Known {
    let library = |file: Option<FileId>| file.and_then(|f| cx.sources.file(f)).is_some_and(|f| f.library);
    match symbol {
        Symbol::Local { item, binding } => match cx.item(*item) {
            Some(item) => of_kind(item.names(cx.db).binding(*binding).kind),
            None => (Class::Variable, false, false),
        },
        Symbol::Def(id) => (Class::Function, false, library(cx.file_of(*id))),
        Symbol::Struct(id) => (Class::Struct, false, library(cx.file_of(*id))),
        Symbol::Field(..) => (Class::Property, false, false),
        Symbol::Variable(file, _) => (Class::Variable, false, library(Some(*file))),
        Symbol::File(file) => (Class::Namespace, false, library(Some(*file))),
        Symbol::Module(_) => (Class::Namespace, false, true),
        Symbol::Builtin(name) if is_type(name) => (Class::Type, false, true),
        Symbol::Builtin(name) if name.starts_with("math.") && cx.call(symbol).is_none() => {
            (Class::Variable, false, true)
        }
        Symbol::Builtin(_) => (Class::Function, false, true),
        Symbol::OfTensor(_) | Symbol::Method(_) => (Class::Method, false, true),
    }
}

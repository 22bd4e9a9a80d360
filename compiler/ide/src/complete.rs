//! What fits at the cursor: names that are visible, members of modules and values, parameters of a call, what can be imported.

use crate::analysis::Analysis;
use crate::call::{before, callee, open_bracket, path_start};
use crate::library;
use crate::path::{Spot, dotted, spot};
use crate::symbol::{Symbol, TYPES, attributes};
use std::collections::BTreeSet;
use std::ops::Range;
use tessera_base::{DType, FileId};
use tessera_core::builtins;
use tessera_core::ty::Ty;
use tessera_grammar::ast::ExprKind;
use tessera_grammar::token::{KEYWORDS, Tok, Token};
use tessera_infer::db::{Database, Entity, Item, Target};
use tessera_ops::surface;
use tessera_resolve::names::Kind;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sort {
    /// A parameter of the call that is written: `axis=`.
    Argument,
    Field,
    Variable,
    Size,
    Function,
    Struct,
    Method,
    Attribute,
    Module,
    Constant,
    Type,
    /// An axis of a mesh.
    Axis,
    Keyword,
}

/// What can be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    pub label: String,
    pub sort: Sort,
    /// Its type or its parameters.
    pub detail: String,
    pub doc: String,
    /// What it stands for, where more is to be said of it ([`resolved`]).
    pub symbol: Option<Symbol>,
}

/// Of more names at the top of a file than this, those are offered that fit what is typed, and this many of them; what is to
/// be said of each is said when it is asked for.
const AT_ONCE: usize = 400;

/// A completion with all that is known of it.
pub fn resolved(cx: &Analysis, c: &Completion) -> Completion {
    c.symbol.as_ref().map_or_else(|| c.clone(), |s| of_symbol(cx, &c.label, s))
}

/// What fits at a byte of a file, and the bytes that it takes the place of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completions {
    pub replaces: Range<usize>,
    pub all: Vec<Completion>,
    /// There are more that fit: another letter may bring them.
    pub more: bool,
}

/// A name that no program has: it stands where one is missing.
const MISSING: &str = "tessera_completes_here";

/// What fits at a byte of a file. Where a member is asked for that is not begun yet, the text is completed for as long as it
/// takes to say what stands before the dot.
pub fn complete(db: &mut Database, root: FileId, byte: usize) -> Option<Completions> {
    let cx = Analysis::new(db, root);
    let text = cx.text(root);
    if !text.is_char_boundary(byte) {
        return None;
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let start =
        text[..byte].rfind(|c: char| !is_word(c)).map_or(0, |i| i + text[i..].chars().next().map_or(1, char::len_utf8));
    let end = byte + text[byte..].find(|c: char| !is_word(c)).unwrap_or(text.len() - byte);
    // Digits begin no name.
    if text[start..byte].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let tokens = before(&cx, root, start)?;
    let replaces = start..end;
    let last = tokens.last().map(|t| t.kind);
    // `3.` is going to be a number.
    if tokens.last().is_some_and(|t| t.kind == Tok::Number && t.end as usize == start) {
        return None;
    }
    if let Some(all) = imports(&cx, root, &text, &tokens) {
        return Some(Completions { replaces, all, more: false });
    }
    if last == Some(Tok::Dot) {
        let dot = tokens.len() - 1;
        // A number with a point is no value with a member.
        if dot.checked_sub(1).is_none_or(|i| !tokens[i].kind.ends_operand() || tokens[i].kind == Tok::Number) {
            return None;
        }
        let known = of_path(&cx, root, &text, &tokens, dot);
        drop(cx);
        let all = known.or_else(|| of_value(db, root, &text, &tokens, start, end)).unwrap_or_default();
        return Some(Completions { replaces, all, more: false });
    }
    // A name that is being given is nobody's yet.
    if matches!(last, Some(Tok::Def | Tok::Struct | Tok::As)) {
        return None;
    }
    let mut all = vec![];
    if last == Some(Tok::At) && tokens.len() >= 2 && tokens[tokens.len() - 2].kind != Tok::Break {
        all.extend(axes(&cx, root));
    }
    all.extend(arguments(&cx, root, &text, &tokens));
    let more = visible(&cx, root, start, &text[start..byte], &mut all);
    Some(Completions { replaces, all, more })
}

fn plain(label: &str, sort: Sort) -> Completion {
    Completion { label: label.to_owned(), sort, detail: String::new(), doc: String::new(), symbol: None }
}

/// A name at the top of a file, of which nothing is said yet.
fn brief(label: &str, symbol: Symbol) -> Completion {
    let sort = match &symbol {
        Symbol::Def(_) => Sort::Function,
        Symbol::Struct(_) => Sort::Struct,
        Symbol::File(_) | Symbol::Module(_) => Sort::Module,
        _ => Sort::Variable,
    };
    Completion { symbol: Some(symbol), ..plain(label, sort) }
}

/// With what is known of it.
fn of_symbol(cx: &Analysis, label: &str, symbol: &Symbol) -> Completion {
    let types = || cx.in_words(&cx.types_of(symbol));
    let call = cx.call(symbol);
    let (sort, detail) = match symbol {
        Symbol::Local { item, binding } => {
            let kind = cx.item(*item).map(|i| i.names(cx.db).binding(*binding).kind);
            match kind {
                Some(Kind::Function) => (Sort::Function, String::new()),
                Some(Kind::Size | Kind::Generic) => (Sort::Size, String::new()),
                _ => (Sort::Variable, types()),
            }
        }
        Symbol::Def(_) => (Sort::Function, String::new()),
        Symbol::Struct(_) => (Sort::Struct, String::new()),
        Symbol::Field(..) => (Sort::Field, types()),
        Symbol::Variable(..) => (Sort::Variable, types()),
        Symbol::File(_) | Symbol::Module(_) => (Sort::Module, String::new()),
        Symbol::Builtin(name) if crate::written::is_type(name) => (Sort::Type, String::new()),
        Symbol::Builtin(name) => match builtins::CONSTANTS.iter().find(|(n, _)| **n == **name) {
            Some((_, value)) => (Sort::Constant, format!("{value:?}")),
            None => (Sort::Function, String::new()),
        },
        Symbol::OfTensor(_) if call.is_none() => (Sort::Attribute, String::new()),
        Symbol::OfTensor(_) | Symbol::Method(_) => (Sort::Method, String::new()),
    };
    let detail = if detail.is_empty() { call.map_or_else(String::new, |c| c.text().0) } else { detail };
    Completion { label: label.to_owned(), sort, detail, doc: cx.doc(symbol).unwrap_or_default(), symbol: None }
}

/// Behind `import` and `from … import`.
fn imports(cx: &Analysis, root: FileId, text: &str, tokens: &[Token]) -> Option<Vec<Completion>> {
    let line = tokens.iter().rposition(|t| t.kind == Tok::Break).map_or(0, |i| i + 1);
    let line = &tokens[line..];
    let first = line.first()?.kind;
    let behind = line.iter().position(|t| t.kind == Tok::Import);
    let path_of = |part: &[Token]| {
        let names: Vec<&str> = part.iter().filter(|t| t.kind == Tok::Name).map(|t| t.text(text)).collect();
        names.join(".")
    };
    match (first, behind) {
        (Tok::From, Some(import)) => {
            let module = path_of(&line[1..import]);
            let imported = cx.file(root)?.imports(cx.db).get(&*module).cloned();
            if let Some(Target::File(id)) = imported {
                return Some(of_file(cx, root, id));
            }
            // An import is read once it names something.
            if let Some((_, path, text)) =
                library::FILES.iter().find(|(name, ..)| module.strip_prefix("std.") == Some(name))
            {
                let mut db = Database::default();
                let id = db.add_file(path);
                db.set_text(id, text);
                let all = of_file(&Analysis::new(&db, id), id, id);
                return Some(all.into_iter().map(|c| Completion { symbol: None, ..c }).collect());
            }
            let item = cx.item_at(root, line[0].start as usize)?.0;
            let known = if module == "std" { std_modules() } else { of_module(cx, item, &module.as_str().into()) };
            Some(known)
        }
        (Tok::From | Tok::Import, _) => {
            let from = line.iter().rposition(|t| matches!(t.kind, Tok::From | Tok::Import | Tok::Comma))? + 1;
            let path = path_of(&line[from..]);
            Some(match &*path {
                "" => {
                    let own = builtins::MODULES.iter().copied().chain(["tessera"]);
                    own.map(|m| plain(m, Sort::Module)).collect()
                }
                "std" => std_modules(),
                module => {
                    let prefix = format!("{module}.");
                    tessera_infer::members::members(module)
                        .into_iter()
                        .filter(|m| builtins_module(&prefix, m))
                        .map(|m| plain(&m, Sort::Module))
                        .collect()
                }
            })
        }
        _ => None,
    }
}

fn builtins_module(prefix: &str, member: &str) -> bool {
    prefix == "tessera." || format!("{prefix}{member}") == "dist.collective"
}

/// The files of the standard library.
fn std_modules() -> Vec<Completion> {
    library::modules().map(|m| plain(m, Sort::Module)).collect()
}

/// Members of what a path before a dot names, if that is no value.
fn of_path(cx: &Analysis, root: FileId, text: &str, tokens: &[Token], dot: usize) -> Option<Vec<Completion>> {
    let start = path_start(tokens, dot)?;
    if start > 0 && tokens[start - 1].kind == Tok::Dot {
        return None;
    }
    let (item, at) = cx.item_at(root, tokens[start].start as usize)?;
    let path: Vec<&str> = tokens[start..dot].iter().filter(|t| t.kind == Tok::Name).map(|t| t.text(text)).collect();
    match cx.path_seen(item, at, &path)? {
        Symbol::File(id) => Some(of_file(cx, item.file(cx.db), id)),
        Symbol::Module(m) if &*m == "std" => Some(std_modules()),
        Symbol::Module(m) => Some(of_module(cx, item, &m)),
        symbol => {
            let types = cx.types_of(&symbol);
            (!types.is_empty()).then(|| of_types(cx, &types))
        }
    }
}

/// Names of a file that another one imports, and what that imports from the folder of its name.
fn of_file(cx: &Analysis, importer: FileId, id: FileId) -> Vec<Completion> {
    let Some(scope) = cx.scope(id) else { return vec![] };
    let mut names: BTreeSet<String> = scope.names.keys().chain(&scope.variables).map(|n| n.to_string()).collect();
    if let Some(importer) = cx.file(importer) {
        names.extend(tessera_infer::check::modules::all_beside(cx.db, importer, id));
    }
    let own = names.into_iter().filter(|n| !n.starts_with('_'));
    own.filter_map(|name| Some(of_symbol(cx, &name, &cx.of_file(importer, id, &name)?))).collect()
}

fn of_module(cx: &Analysis, item: Item, module: &std::sync::Arc<str>) -> Vec<Completion> {
    let mut names: BTreeSet<String> = tessera_infer::members::members(module).into_iter().collect();
    if let Some(file) = cx.file(item.file(cx.db)) {
        names.extend(tessera_infer::check::modules::in_folder(cx.db, file, module));
    }
    let of = Symbol::Module(module.clone());
    let one = |name: String| Some(of_symbol(cx, &name, &cx.member(item, &of, &name, &[])?));
    names.into_iter().filter_map(one).collect()
}

/// Members of the value before a dot. The text gets a name behind the dot and, where that is not enough, loses what stands
/// behind it in its line and gets the brackets that are open closed.
fn of_value(
    db: &mut Database,
    root: FileId,
    text: &str,
    tokens: &[Token],
    start: usize,
    end: usize,
) -> Option<Vec<Completion>> {
    let line_end = text[end..].find('\n').map_or(text.len(), |i| end + i);
    let mut closers = String::new();
    let mut open = tokens;
    while let Some(at) = open_bracket(open) {
        closers.push_str(match open[at].kind {
            Tok::LParen => ")",
            Tok::LBracket => "]",
            Tok::LBrace => "}",
            _ => break,
        });
        open = &open[..at];
    }
    // A head of a block has its colon behind the cursor, or is to get one.
    let line = tokens.iter().rposition(|t| t.kind == Tok::Break).map_or(0, |i| i + 1);
    if tokens.get(line).is_some_and(|t| matches!(t.kind, Tok::If | Tok::Elif | Tok::While | Tok::For | Tok::With)) {
        closers.push(':');
    }
    let name = if end > start { "" } else { MISSING };
    let ways = [
        format!("{}{name}{}", &text[..end], &text[end..]),
        format!("{}{name}{closers}{}", &text[..end], &text[line_end..]),
    ];
    let mut found = None;
    for way in &ways {
        db.set_text(root, way);
        found = of_member(&Analysis::new(db, root), root, start);
        if found.is_some() {
            break;
        }
    }
    db.set_text(root, text);
    found
}

/// Members of the value whose member stands at a byte.
fn of_member(cx: &Analysis, root: FileId, byte: usize) -> Option<Vec<Completion>> {
    let (item, at) = cx.item_at(root, byte)?;
    let Spot::Member { base, .. } = spot(&item.syntax(cx.db).stmts, at)? else { return None };
    let types = cx.types_here(item, base);
    if types.is_empty() {
        // What follows a call or an index is a tensor more often than anything else.
        let value = !matches!(base.kind, ExprKind::Name(_)) && dotted(base).is_none();
        return value.then(|| of_types(cx, &[Ty::AnyTensor]));
    }
    Some(of_types(cx, &types))
}

fn of_types(cx: &Analysis, types: &[Ty]) -> Vec<Completion> {
    let mut out: Vec<Completion> = vec![];
    for ty in types {
        match ty {
            Ty::Tensor(_) | Ty::TensorPattern(_) | Ty::AnyTensor => {
                out.extend(attributes().map(|n| of_symbol(cx, n, &Symbol::OfTensor(n.into()))));
                out.extend(surface::methods().map(|n| of_symbol(cx, n, &Symbol::OfTensor(n.into()))));
            }
            Ty::Struct(s) => {
                let item = tessera_base::ItemId(s.item);
                for (name, ty) in &s.fields {
                    let mut one = of_symbol(cx, name, &Symbol::Field(item, name.clone()));
                    if *ty != Ty::Unknown {
                        one.detail = tessera_infer::describe(ty);
                    }
                    out.push(one);
                }
            }
            Ty::Str => out.extend(methods(cx, "str.")),
            Ty::List(_) => out.extend(methods(cx, "list.")),
            Ty::Dict(..) => out.extend(methods(cx, "dict.")),
            _ => {}
        }
    }
    let mut seen = BTreeSet::new();
    out.retain(|c| seen.insert(c.label.clone()));
    out
}

fn methods(cx: &Analysis, prefix: &str) -> Vec<Completion> {
    let rows = builtins::rows().map(|b| b.name()).chain(builtins::CALLS.iter().map(|c| c.name));
    let names: BTreeSet<&str> = rows.filter(|n| n.starts_with(prefix)).collect();
    names.into_iter().map(|n| of_symbol(cx, &n[prefix.len()..], &Symbol::Method(n.into()))).collect()
}

/// The parameters of the call around the cursor that are not given yet.
fn arguments(cx: &Analysis, root: FileId, text: &str, tokens: &[Token]) -> Vec<Completion> {
    let Some(open) = open_bracket(tokens).filter(|i| tokens[*i].kind == Tok::LParen) else { return vec![] };
    // Only where an argument begins.
    if !matches!(tokens.iter().rev().find(|t| t.kind != Tok::Break).map(|t| t.kind), Some(Tok::LParen | Tok::Comma)) {
        return vec![];
    }
    let Some(call) = callee(cx, root, text, tokens, open).and_then(|s| cx.call(&s)) else { return vec![] };
    let given: BTreeSet<&str> = tokens[open..]
        .windows(2)
        .filter(|w| w[0].kind == Tok::Name && w[1].kind == Tok::Assign)
        .map(|w| w[0].text(text))
        .collect();
    let open = call.params.iter().filter(|p| !p.rest && !given.contains(&*p.name));
    open.map(|p| Completion {
        label: format!("{}=", p.name),
        sort: Sort::Argument,
        detail: p.text.clone(),
        doc: String::new(),
        symbol: None,
    })
    .collect()
}

/// The axes of the meshes that a file makes, and that its annotations name.
fn axes(cx: &Analysis, root: FileId) -> Vec<Completion> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    for head in cx.heads(root).iter() {
        let Some(item) = cx.item(head.id) else { continue };
        for e in crate::path::every_expr(&item.syntax(cx.db).stmts) {
            let names = match &e.kind {
                ExprKind::Call { func, args } if dotted(func).is_some_and(|p| p.last() == Some(&"Mesh")) => args,
                ExprKind::Index { base, index } if dotted(base).is_some_and(|p| p.last() == Some(&"Mesh")) => index,
                ExprKind::Binary { op: tessera_base::BinOp::MatMul, right, .. } => {
                    if let ExprKind::Name(n) = &right.kind
                        && cx.name_seen(item, right.span.start, n).is_none()
                        && &**n != MISSING
                    {
                        found.insert(n.to_string());
                    }
                    continue;
                }
                _ => continue,
            };
            for arg in names {
                found.extend(arg.name.iter().map(|n| n.text.to_string()));
                let parts = match &arg.value.kind {
                    ExprKind::List(es) | ExprKind::Tuple(es) => es.iter().collect(),
                    _ => vec![&arg.value],
                };
                for part in parts {
                    if let ExprKind::Str(axis) = &part.kind {
                        found.insert(axis.to_string());
                    }
                }
            }
        }
    }
    found.iter().map(|a| plain(a, Sort::Axis)).collect()
}

/// The names that are visible at a byte, behind what is offered already; whether there are more at the top of the file that
/// fit what is typed.
fn visible(cx: &Analysis, root: FileId, byte: usize, typed: &str, out: &mut Vec<Completion>) -> bool {
    let (mut more, mut many) = (false, false);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut add = |c: Completion| {
        if seen.insert(c.label.clone()) {
            out.push(c);
        }
    };
    if let Some((item, at)) = cx.item_at(root, byte) {
        let names = item.names(cx.db);
        // A line that is begun behind the last of a body, and as deep, is to belong to it.
        let text = cx.text(root);
        let line = text[..byte].rfind('\n').map_or(0, |i| i + 1);
        let deep = text[line..].starts_with([' ', '\t']);
        let at = if deep { at.min(item.text(cx.db).len() as u32) } else { at };
        for b in names.visible(at) {
            let bound = |(_, other): &(usize, &tessera_resolve::names::Binding)| std::ptr::eq(*other, b);
            let Some((i, _)) = names.bindings.iter().enumerate().find(bound) else { continue };
            if let Some(symbol) = cx.local(item, tessera_resolve::names::BindingId(i as u32)) {
                add(of_symbol(cx, &b.name, &symbol));
            }
        }
    }
    if let Some(scope) = cx.scope(root) {
        many = scope.names.len() + scope.variables.len() > AT_ONCE;
        let mut left = AT_ONCE;
        let mut taken = |name: &str| {
            let fits = !many || fits(name, typed);
            more |= !fits || left == 0;
            let taken = fits && left > 0;
            left -= usize::from(taken);
            taken
        };
        for (name, entity) in scope.names.iter().filter(|(name, _)| taken(name)) {
            let symbol = match entity {
                Entity::Def(id) => Some(Symbol::Def(*id)),
                Entity::Struct(id) => Some(Symbol::Struct(*id)),
                _ => cx.top(root, name),
            };
            if let Some(symbol) = symbol {
                add(if many { brief(name, symbol) } else { of_symbol(cx, name, &symbol) });
            }
        }
        for name in scope.variables.iter().filter(|name| taken(name)) {
            let symbol = Symbol::Variable(root, name.clone());
            add(if many { brief(name, symbol) } else { of_symbol(cx, name, &symbol) });
        }
    }
    builtins::MODULES.iter().for_each(|m| add(plain(m, Sort::Module)));
    let built_in = |name: &str, sort: Sort| {
        let symbol = Symbol::Builtin(name.into());
        if many { Completion { symbol: Some(symbol), ..plain(name, sort) } } else { of_symbol(cx, name, &symbol) }
    };
    builtins::FUNCTIONS.iter().for_each(|f| add(built_in(f, Sort::Function)));
    let types = TYPES.iter().copied().chain(DType::ALL.iter().map(|d| d.name()));
    types.for_each(|t| add(built_in(t, Sort::Type)));
    KEYWORDS.iter().for_each(|k| add(plain(k, Sort::Keyword)));
    more
}

/// Whether the letters that are typed stand in a name in this order, as editors filter.
fn fits(name: &str, typed: &str) -> bool {
    let mut letters = name.chars();
    typed.chars().all(|t| letters.any(|c| c.eq_ignore_ascii_case(&t)))
}

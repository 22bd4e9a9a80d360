//! Warnings for careless code that the syntax shows: imports that nothing reads (W0105), statements without effect
//! (W0106), random keys that are used twice (W0107), variables that nothing reads (W0108), statements that are never reached
//! (W0109). Only what is certain is said.

use crate::lost_values::lost_values;
use crate::mistaken::mistaken;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::{TExpr, TKind};
use tessera_core::ty::Ty;
use tessera_grammar::ast::*;
use tessera_resolve::names::{BindingId, Kind, Names, Reference};
use tessera_resolve::syntax::{assigned, dotted_path, each_stmt, exprs_of, parts_of, target_names};

/// Functions of `random` that take a key and draw with it.
const DRAWS: [&str; 6] = ["normal", "uniform", "randint", "bernoulli", "permutation", "choice"];

/// A file as it is written.
pub struct Written<'a> {
    pub items: Vec<ItemText<'a>>,
    /// Of a file that is run, and not imported: what others read of an imported one is not known here.
    pub imports: Option<Imports<'a>>,
    /// Whether `random` is the module that is built in.
    pub random: bool,
}

/// One item of it.
pub struct ItemText<'a> {
    pub text: &'a str,
    pub stmts: &'a [Stmt],
    pub names: &'a Names,
}

/// What is known of the names that a file imports.
pub struct Imports<'a> {
    /// The names that the file reads, item by item.
    pub read: Vec<&'a BTreeSet<Arc<str>>>,
    /// Those that something else binds, too.
    pub twice: Arc<BTreeSet<Arc<str>>>,
    /// Whether importing a module does nothing but name it: a file of the user's own runs.
    pub only_names: fn(&str) -> bool,
}

/// What is careless in an item by itself: variables and new values that nothing reads, statements that are never reached,
/// expressions that are mistaken for others.
pub fn of_item(stmts: &[Stmt], names: &Names, text: &str) -> Vec<Diagnostic> {
    let mut out = vec![];
    unread_variables(stmts, names, &mut out);
    out.extend(lost_values(stmts, names));
    out.extend(mistaken(stmts, text));
    unreached(stmts, &mut out);
    out
}

/// What is careless in a file as a whole: imports that nothing reads, random keys that are used twice.
pub fn of_file(file: &Written) -> Vec<Diagnostic> {
    let mut out = vec![];
    let mut used = Used::new();
    for item in &file.items {
        if let Some(imports) = &file.imports {
            out.extend(item.stmts.iter().filter_map(|stmt| unread_import(imports, item, stmt)));
        }
        if file.random {
            Keys { names: item.names, out: &mut out }.block(item.stmts, &mut used, None);
        }
    }
    out
}

/// W0108: variables and functions inside of functions that nothing reads. Names of loops and of parts of a value are left
/// alone: they may be there for their place.
fn unread_variables(stmts: &[Stmt], names: &Names, out: &mut Vec<Diagnostic>) {
    let unused = names.unused();
    if unused.is_empty() {
        return;
    }
    let mut alone: BTreeSet<Span> = BTreeSet::new();
    each_block(stmts, &mut |stmts| {
        alone.extend(stmts.iter().flat_map(|stmt| match &stmt.kind {
            StmtKind::Assign { targets, .. } => targets.iter().map(|t| t.span).collect(),
            StmtKind::AnnAssign { target, .. } => vec![target.span],
            StmtKind::Def(def) => vec![def.name.span],
            _ => vec![],
        }));
    });
    for id in unused {
        out.extend(unread_variable(names, id, &alone));
    }
}

fn unread_variable(names: &Names, id: BindingId, alone: &BTreeSet<Span>) -> Option<Diagnostic> {
    let binding = names.binding(id);
    let (first, others) = binding.places.split_first()?;
    if !binding.places.iter().all(|place| alone.contains(place)) {
        return None;
    }
    let (what, done) = if binding.kind == Kind::Function { ("function", "defined") } else { ("variable", "assigned") };
    let mut d = Diagnostic::new(Code::W0108, *first, format!("the {what} `{}` is {done} and never read", binding.name));
    for place in others {
        d = d.with_label(*place, "here, too");
    }
    Some(match others {
        [] => d.fix("begin its name with `_`: it is meant not to be read", *first, format!("_{}", binding.name)),
        _ => d.help("leave it out; a name that begins with `_` is meant not to be read"),
    })
}

/// W0109: what stands behind the end of its block.
fn unreached(stmts: &[Stmt], out: &mut Vec<Diagnostic>) {
    each_block(stmts, &mut |stmts| {
        let Some(last) = stmts.iter().position(ends) else { return };
        let (Some(first), Some(end)) = (stmts.get(last + 1), stmts.last()) else { return };
        let d = Diagnostic::new(Code::W0109, first.span.to(end.span), "this is never reached");
        out.push(d.with_label(stmts[last].span, "nothing goes on behind this"));
    });
}

/// Whether nothing runs behind it in its block.
fn ends(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Return(_) | StmtKind::Break | StmtKind::Continue => true,
        StmtKind::If { then, otherwise, .. } => then.iter().any(ends) && otherwise.iter().any(ends),
        StmtKind::With { body, .. } => body.iter().any(ends),
        _ => false,
    }
}

/// Calls `f` on every block of statements, those of nested functions included, from outside in.
fn each_block(stmts: &[Stmt], f: &mut dyn FnMut(&[Stmt])) {
    f(stmts);
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Def(def) => each_block(&def.body, f),
            StmtKind::If { then, otherwise, .. } => {
                each_block(then, f);
                each_block(otherwise, f);
            }
            StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::With { body, .. } => {
                each_block(body, f)
            }
            _ => {}
        }
    }
}

/// W0105: names of an import that nothing in the file reads.
fn unread_import(imports: &Imports, item: &ItemText, stmt: &Stmt) -> Option<Diagnostic> {
    let (path, names): (_, Vec<&Name>) = match &stmt.kind {
        StmtKind::Import { path, alias: Some(alias) } => (path, vec![alias]),
        StmtKind::Import { path, alias: None } => {
            let at = usize::from(path.len() > 1 && &*path[0].text == "tessera");
            (path, path.get(at).into_iter().collect())
        }
        StmtKind::FromImport { path, names } => (path, names.iter().map(|(n, a)| a.as_ref().unwrap_or(n)).collect()),
        _ => return None,
    };
    if !(imports.only_names)(&dotted_path(path)) {
        return None;
    }
    let known = |n: &Name| imports.read.iter().any(|names| names.contains(&n.text)) || imports.twice.contains(&n.text);
    let unread = |n: &Name| !n.text.starts_with('_') && !known(n);
    let lost: Vec<&Name> = names.into_iter().filter(|n| unread(n)).collect();
    let (first, others) = lost.split_first()?;
    let said: Vec<String> = match &stmt.kind {
        StmtKind::Import { path, alias: None } => vec![format!("`{}`", dotted_path(path))],
        _ => lost.iter().map(|n| format!("`{}`", n.text)).collect(),
    };
    let is = if others.is_empty() { "is" } else { "are" };
    let message = format!("{} {is} imported and never read", said.join(", "));
    let mut d = Diagnostic::new(Code::W0105, first.span, message);
    for name in others {
        d = d.with_label(name.span, "neither is this");
    }
    Some(match without(stmt, item.text, &unread) {
        Some((title, span, text)) => d.fix(title, span, text),
        None => d.help("leave it out"),
    })
}

/// The edit that takes names out of an import, or the line out of the program; `None` where more than that stands there.
fn without(stmt: &Stmt, text: &str, unread: &dyn Fn(&Name) -> bool) -> Option<(&'static str, Span, String)> {
    let binds = |(name, alias): &(Name, Option<Name>)| alias.clone().unwrap_or_else(|| name.clone());
    if let StmtKind::FromImport { names, .. } = &stmt.kind
        && let kept = names.iter().filter(|n| !unread(&binds(n))).collect::<Vec<_>>()
        && !kept.is_empty()
    {
        let span = names.first()?.0.span.to(binds(names.last()?).span);
        let whole = text.get(span.start as usize..span.end as usize)?;
        let written = |(name, alias): &&(Name, Option<Name>)| match alias {
            Some(alias) => format!("{} as {}", name.text, alias.text),
            None => name.text.to_string(),
        };
        let kept: Vec<String> = kept.iter().map(written).collect();
        return (!whole.contains('\n')).then(|| ("leave it out", span, kept.join(", ")));
    }
    let (start, end) = (stmt.span.start as usize, stmt.span.end as usize);
    let alone = text.get(..start)?.chars().next_back().is_none_or(|c| c == '\n');
    let rest = text.get(end..)?;
    let line = if rest.starts_with('\n') { 1 } else { 0 };
    let span = Span { end: stmt.span.end + line, ..stmt.span };
    (alone && (line == 1 || rest.is_empty())).then(|| ("leave it out", span, String::new()))
}

/// W0106 for a value that nobody takes and that nothing but its computation gives.
pub fn without_effect(e: &Expr, value: &TExpr) -> Option<Diagnostic> {
    let tensor = matches!(value.kind, TKind::Op { .. }) && matches!(value.ty, Ty::Tensor(_));
    let pure = match &e.kind {
        ExprKind::Call { .. } => tensor && !parts_of(e).into_iter().any(calls),
        ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => true,
        ExprKind::Tuple(_) | ExprKind::List(_) | ExprKind::Unary { .. } | ExprKind::Binary { .. } => !calls(e),
        ExprKind::Compare { .. } | ExprKind::Index { .. } | ExprKind::Attr { .. } => !calls(e),
        _ => false,
    };
    let d = || Diagnostic::new(Code::W0106, e.span, "this has no effect: nothing keeps its value");
    (pure && value.ty != Ty::None).then(|| match &e.kind {
        ExprKind::Compare { rest, .. } if matches!(rest[..], [(CmpOp::Eq, _)]) => {
            d().help("`=` binds a name, and `assert` demands that it holds")
        }
        ExprKind::Name(name) if matches!(value.ty, Ty::FnRef(_)) => {
            d().help(format!("a function runs where it is called: `{name}(…)`"))
        }
        _ => d().help("bind it to a name, print it, or leave it out"),
    })
}

/// Whether there is a call in it.
fn calls(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Call { .. }) || parts_of(e).into_iter().any(calls)
}

/// The names that stand in an expression.
fn names_in(e: &Expr, out: &mut BTreeSet<Arc<str>>) {
    if let ExprKind::Name(name) = &e.kind {
        out.insert(name.clone());
    }
    parts_of(e).into_iter().for_each(|part| names_in(part, out));
}

/// Keys of draws, by their variables: where each was used, as long as the variable is not bound again.
type Used = BTreeMap<Arc<str>, Span>;

/// A draw, and the variable that holds its key.
struct Draw {
    key: Arc<str>,
    span: Span,
    /// All names in it.
    names: BTreeSet<Arc<str>>,
}

/// W0107 in one item.
struct Keys<'a> {
    names: &'a Names,
    out: &'a mut Vec<Diagnostic>,
}

impl Keys<'_> {
    /// Statements that run one after the other. `turn` are the names that each turn of the loop around them binds, if every
    /// turn comes here.
    fn block(&mut self, stmts: &[Stmt], used: &mut Used, turn: Option<&BTreeSet<Arc<str>>>) {
        for stmt in stmts {
            if let StmtKind::Def(def) = &stmt.kind {
                self.block(&def.body, &mut Used::new(), None);
                continue;
            }
            let mut draws = vec![];
            exprs_of(stmt).into_iter().for_each(|e| self.draws(e, &mut draws));
            for draw in draws {
                self.draw(draw, used, turn);
            }
            let mut bound = BTreeSet::new();
            assigned(std::slice::from_ref(stmt), &mut bound);
            match &stmt.kind {
                StmtKind::If { then, otherwise, .. } => {
                    self.block(then, &mut used.clone(), None);
                    self.block(otherwise, &mut used.clone(), None);
                }
                StmtKind::For { body, .. } | StmtKind::While { body, .. } => {
                    let mut ends = false;
                    each_stmt(body, &mut |s| ends |= matches!(s.kind, StmtKind::Break | StmtKind::Return(_)));
                    let mut inside = used.clone();
                    inside.retain(|name, _| !bound.contains(name));
                    self.block(body, &mut inside, (!ends).then_some(&bound));
                }
                StmtKind::With { body, .. } => self.block(body, used, turn),
                _ => {}
            }
            used.retain(|name, _| !bound.contains(name));
        }
    }

    fn draw(&mut self, draw: Draw, used: &mut Used, turn: Option<&BTreeSet<Arc<str>>>) {
        let Draw { key, span, names } = draw;
        if turn.is_some_and(|bound| bound.is_disjoint(&names)) {
            return self.same_in_each_turn(&key, span);
        }
        let Some(first) = used.get(&key) else {
            used.insert(key, span);
            return;
        };
        let message = format!("`{key}` is the key of two draws, which are not independent of each other");
        let d = Diagnostic::new(Code::W0107, span, message).with_label(*first, "the first draw");
        self.out.push(d.help("a key for each: `random.split(key)` makes two of one"));
    }

    fn same_in_each_turn(&mut self, key: &str, span: Span) {
        let message = format!("each turn draws the same numbers, since `{key}` comes from outside of the loop");
        let help = format!("a key for each turn: `random.fold_in({key}, i)` with a number `i` of the turn");
        self.out.push(Diagnostic::new(Code::W0107, span, message).help(help));
    }

    /// The draws that an expression makes for certain, in their order.
    fn draws(&mut self, e: &Expr, out: &mut Vec<Draw>) {
        match &e.kind {
            ExprKind::Lambda { .. } => {}
            ExprKind::Cond { test: first, .. } | ExprKind::Logic { left: first, .. } => self.draws(first, out),
            ExprKind::ListComp { element, clauses } => {
                let mut targets = BTreeSet::new();
                clauses.iter().for_each(|c| target_names(&c.target, &mut targets));
                let mut inside = vec![];
                self.draws(element, &mut inside);
                for draw in inside.into_iter().filter(|d| targets.is_disjoint(&d.names)) {
                    self.same_in_each_turn(&draw.key, draw.span);
                }
            }
            _ => {
                parts_of(e).into_iter().for_each(|part| self.draws(part, out));
                out.extend(self.draw_of(e));
            }
        }
    }

    /// `random.normal(key, …)` with a variable as key.
    fn draw_of(&self, e: &Expr) -> Option<Draw> {
        let ExprKind::Call { func, args } = &e.kind else { return None };
        let ExprKind::Attr { base, name } = &func.kind else { return None };
        if !matches!(&base.kind, ExprKind::Name(n) if &**n == "random") || !DRAWS.contains(&&*name.text) {
            return None;
        }
        let outside = self.names.use_at(base.span).is_some_and(|u| u.to == Reference::Outside);
        let key = args.iter().find(|a| a.name.as_ref().is_none_or(|n| &*n.text == "key") && !a.star)?;
        match &key.value.kind {
            ExprKind::Name(key) if outside => {
                let mut names = BTreeSet::new();
                names_in(e, &mut names);
                Some(Draw { key: key.clone(), span: e.span, names })
            }
            _ => None,
        }
    }
}

//! What is shown between the words of a text: types that nobody wrote, and what is compared when the program runs.

use crate::analysis::Analysis;
use crate::path::{every_expr, every_stmt};
use crate::symbol::Symbol;
use std::ops::Range;
use std::sync::Arc;
use tessera_base::{FileId, Span};
use tessera_core::ty::Ty;
use tessera_grammar::ast::*;
use tessera_infer::db::Item;
use tessera_resolve::names::Kind;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sort {
    /// `: Tensor[N, f32]` behind a name, `-> Tensor[N, f32]` behind the head of a function. It can be written there.
    Type,
    /// What is compared when the program runs.
    Check,
}

/// A text at a byte of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Inlay {
    pub at: usize,
    pub sort: Sort,
    pub text: String,
    /// All of what the text may only begin to say.
    pub whole: String,
    /// It could be written there as it is.
    pub writable: bool,
}

/// Longer ones are cut, with the whole behind them.
const LENGTH_MAX: usize = 48;

/// The inlays of a part of a file. `kept` is what the program compares when it runs ([`tessera_infer::Checked::kept`]).
pub fn inlays(cx: &Analysis, file: FileId, part: Range<usize>, kept: &[(Span, Arc<str>)]) -> Vec<Inlay> {
    let mut out = vec![];
    let start_of = |id| cx.place(Span::new(id, 0, 0)).map(|p| p.start);
    let heads = cx.heads(file);
    let placed = heads.iter().filter_map(|h| Some((cx.item(h.id)?, start_of(h.id)?)));
    let within = |(item, start): &(Item, usize)| *start < part.end && part.start <= start + item.text(cx.db).len();
    let shown: Vec<(Item, usize)> = placed.filter(within).collect();
    cx.ask_of(&shown.iter().map(|(item, _)| item.id(cx.db)).collect::<Vec<_>>());
    shown.into_iter().for_each(|(item, start)| types(cx, item, start, &mut out));
    for (span, what) in kept {
        if let Some(place) = cx.place(*span).filter(|p| p.file == file) {
            out.push(inlay(place.end, Sort::Check, format!("checks {what}")));
        }
    }
    out.retain(|i| part.start <= i.at && i.at <= part.end);
    out.sort();
    out.dedup();
    out
}

fn inlay(at: usize, sort: Sort, whole: String) -> Inlay {
    let text = match whole.char_indices().nth(LENGTH_MAX) {
        Some((cut, _)) => format!("{}…", &whole[..cut]),
        None => whole.clone(),
    };
    Inlay { at, sort, text, whole, writable: false }
}

/// Whether an expression says itself what it is.
fn is_plain(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) | ExprKind::FStr(_) | ExprKind::Bool(_) => true,
        ExprKind::None | ExprKind::Lambda { .. } => true,
        ExprKind::Unary { operand, .. } => is_plain(operand),
        _ => false,
    }
}

/// A type that helps whoever reads: one, and not that of a function or of what was wrong.
fn one(types: &[Ty]) -> Option<&Ty> {
    match types {
        [ty] if !matches!(ty, Ty::FnRef(_) | Ty::Unknown | Ty::Error | Ty::Never | Ty::None) => Some(ty),
        _ => None,
    }
}

/// Whether an annotation at a position of an item can say a type: its sizes are numbers, or have names that are known there.
fn is_writable(cx: &Analysis, item: Item, at: u32, ty: &Ty) -> bool {
    let named = |text: &str| match cx.name_seen(item, at, text) {
        Some(Symbol::Local { item, binding }) => {
            cx.item(item).is_some_and(|i| i.names(cx.db).binding(binding).kind == Kind::Size)
        }
        _ => false,
    };
    let size = |size: &tessera_base::Size| size.as_const().is_some_and(|n| n >= 0) || named(&size.to_string());
    match ty {
        Ty::Int(_) | Ty::Float | Ty::Bool | Ty::Str | Ty::None => true,
        Ty::Tensor(t) => t.dtype.is_some() && t.sharding.dims.is_empty() && t.shape.iter().all(size),
        Ty::List(t) => is_writable(cx, item, at, t),
        Ty::Dict(k, v) => is_writable(cx, item, at, k) && is_writable(cx, item, at, v),
        Ty::Tuple(ts) => !ts.is_empty() && ts.iter().all(|t| is_writable(cx, item, at, t)),
        _ => false,
    }
}

fn types(cx: &Analysis, item: Item, start: usize, out: &mut Vec<Inlay>) {
    let of_item = cx.of_item(item.id(cx.db));
    let at = |place: u32| start + place as usize;
    // `alone`: what is bound is the one target of its statement.
    let mut target = |e: &Expr, alone: bool| {
        let mut work = vec![e];
        while let Some(e) = work.pop() {
            match &e.kind {
                ExprKind::Name(_) => {
                    if let Some(ty) = one(of_item.at(e.span)) {
                        let writable = alone && is_writable(cx, item, e.span.start, ty);
                        out.push(Inlay { writable, ..inlay(at(e.span.end), Sort::Type, format!(": {ty}")) });
                    }
                }
                ExprKind::Tuple(es) | ExprKind::List(es) => work.extend(es),
                _ => {}
            }
        }
    };
    let stmts = &item.syntax(cx.db).stmts;
    every_stmt(stmts, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, value } if !is_plain(value) => {
            let alone = matches!(&targets[..], [one] if matches!(one.kind, ExprKind::Name(_)));
            targets.iter().for_each(|t| target(t, alone));
        }
        StmtKind::For { target: bound, iter, .. } => {
            // Positions say themselves that they are ints.
            let counts = matches!(&iter.kind, ExprKind::Call { func, .. } if matches!(&func.kind, ExprKind::Name(n) if &**n == "range"));
            if !counts {
                target(bound, false);
            }
        }
        StmtKind::With { items, .. } => items.iter().filter_map(|(_, t)| t.as_ref()).for_each(|t| target(t, false)),
        _ => {}
    });
    for e in every_expr(stmts) {
        if let ExprKind::ListComp { clauses, .. } = &e.kind {
            for clause in clauses {
                target(&clause.target, false);
            }
        }
    }
    for def in cx.defs(item) {
        let all: Vec<_> = of_item.of_function(def.name.span.start).collect();
        let [first, rest @ ..] = &all[..] else { continue };
        let same = |f: &dyn Fn(&tessera_infer::of_item::Instance) -> Ty| rest.iter().all(|i| f(i) == f(first));
        for (i, p) in def.params.iter().enumerate().filter(|(_, p)| p.ty.is_none() && p.kind != ParamKind::Rest) {
            let ty = |inst: &tessera_infer::of_item::Instance| {
                inst.params.get(i).filter(|(n, _)| *n == p.name.text).map_or(Ty::Unknown, |(_, t)| t.clone())
            };
            if let Some(known) = one(&[ty(first)]).filter(|_| same(&ty)) {
                // What a decorator makes of a function may need them open.
                let writable =
                    def.decorators.is_empty() && is_writable(cx, item, p.name.span.start, known) && p.default.is_none();
                out.push(Inlay { writable, ..inlay(at(p.name.span.end), Sort::Type, format!(": {known}")) });
            }
        }
        if def.ret.is_none()
            && same(&|i| i.ret.clone())
            && !matches!(first.ret, Ty::Unknown | Ty::Error | Ty::Never | Ty::None)
        {
            // Before the colon that ends the head.
            let text = item.text(cx.db);
            let head = text.get(def.head.start as usize..def.head.end as usize).unwrap_or("").trim_end();
            let end = def.head.start as usize + head.strip_suffix(':').unwrap_or(head).trim_end().len();
            let writable = def.decorators.is_empty() && is_writable(cx, item, def.name.span.end, &first.ret);
            out.push(Inlay { writable, ..inlay(start + end, Sort::Type, format!(" -> {}", first.ret)) });
        }
    }
}

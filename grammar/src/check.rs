//! Statements that have no meaning where they stand, and those that recovery took apart wrongly.
//! Needs no names, so it is done here.

use crate::{ast::*, layout::Layout};
use std::{collections::BTreeSet, sync::Arc};
use tessera_base::{Code, Diagnostic};

#[derive(Clone, Copy)]
struct Enclosing {
    in_loop: bool,
    in_function: bool,
}

/// Reports `break` and `continue` outside loops and `return` outside functions, and puts
/// [`StmtKind::Error`] in their place.
pub fn misplaced(stmts: &mut [Stmt], diagnostics: &mut Vec<Diagnostic>) {
    walk(stmts, Enclosing { in_loop: false, in_function: false }, diagnostics);
}

fn walk(stmts: &mut [Stmt], place: Enclosing, out: &mut Vec<Diagnostic>) {
    let inside = Enclosing { in_loop: true, ..place };
    for stmt in stmts {
        let span = stmt.span;
        let found = match &mut stmt.kind {
            StmtKind::Def(def) => {
                // Unshared right after parsing, so this copies nothing.
                walk(&mut Arc::make_mut(def).body, Enclosing { in_loop: false, in_function: true }, out);
                continue;
            }
            StmtKind::If { then, otherwise, .. } => {
                walk(then, place, out);
                walk(otherwise, place, out);
                continue;
            }
            StmtKind::For { body, .. } | StmtKind::While { body, .. } => {
                walk(body, inside, out);
                continue;
            }
            StmtKind::With { body, .. } => {
                walk(body, place, out);
                continue;
            }
            StmtKind::Break if !place.in_loop => outside("break", "a loop", "loop"),
            StmtKind::Continue if !place.in_loop => outside("continue", "a loop", "loop"),
            StmtKind::Return(_) if !place.in_function => outside("return", "a function", "function"),
            _ => continue,
        };
        let (message, label) = found;
        out.push(Diagnostic::new(Code::E0009, span, message).here(label));
        stmt.kind = StmtKind::Error;
    }
}

fn outside(word: &str, what: &str, short: &str) -> (String, String) {
    (format!("`{word}` stands outside {what}"), format!("no {short} around it"))
}

/// Puts [`ExprKind::Error`] for what the statements of the given logical lines compute. Recovery
/// cannot tell brackets apart, so the pieces it found there may be put together wrongly.
pub fn forget_garbled(stmts: &mut [Stmt], layout: &Layout, lines: &BTreeSet<usize>) {
    if lines.is_empty() {
        return;
    }
    for stmt in stmts {
        let garbled = lines.contains(&layout.line_of(layout.token_at(stmt.span.start)));
        let forget = |e: &mut Expr| {
            if garbled {
                e.kind = ExprKind::Error;
            }
        };
        match &mut stmt.kind {
            StmtKind::Def(def) => forget_garbled(&mut Arc::make_mut(def).body, layout, lines),
            StmtKind::If { test, then, otherwise } => {
                forget(test);
                forget_garbled(then, layout, lines);
                forget_garbled(otherwise, layout, lines);
            }
            StmtKind::For { iter: e, body, .. } | StmtKind::While { test: e, body } => {
                forget(e);
                forget_garbled(body, layout, lines);
            }
            StmtKind::With { items, body } => {
                items.iter_mut().for_each(|(e, _)| forget(e));
                forget_garbled(body, layout, lines);
            }
            StmtKind::AnnAssign { ty, value, .. } => {
                forget(ty);
                value.iter_mut().for_each(forget);
            }
            StmtKind::Return(value) => value.iter_mut().for_each(forget),
            StmtKind::Expr(e)
            | StmtKind::Assign { value: e, .. }
            | StmtKind::AugAssign { value: e, .. }
            | StmtKind::Assert { test: e, .. } => forget(e),
            _ => {}
        }
    }
}

//! Statements that have no meaning where they stand. Needs no names, so it is done here.

use crate::ast::*;
use std::sync::Arc;
use tessera_base::{Code, Diagnostic};

#[derive(Clone, Copy)]
struct Place {
    in_loop: bool,
    in_function: bool,
}

/// Reports `break` and `continue` outside loops and `return` outside functions, and puts
/// [`StmtKind::Error`] in their place.
pub fn misplaced(stmts: &mut [Stmt], diagnostics: &mut Vec<Diagnostic>) {
    walk(stmts, Place { in_loop: false, in_function: false }, diagnostics);
}

fn walk(stmts: &mut [Stmt], place: Place, out: &mut Vec<Diagnostic>) {
    let inside = Place { in_loop: true, ..place };
    for stmt in stmts {
        let span = stmt.span;
        let found = match &mut stmt.kind {
            StmtKind::Def(def) => {
                // Unshared right after parsing, so this copies nothing.
                walk(&mut Arc::make_mut(def).body, Place { in_loop: false, in_function: true }, out);
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

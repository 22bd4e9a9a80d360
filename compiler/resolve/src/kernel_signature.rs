//! Which parameters of a kernel are its outputs: those that the body writes through an index.

use std::sync::Arc;
use tessera_base::Span;
use tessera_grammar::ast::*;

/// Whether one of the decorators is `@op.kernel`.
pub fn is_kernel(decorators: &[Expr]) -> bool {
    decorators.iter().any(|d| decorator(d) == Some("kernel"))
}

/// `kernel` of `@op.kernel`, `@kernel` and `@op.kernel(…)`.
pub fn decorator(e: &Expr) -> Option<&str> {
    match &e.kind {
        ExprKind::Call { func, .. } => decorator(func),
        ExprKind::Name(n) => Some(n),
        ExprKind::Attr { base, name } if matches!(&base.kind, ExprKind::Name(n) if &**n == "op") => Some(&name.text),
        _ => None,
    }
}

/// The parameters of a kernel that its body writes, ascending.
pub fn outputs(def: &FnDef) -> Vec<u32> {
    if !is_kernel(&def.decorators) {
        return vec![];
    }
    let mut written = vec![];
    targets(&def.body, &mut |e| written.extend(written_name(e)));
    stores(&def.body, &mut |name| written.push(name));
    let is_output = |p: &Param| written.contains(&p.name.text);
    (0..).zip(&def.params).filter(|(_, p)| is_output(p)).map(|(i, _)| i).collect()
}

/// Where the body gives one of the parameters another value as a whole.
pub fn rebound(def: &FnDef, name: &str) -> Option<Span> {
    let mut at = None;
    targets(&def.body, &mut |e| {
        if matches!(&e.kind, ExprKind::Name(n) if &**n == name) {
            at.get_or_insert(e.span);
        }
    });
    at
}

/// The variable that `x[…] = e` writes.
fn written_name(target: &Expr) -> Option<Arc<str>> {
    match &target.kind {
        ExprKind::Index { base, .. } => match &base.kind {
            ExprKind::Name(n) => Some(n.clone()),
            _ => written_name(base),
        },
        _ => None,
    }
}

/// Calls `f` on every target of an assignment.
fn targets<'a>(stmts: &'a [Stmt], f: &mut dyn FnMut(&'a Expr)) {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Assign { targets, .. } => targets.iter().for_each(|t| each_target(t, f)),
            StmtKind::AugAssign { target, .. } | StmtKind::AnnAssign { target, .. } => each_target(target, f),
            StmtKind::For { target, body, .. } => {
                each_target(target, f);
                targets_of_all(&[body], f);
            }
            StmtKind::While { body, .. } | StmtKind::With { body, .. } => targets_of_all(&[body], f),
            StmtKind::If { then, otherwise, .. } => targets_of_all(&[then, otherwise], f),
            _ => {}
        }
    }
}

fn targets_of_all<'a>(blocks: &[&'a Vec<Stmt>], f: &mut dyn FnMut(&'a Expr)) {
    blocks.iter().for_each(|b| targets(b, f));
}

fn each_target<'a>(target: &'a Expr, f: &mut dyn FnMut(&'a Expr)) {
    match &target.kind {
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|t| each_target(t, f)),
        _ => f(target),
    }
}

/// The tensors that `tile.store(x, …)` writes.
fn stores(stmts: &[Stmt], f: &mut dyn FnMut(Arc<str>)) {
    crate::syntax::each_expr(stmts, &mut |e| {
        let ExprKind::Call { func, args } = &e.kind else { return };
        let ExprKind::Attr { base, name } = &func.kind else { return };
        let is_tile = matches!(&base.kind, ExprKind::Name(n) if &**n == "tile");
        if let (true, "store", Some(first)) = (is_tile, &*name.text, args.first())
            && let ExprKind::Name(n) = &first.value.kind
        {
            f(n.clone());
        }
    });
}

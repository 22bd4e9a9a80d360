//! Mutants of typed programs: what compares sizes when a program runs is taken out, so that types are believed.

use tessera_core::ir::*;
use tessera_core::type_assertions::compares;
use tessera_core::walk::each_child_mut;

/// Takes every comparison of a size with a type out of a program.
pub fn without_comparisons(program: &mut Program) {
    for inst in &mut program.insts {
        stmts(&mut inst.body, &inst.locals);
    }
}

fn stmts(body: &mut Vec<TStmt>, locals: &[Variable]) {
    // A number that is kept has others beside it that read it.
    body.retain(|s| matches!(s, TStmt::Set(..)) || !compares(s, locals));
    body.iter_mut().for_each(|s| stmt(s, locals));
}

fn stmt(s: &mut TStmt, locals: &[Variable]) {
    let expr = &mut |e: &mut TExpr| expr(e, locals);
    let stmts = |body: &mut Vec<TStmt>| stmts(body, locals);
    match s {
        TStmt::Expr(e) | TStmt::Set(_, e) | TStmt::SetGlobal(_, e) => expr(e),
        TStmt::Mutate { place, change, .. } => {
            match change {
                TChange::Set(e) | TChange::TensorSet { value: e, .. } => expr(e),
                TChange::Method { args, .. } => args.iter_mut().for_each(&mut *expr),
            }
            for step in &mut place.steps {
                if let TStep::Index(e) | TStep::Key(e) = step {
                    expr(e);
                }
            }
        }
        TStmt::If { test, then, otherwise } => {
            expr(test);
            stmts(then);
            stmts(otherwise);
        }
        TStmt::While { test, body, .. } => {
            expr(test);
            stmts(body);
        }
        TStmt::ForRange { start, stop, step, body, .. } => {
            [start, stop, step].into_iter().for_each(expr);
            stmts(body);
        }
        TStmt::ForEach { iter, body, .. } => {
            expr(iter);
            stmts(body);
        }
        TStmt::Break | TStmt::Continue => {}
        TStmt::Return(e) => e.iter_mut().for_each(&mut *expr),
        TStmt::Assert { test, .. } => expr(test),
        TStmt::WithPolicy { body, .. } | TStmt::WithHints { body, .. } => stmts(body),
    }
}

fn expr(e: &mut TExpr, locals: &[Variable]) {
    match &mut e.kind {
        TKind::Op { checks, .. } | TKind::TensorIndex { checks, .. } => checks.clear(),
        // Rank and element type are still looked at.
        TKind::Check { dims, .. } => dims.iter_mut().for_each(|d| *d = None),
        TKind::Block { stmts: body, .. } => stmts(body, locals),
        _ => {}
    }
    each_child_mut(e, &mut |e| expr(e, locals));
}

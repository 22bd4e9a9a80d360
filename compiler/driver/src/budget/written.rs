//! Values of arguments that the text says: they are written out at the call, or where a variable that is handed over gets its only
//! value.

use crate::ask::KnownCall;
use tessera_core::ir::{FnInst, Program, TExpr, TKind, TLvalue, TRoot, TStmt};
use tessera_core::ty::Ty;
use tessera_core::walk::each_stmt;

/// A function that calls, and what is known of it.
pub struct Caller<'p> {
    pub program: &'p Program,
    pub f: &'p FnInst,
    pub at: &'p KnownCall,
}

/// What is written out, as `--with` takes it.
pub fn written_out(arg: &TExpr, from: &Caller) -> Option<String> {
    if let TKind::List(items) = &arg.kind {
        return Some(items.len().to_string());
    }
    if let Some(text) = literal(arg) {
        return Some(text);
    }
    // Of a list in a variable others may have changed the length.
    if !matches!(arg.ty, Ty::Bool | Ty::Str) {
        return None;
    }
    match arg.kind {
        TKind::Local(l) if from.f.params.contains(&l) => {
            let name = &from.f.locals.get(l.0 as usize)?.name;
            let (_, text) = from.at.with.iter().find(|(n, _)| **n == **name)?;
            values(&from.f.body, TRoot::Local(l)).is_empty().then(|| text.clone())
        }
        TKind::Local(l) if !from.f.captures.contains(&l) => only(&values(&from.f.body, TRoot::Local(l))),
        TKind::Global(g) => {
            let all = from.program.insts.iter().flat_map(|f| values(&f.body, TRoot::Global(g)));
            only(&all.collect::<Vec<_>>())
        }
        _ => None,
    }
}

fn literal(e: &TExpr) -> Option<String> {
    match &e.kind {
        TKind::Bool(b) => Some(if *b { "True" } else { "False" }.into()),
        TKind::Str(text) => Some(text.to_string()),
        _ => None,
    }
}

fn only(all: &[Option<&TExpr>]) -> Option<String> {
    if let [Some(one)] = all { literal(one) } else { None }
}

/// What a variable gets, a value for each place that gives it one; `None` where that is no assignment.
fn values(body: &[TStmt], root: TRoot) -> Vec<Option<&TExpr>> {
    let mut out = vec![];
    each_stmt(body, &mut |s| match s {
        TStmt::Set(l, e) if root == TRoot::Local(*l) => out.push(Some(e)),
        TStmt::SetGlobal(g, e) if root == TRoot::Global(*g) => out.push(Some(e)),
        TStmt::Mutate { place: TLvalue { root: changed, .. }, .. } if root == *changed => out.push(None),
        TStmt::ForRange { var, .. } | TStmt::ForEach { var, .. } if root == TRoot::Local(*var) => out.push(None),
        _ => {}
    });
    out
}

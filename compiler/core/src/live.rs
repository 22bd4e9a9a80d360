//! Which variables are read later: liveness over structured statements.

use crate::ir::*;
use crate::walk::{Var, as_var, each_expr, each_part};
use std::collections::BTreeSet;

pub type Live = BTreeSet<Var>;

/// Variables live where loops are left and continued.
#[derive(Clone, Default)]
pub struct Targets {
    pub at_break: Live,
    pub at_continue: Live,
}

/// For each statement the variables live before it, given those live after the last; the last
/// entry is `after` itself.
pub fn before_each(stmts: &[TStmt], after: &Live, targets: &Targets) -> Vec<Live> {
    let mut out = vec![after.clone()];
    for s in stmts.iter().rev() {
        let live = before(s, &out[out.len() - 1], targets);
        out.push(live);
    }
    out.reverse();
    out
}

fn block(stmts: &[TStmt], after: &Live, targets: &Targets) -> Live {
    stmts.iter().rev().fold(after.clone(), |live, s| before(s, &live, targets))
}

/// Variables live at the start of a loop's body, given those live after the loop.
pub fn loop_targets(s: &TStmt, after: &Live) -> Targets {
    let (head, body, var) = match s {
        TStmt::While { test, body, .. } => (Some(test), body, None),
        TStmt::ForRange { body, var, .. } | TStmt::ForEach { body, var, .. } => (None, body, Some(Var::Local(*var))),
        _ => return Targets::default(),
    };
    let enter = |next: &Live| {
        let mut live = next.clone();
        live.extend(after.iter().copied());
        head.into_iter().for_each(|t| read(t, &mut live));
        live
    };
    // One round reaches the fixed point: a body takes away what it sets and adds what it reads, of which the next turn adds
    // nothing new.
    let first = Targets { at_break: after.clone(), at_continue: enter(after) };
    let mut live = block(body, &first.at_continue, &first);
    if let Some(v) = var {
        live.remove(&v);
    }
    Targets { at_continue: enter(&live), ..first }
}

fn read(e: &TExpr, live: &mut Live) {
    each_expr(e, &mut |e| live.extend(as_var(e)));
}

fn before(s: &TStmt, after: &Live, targets: &Targets) -> Live {
    let mut live = match s {
        TStmt::Set(l, _) => without(after, Var::Local(*l)),
        TStmt::SetGlobal(g, _) => without(after, Var::Global(*g)),
        TStmt::Mutate { place, change, .. } => {
            let mut live = after.clone();
            // Only a whole assignment gives the variable a new value without reading the old one.
            if place.steps.is_empty() && matches!(change, TChange::Set(_)) {
                live.remove(&place.root.into());
            } else {
                live.insert(place.root.into());
            }
            live
        }
        TStmt::If { then, otherwise, .. } => {
            let mut live = block(then, after, targets);
            live.extend(block(otherwise, after, targets));
            live
        }
        TStmt::While { .. } => loop_targets(s, after).at_continue,
        TStmt::ForRange { .. } | TStmt::ForEach { .. } => loop_targets(s, after).at_continue,
        TStmt::Break => targets.at_break.clone(),
        TStmt::Continue => targets.at_continue.clone(),
        TStmt::Return(_) => Live::new(),
        TStmt::WithPolicy { body, .. } | TStmt::WithHints { body, .. } => return block(body, after, targets),
        TStmt::Expr(_) | TStmt::Assert { .. } => after.clone(),
    };
    each_part(s, &mut |e| read(e, &mut live), &mut |_| {});
    live
}

fn without(live: &Live, v: Var) -> Live {
    let mut live = live.clone();
    live.remove(&v);
    live
}

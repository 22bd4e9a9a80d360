//! Loops: the body is checked until the types at its head are stable.

use super::cx::{Cx, LoopFrame, read};
use super::env::{Bad, Binding, Changes};
use super::exprs::decided;
use super::flow::{Path, Wide};
use super::scalars::WHILE;
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::{Size, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::ty::{StructTy, Ty};
use tessera_grammar::ast::{Expr, ExprKind, Stmt};

/// How often a loop runs, as far as it is known.
#[derive(Clone, Copy)]
pub struct Times {
    /// At least once.
    pub once: bool,
    /// It ends only by `break` or `return`.
    pub endless: bool,
}

/// Types become stable in two passes, or three; then sizes are given up.
const PASSES_MAX: usize = 5;
/// Loops inside each other that are checked in several passes: each doubles the work.
const DEPTH_EXACT: u32 = 5;

impl Cx<'_> {
    pub fn for_stmt(&mut self, target: &Expr, iter: &Expr, body: &[Stmt], span: Span) {
        let seq = self.seq(iter);
        let mut changed = BTreeSet::new();
        tessera_resolve::syntax::changed(body, &mut changed);
        tessera_resolve::syntax::target_names(target, &mut changed);
        let head = Span { end: iter.span.end.max(span.start), ..span };
        self.run(seq, head, &changed, &mut |cx, item| {
            let item = TExpr { span: iter.span, ..item };
            cx.assign_to(target, item);
            cx.stmts(body);
        });
    }

    pub fn while_stmt(&mut self, test: &Expr, body: &[Stmt], span: Span) {
        let mut changed = BTreeSet::new();
        tessera_resolve::syntax::changed(body, &mut changed);
        let endless = matches!(test.kind, ExprKind::Bool(true));
        self.host(WHILE, span);
        let mut condition = None;
        let mut never = false;
        let stmts = self.looped(&changed, Times { once: endless, endless }, &mut |cx| {
            let (before, value) = cx.block(|cx| {
                let value = cx.expr(test);
                cx.truth(value)
            });
            never = decided(test, &value) == Some(false);
            let value = super::cx::wrap(before, value);
            cx.assume_condition(&value, true);
            condition = Some(value);
            if !never {
                cx.stmts(body);
            }
        });
        if never {
            condition.into_iter().for_each(|c| self.emit_decided(c));
            return;
        }
        if let Some(test) = condition
            && !test.ty.is_error()
        {
            if !super::path_conditions::has_break(body) {
                self.assume_condition(&test, false);
            }
            self.out.push(TStmt::While { test, body: stmts, span });
        }
    }

    pub fn break_stmt(&mut self, continues: bool) {
        if self.alive
            && let Some(mark) = self.loops.last().map(|f| f.mark)
        {
            let changes = self.env.changes(mark);
            if let Some(frame) = self.loops.last_mut() {
                if continues { frame.continues.push(changes) } else { frame.breaks.push(changes) }
            }
            if continues {
                self.reshard_as_at_head();
            }
        }
        self.out.push(if continues { TStmt::Continue } else { TStmt::Break });
        self.alive = false;
    }

    /// Checks the body of a loop until the types at its head are stable, and goes on after the
    /// loop. `changed` holds every name that the body may change.
    pub fn looped(
        &mut self,
        changed: &BTreeSet<Arc<str>>,
        times: Times,
        body: &mut dyn FnMut(&mut Self),
    ) -> Vec<TStmt> {
        let was_alive = self.alive;
        self.loop_depth += 1;
        let exact = self.loop_depth <= DEPTH_EXACT;
        let before = self.bindings(changed);
        let mut wide = Wide::default();
        for name in changed {
            if let Some(binding) = self.env.get(name).cloned()
                && binding.bad.is_none()
            {
                self.keep_sizes(binding.slot);
                let ty = self.widen_before(&binding.ty, name, exact, &mut wide);
                if ty != binding.ty {
                    self.env.rebind(name, Binding { ty, ..binding });
                }
            }
        }
        let facts = self.sizes.facts.clone();
        let mut pass = 0;
        let stmts = loop {
            let (diagnostics, requests) = (self.diagnostics.len(), self.requests.len());
            let (said, untyped) = (self.said.clone(), self.untyped);
            let (host, checks, notes) = (self.host.clone(), self.sizes.checks.len(), self.sizes.notes.len());
            let mark = self.env.mark();
            self.alive = true;
            let heads = self.bindings(changed);
            self.loops.push(LoopFrame { mark, breaks: vec![], continues: vec![], heads });
            let (stmts, ()) = self.block(|cx| {
                changed.iter().for_each(|name| cx.name_int(name));
                cx.own_keys(|cx| body(cx));
                if cx.alive {
                    cx.reshard_as_at_head();
                }
            });
            let frame = self.loops.pop();
            let (breaks, continues, heads) = frame.map_or_else(Default::default, |f| (f.breaks, f.continues, f.heads));
            let end = self.alive;
            let changes = self.env.rollback(mark);
            // Paths meet under what all of them know.
            self.sizes.facts = facts.clone();
            let back = self.back_edge(changes, end, continues, mark);
            let again = match &back {
                Some(back) => self.widen_heads(back, &mut wide, pass + 1 >= PASSES_MAX),
                None => false,
            };
            pass += 1;
            if again && pass < PASSES_MAX {
                self.diagnostics.truncate(diagnostics);
                self.requests.truncate(requests);
                self.host = host;
                self.said = said;
                self.untyped = untyped;
                self.sizes.checks.truncate(checks);
                self.sizes.notes.truncate(notes);
                continue;
            }
            let mut paths: Vec<Path> = breaks.into_iter().map(|changes| Path { changes, alive: true }).collect();
            if !times.endless {
                if !times.once {
                    paths.push(Path { changes: Changes::new(), alive: true });
                }
                if let Some(back) = back {
                    paths.push(Path { changes: self.below_head(back), alive: true });
                }
            }
            self.meet(paths);
            self.reshard_as(&before, &heads);
            break stmts;
        };
        // A name that no path through the loop changes has been widened all the same.
        changed.iter().for_each(|name| self.name_int(name));
        self.loop_depth -= 1;
        self.alive &= was_alive;
        stmts
    }

    /// The number that an int is from here on gets a symbol where paths that meet gave it several: annotations name it
    /// and conditions say things about it. Each pass over a loop has its own, so that what keeps it from turn to turn is
    /// seen to vary.
    pub fn name_int(&mut self, name: &Arc<str>) {
        let Some(binding) = self.env.get(name).cloned().filter(|b| b.bad.is_none() && b.ty == Ty::int()) else {
            return;
        };
        let symbol = self.sizes.fresh_int_var(name);
        let ty = Ty::Int(Some(Size::var(symbol.clone())));
        self.size_sources.insert(symbol, (read(binding.slot, ty.clone(), binding.span), false));
        self.env.rebind(name, Binding { ty, ..binding });
    }

    /// The state at the end of the body over all paths that reach it.
    fn back_edge(&mut self, changes: Changes, end: bool, continues: Vec<Changes>, mark: usize) -> Option<Changes> {
        let mut paths: Vec<Path> = continues.into_iter().map(|changes| Path { changes, alive: true }).collect();
        paths.push(Path { changes, alive: end });
        self.join_shardings_at_head(&mut paths);
        self.meet(paths);
        let back = self.env.rollback(mark);
        let reached = self.alive;
        self.alive = true;
        reached.then_some(back)
    }

    /// Makes the types at the head hold at the end of the body too. Says whether one changed.
    fn widen_heads(&mut self, back: &Changes, wide: &mut Wide, last: bool) -> bool {
        let mut again = false;
        for (&var, end) in back {
            let (Some(head), Some(end)) = (self.env.at(var).cloned(), end) else { continue };
            if head.bad.is_some() {
                continue;
            }
            let name = self.env.name(var).clone();
            let joined = match &end.bad {
                Some(_) => None,
                None if end.slot != head.slot && end.ty != Ty::Error => None,
                None => {
                    wide.next();
                    self.widen_head(&head.ty, &end.ty, &name, wide)
                }
            };
            let new = match joined {
                Some(ty) if ty == head.ty => continue,
                Some(ty) => Binding { ty, ..head },
                None => Binding { bad: Some(Bad::Conflict(end.ty.clone(), end.span)), ..head },
            };
            again |= !last;
            self.env.set(var, Some(new));
        }
        again
    }

    /// What the end of the body says where the head does not: the head holds for what both know.
    fn below_head(&mut self, back: Changes) -> Changes {
        back.into_iter().filter(|(var, _)| self.env.at(*var).is_none()).collect()
    }

    /// The type of a variable that a loop changes, before the first pass.
    fn widen_before(&mut self, ty: &Ty, name: &str, exact: bool, wide: &mut Wide) -> Ty {
        match ty {
            Ty::Int(_) => Ty::Int(None),
            Ty::Tensor(t) if !exact => {
                let shape = t
                    .shape
                    .iter()
                    .map(|_| {
                        let var = self.sizes.fresh_var(name);
                        wide.vars.insert(var.clone());
                        Size::var(var)
                    })
                    .collect();
                Ty::Tensor(TensorType { shape, ..t.clone() })
            }
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.widen_before(t, name, exact, wide)).collect()),
            Ty::Struct(s) => {
                let fields = s.fields.iter().map(|(n, t)| (n.clone(), self.widen_before(t, n, exact, wide))).collect();
                Ty::Struct(Arc::new(StructTy { fields, ..StructTy::clone(s) }))
            }
            other => other.clone(),
        }
    }
}

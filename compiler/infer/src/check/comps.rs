//! List comprehensions: loops that append.

use super::cx::{Cx, error_at, read};
use super::env::{Binding, Slot};
use super::types::erase;
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::Span;
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{CompClause, Expr};
use tessera_resolve::syntax::target_names;

impl Cx<'_> {
    pub fn comprehension(&mut self, element: &Expr, clauses: &[CompClause], span: Span) -> TExpr {
        self.scoped(|cx| cx.comprehension_here((element, None), clauses, span))
    }

    /// The same, where the type of the elements is declared.
    pub fn comprehension_of(&mut self, element: &Expr, declared: &Ty, clauses: &[CompClause], span: Span) -> TExpr {
        self.scoped(|cx| cx.comprehension_here((element, Some(declared)), clauses, span))
    }

    fn comprehension_here(&mut self, element: Element, clauses: &[CompClause], span: Span) -> TExpr {
        let mut names = BTreeSet::new();
        clauses.iter().for_each(|c| target_names(&c.target, &mut names));
        // The targets belong to the comprehension: what they hide comes back afterwards.
        let hidden: Vec<(Arc<str>, Option<Binding>)> =
            names.into_iter().map(|n| (n.clone(), self.env.get(&n).cloned())).collect();
        let was_alive = self.alive;
        let list = self.collected(span, |cx, yield_| cx.clause(element, clauses, span, yield_));
        for (name, binding) in hidden {
            let var = self.env.var(&name);
            self.env.set(var, binding);
        }
        self.alive = was_alive;
        list
    }

    /// The list of the values that `run` gives one by one, in the order in which it computes them. They agree on one
    /// type, as those of a list that is written down do.
    pub fn collected(&mut self, span: Span, run: impl FnOnce(&mut Self, &mut dyn FnMut(&mut Self, TExpr))) -> TExpr {
        let first = self.sizes.next_id();
        let list = self.temp("list", Ty::List(Box::new(Ty::Unknown)), span);
        let empty = TExpr { kind: TKind::List(vec![]), ty: Ty::List(Box::new(Ty::Unknown)), span };
        let (mut stmts, ()) = self.block(|cx| run(cx, &mut |cx, item| cx.append(list, item, span)));
        let mut slots = vec![];
        appended(&mut stmts, list, &mut slots);
        let mut items = vec![];
        for slot in &slots {
            // What the place of the value knows of sizes is gone where the list is.
            let ty = match self.escape(&slot.ty, first, "n") {
                Ty::Int(_) => Ty::int(),
                other => other,
            };
            items.push(TExpr { ty, ..TExpr::clone(slot) });
        }
        if items.iter().any(|i| i.ty.is_error() || i.ty == Ty::Never) {
            self.out.extend(stmts);
            return error_at(span);
        }
        let made = self.list_of(items, span);
        if let TKind::List(items) = made.kind {
            // What stays as it is keeps its own type, in which this turn's sizes have their names.
            let other = |(slot, item): &(&mut TExpr, TExpr)| erase(&slot.ty) != erase(&item.ty);
            slots.into_iter().zip(items).filter(other).for_each(|(slot, item)| *slot = item);
        }
        self.out.push(TStmt::Set(list, empty));
        self.out.extend(stmts);
        if made.ty.is_error() {
            return error_at(span);
        }
        self.refine_slot(Slot::Local(list), &made.ty);
        read(Slot::Local(list), made.ty, span)
    }

    fn clause(
        &mut self,
        element: Element,
        clauses: &[CompClause],
        span: Span,
        yield_: &mut dyn FnMut(&mut Self, TExpr),
    ) {
        let [clause, rest @ ..] = clauses else {
            let value = match element {
                (e, None) => self.expr(e),
                (e, Some(declared)) => {
                    let value = self.expr_for(e, declared);
                    self.as_element(value, declared)
                }
            };
            yield_(self, value);
            return;
        };
        let seq = self.seq(&clause.iter);
        let at = clause.iter.span;
        self.run(seq, at, &BTreeSet::new(), &mut |cx, item| {
            cx.bind_local_target(&clause.target, item);
            cx.tests(element, &clause.tests, rest, span, yield_);
        });
    }

    fn tests(
        &mut self,
        element: Element,
        tests: &[Expr],
        rest: &[CompClause],
        span: Span,
        yield_: &mut dyn FnMut(&mut Self, TExpr),
    ) {
        let [test, more @ ..] = tests else { return self.clause(element, rest, span, yield_) };
        let condition = self.expr(test);
        let condition = self.truth(condition);
        let (then, ()) = self.block_where(&condition, true, |cx| cx.tests(element, more, rest, span, yield_));
        if !condition.ty.is_error() {
            self.out.push(TStmt::If { test: condition, then, otherwise: vec![] });
        }
    }
}

/// What is computed in each turn, with the type that is declared for it.
type Element<'a> = (&'a Expr, Option<&'a Ty>);

/// The values that statements append to a list, in the order of the text.
fn appended<'a>(stmts: &'a mut [TStmt], list: LocalId, out: &mut Vec<&'a mut TExpr>) {
    for s in stmts {
        match s {
            TStmt::Mutate { place, change: TChange::Method { args, .. }, .. } if place.root == TRoot::Local(list) => {
                out.extend(args)
            }
            TStmt::If { then, otherwise, .. } => {
                appended(then, list, out);
                appended(otherwise, list, out);
            }
            TStmt::While { body, .. }
            | TStmt::ForRange { body, .. }
            | TStmt::ForEach { body, .. }
            | TStmt::WithPolicy { body, .. }
            | TStmt::WithHints { body, .. } => appended(body, list, out),
            _ => {}
        }
    }
}

//! List comprehensions: loops that append.

use super::cx::{Cx, error_at, read};
use super::env::{Binding, Slot};
use super::facts::target_names;
use crate::thir::*;
use crate::ty::Ty;
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::Span;
use tessera_grammar::ast::{CompClause, Expr};

impl Cx<'_> {
    pub fn comprehension(&mut self, element: &Expr, clauses: &[CompClause], span: Span) -> TExpr {
        self.scoped(|cx| cx.comprehension_here(element, clauses, span))
    }

    fn comprehension_here(&mut self, element: &Expr, clauses: &[CompClause], span: Span) -> TExpr {
        let mut names = BTreeSet::new();
        clauses.iter().for_each(|c| target_names(&c.target, &mut names));
        // The targets belong to the comprehension: what they hide comes back afterwards.
        let hidden: Vec<(Arc<str>, Option<Binding>)> =
            names.into_iter().map(|n| (n.clone(), self.env.get(&n).cloned())).collect();
        let was_alive = self.alive;
        let first = self.sizes.next_id();
        let list = self.temp("list", Ty::List(Box::new(Ty::Unknown)), span);
        let empty = TExpr { kind: TKind::List(vec![]), ty: Ty::List(Box::new(Ty::Unknown)), span };
        self.out.push(TStmt::Set(list, empty));
        let mut found: Option<Ty> = None;
        self.clause(element, clauses, span, &mut |cx, item| {
            found = Some(item.ty.clone());
            cx.append(list, item, span);
        });
        for (name, binding) in hidden {
            let var = self.env.var(&name);
            self.env.set(var, binding);
        }
        self.alive = was_alive;
        match found {
            Some(Ty::Error | Ty::Never) | None => error_at(span),
            Some(ty) => {
                let ty = match self.escape(&ty, first, "n") {
                    Ty::Int(_) => Ty::int(),
                    other => other,
                };
                let ty = Ty::List(Box::new(ty));
                self.refine_slot(Slot::Local(list), &ty);
                read(Slot::Local(list), ty, span)
            }
        }
    }

    fn clause(&mut self, element: &Expr, clauses: &[CompClause], span: Span, yield_: &mut dyn FnMut(&mut Self, TExpr)) {
        let [clause, rest @ ..] = clauses else {
            let value = self.expr(element);
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
        element: &Expr,
        tests: &[Expr],
        rest: &[CompClause],
        span: Span,
        yield_: &mut dyn FnMut(&mut Self, TExpr),
    ) {
        let [test, more @ ..] = tests else { return self.clause(element, rest, span, yield_) };
        let condition = self.expr(test);
        let condition = self.truth(condition);
        let (then, _) = self.block(|cx| cx.tests(element, more, rest, span, yield_));
        if !condition.ty.is_error() {
            self.out.push(TStmt::If { test: condition, then, otherwise: vec![] });
        }
    }
}

//! Statements.

use super::args::{Slot, Value};
use super::block_directives::Rest;
use super::cx::{Cx, error_at};
use super::env::Changes;
use super::exprs::decided;
use super::flow::Path;
use std::collections::BTreeSet;
use tessera_base::{Code, Diagnostic, SizeVar, Span};
use tessera_core::assertions::known_text;
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{CmpOp, Expr, ExprKind, Stmt, StmtKind};
use tessera_types::unify::Role;

impl Cx<'_> {
    /// The statements of one block.
    pub fn stmts(&mut self, stmts: &[Stmt]) {
        let depth = self.rest.len();
        for stmt in stmts {
            // After a branch that the types decided, the rest is code for other types.
            if !self.alive && self.decided_end {
                break;
            }
            self.stmt(stmt);
        }
        self.close_rest(depth);
    }

    pub fn stmt(&mut self, stmt: &Stmt) {
        match self.met.enter() {
            true => {
                self.sizes.facts.settle();
                self.own_keys(|cx| cx.stmt_here(stmt));
            }
            false => self.error(Code::E0901, stmt.span, "the program is nested too deeply"),
        }
        self.met.leave();
    }

    fn stmt_here(&mut self, stmt: &Stmt) {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Def(def) => self.nested_def(def, span.item),
            StmtKind::Struct(def) => {
                let d = Diagnostic::new(Code::E0215, def.name.span, "a struct is defined at the top level of a file")
                    .help("move it out of the block");
                self.report(d);
            }
            StmtKind::Import { path, .. } | StmtKind::FromImport { path, .. } => {
                if !self.is_module() || !self.loops.is_empty() || self.nested > 0 {
                    let d = Diagnostic::new(
                        Code::E0102,
                        path.first().map_or(span, |n| n.span),
                        "imports stand at the top level of a file",
                    )
                    .help("move it to the start of the file");
                    self.report(d);
                    return;
                }
                self.import(stmt);
            }
            StmtKind::Expr(e) => self.expr_stmt(e),
            StmtKind::Assign { targets, value } => self.assign_stmt(targets, value),
            StmtKind::AnnAssign { target, ty, value } => self.annotated(target, ty, value.as_ref(), span),
            StmtKind::AugAssign { op, op_span, target, value } => self.augmented(*op, *op_span, target, value, span),
            StmtKind::If { test, then, otherwise } => self.if_stmt(test, then, otherwise),
            StmtKind::For { target, iter, body } => {
                self.nested += 1;
                self.for_stmt(target, iter, body, span);
                self.nested -= 1;
            }
            StmtKind::While { test, body } => {
                self.nested += 1;
                self.while_stmt(test, body, span);
                self.nested -= 1;
            }
            StmtKind::Break => self.break_stmt(false),
            StmtKind::Continue => self.break_stmt(true),
            StmtKind::Pass | StmtKind::Error => {}
            StmtKind::Return(value) => self.return_stmt(value.as_ref(), span),
            StmtKind::Assert { test, message } => self.assert_stmt(test, message.as_ref(), span),
            StmtKind::With { items, body } => self.with_stmt(items, body),
        }
    }

    fn expr_stmt(&mut self, e: &Expr) {
        // A docstring.
        if matches!(e.kind, ExprKind::Str(_)) && !self.is_module() {
            return;
        }
        if let Some(setting) = self.numerics_call(e) {
            if let Some(setting) = setting {
                let before = self.numerics();
                self.rest.push(Rest::Numerics { start: self.out.len(), set: before.with(setting), before });
                self.set_numerics(before.with(setting));
            }
            return;
        }
        if self.directive_stmt(e) {
            return;
        }
        let value = self.expr_alone(e);
        self.last = Some(value.ty.clone());
        if value.ty == Ty::Never {
            self.emit_effect(value);
            self.alive = false;
            return;
        }
        if value.ty.is_error() {
            if self.alive && !self.guessing {
                self.untyped.get_or_insert(e.span);
            }
            return;
        }
        // What stands at a prompt is shown.
        if self.file.prompt(self.db).is_none()
            && let Some(d) = crate::careless::without_effect(e, &value)
        {
            self.report(d);
        }
        self.emit_effect(value);
    }

    /// A value that nobody takes: only what it does is kept.
    pub fn emit_effect(&mut self, value: TExpr) {
        match value.kind {
            TKind::Block { stmts, value } => {
                self.out.extend(stmts);
                self.emit_effect(*value);
            }
            TKind::None => {}
            _ => self.out.push(TStmt::Expr(value)),
        }
    }

    /// A condition that types decided: only what is computed before it is kept.
    pub fn emit_decided(&mut self, condition: TExpr) {
        match condition.kind {
            TKind::Block { stmts, value } => {
                self.out.extend(stmts);
                self.emit_decided(*value);
            }
            _ if condition.is_certain() => {}
            _ => self.out.push(TStmt::Expr(condition)),
        }
    }

    fn if_stmt(&mut self, test: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        let condition = self.expr(test);
        let condition = self.truth(condition);
        if let Some(b) = self.decided_here(test, &condition) {
            self.emit_decided(condition);
            self.stmts(if b { then } else { otherwise });
            self.decided_end |= !self.alive;
            return;
        }
        self.nested += 1;
        let was_alive = self.alive;
        let before = self.sizes.facts.clone();
        let changed = self.before_branches([then, otherwise]);
        let sources = self.size_sources.clone();
        let mark = self.env.mark();
        self.assume_condition(&condition, true);
        let (then_out, then_told) = self.telling_block(then);
        let then_path = Path { alive: self.alive, changes: self.env.rollback(mark) };
        let then_facts = std::mem::replace(&mut self.sizes.facts, before.clone());
        let then_sources = std::mem::replace(&mut self.size_sources, sources.clone());
        self.alive = was_alive;
        self.assume_condition(&condition, false);
        let (else_out, else_told) = self.telling_block(otherwise);
        let else_path = Path { alive: self.alive, changes: self.env.rollback(mark) };
        // What goes on after one branch only knows what that one does.
        self.sizes.facts = match (then_path.alive, else_path.alive) {
            (true, false) => then_facts,
            (false, true) => std::mem::take(&mut self.sizes.facts),
            _ => before,
        };
        // What is told on every path that comes here is told.
        match (then_path.alive, else_path.alive) {
            (true, true) => self.mark_assigned_too(then_told.intersection(&else_told)),
            (true, false) => self.mark_assigned_too(&then_told),
            (false, true) => self.mark_assigned_too(&else_told),
            (false, false) => {}
        }
        let else_sources = std::mem::take(&mut self.size_sources);
        self.size_sources = match (then_path.alive, else_path.alive) {
            (true, false) => then_sources,
            (false, true) => else_sources,
            _ => Self::sources_after(sources, [then_sources, else_sources], &changed),
        };
        self.nested -= 1;
        let paths = match &condition.kind {
            // `if True:` is a way to switch code on and off.
            TKind::Bool(true) => vec![then_path, Path { changes: Changes::new(), alive: false }],
            TKind::Bool(false) => vec![else_path, Path { changes: Changes::new(), alive: false }],
            _ => vec![then_path, else_path],
        };
        self.meet(paths);
        self.alive &= was_alive;
        if !condition.ty.is_error() {
            self.out.push(TStmt::If { test: condition, then: then_out, otherwise: else_out });
        }
    }

    /// Statements as a block, with the sizes that are told at its end.
    fn telling_block(&mut self, stmts: &[Stmt]) -> (Vec<TStmt>, BTreeSet<SizeVar>) {
        self.block(|cx| {
            cx.stmts(stmts);
            cx.assigned_here()
        })
    }

    fn return_stmt(&mut self, value: Option<&Expr>, span: Span) {
        let declared = self.func.as_ref().and_then(|f| f.ret.clone());
        let was_alive = self.alive;
        let value = value.map(|v| match declared.and_then(|d| self.functions_of(v, &d)) {
            Some(value) => value,
            None => self.expr(v),
        });
        if was_alive && !self.alive {
            // What it would give is never there.
            return;
        }
        let at = value.as_ref().map_or(span, |v| v.span);
        let Some(f) = &self.func else { return };
        let (declared, ret_span, name) = (f.ret.clone(), f.ret_span, f.f.sig.name.clone());
        let value = match (declared, value) {
            (Some(declared), value) => {
                let value = value.unwrap_or_else(|| super::cx::none(span));
                let role = Role::Returned { function: name.to_string() };
                // A size that only the result names is what the value says, here and at no other `return`.
                let facts = self.sizes.facts.clone();
                let own = tessera_core::sizes::vars_of(&declared).into_iter();
                let mut own = own.filter(|v| !v.rigid && !self.size_sources.contains_key(v)).collect();
                self.sizes.told_by(&declared, &value.ty, &mut own);
                let value = self.expect(value, &declared, "result", ret_span, role);
                self.sizes.facts = facts;
                Some(value)
            }
            (None, value) => value,
        };
        let facts = self.sizes.facts.clone();
        let value = value.map(|v| self.given_as_erased(v));
        self.sizes.facts = facts;
        let ty = value.as_ref().map_or(Ty::None, |v| v.ty.clone());
        if (self.alive || ty == Ty::Error)
            && let Some(f) = &mut self.func
        {
            f.returns.push((ty, at));
        }
        if ty_is_known(&value) {
            self.out.push(TStmt::Return(value));
        }
        self.alive = false;
    }

    fn assert_stmt(&mut self, test_expr: &Expr, message: Option<&Expr>, span: Span) {
        let test = self.expr(test_expr);
        let test = self.truth(test);
        let (before, message) = self.block_where(&test, false, |cx| {
            message.map(|m| {
                let value = cx.expr(m);
                cx.as_text(value)
            })
        });
        let message = message.map(|m| super::cx::wrap(before, m));
        if test.ty.is_error() {
            return;
        }
        let possible = !self.sizes.facts.contradictory();
        self.assume_condition(&test, true);
        let known = self.decided_here(test_expr, &test);
        if known == Some(false) && self.nested == 0 && self.loop_depth == 0 && self.alive {
            let why = message.as_ref().and_then(known_text).unwrap_or_else(|| "this never holds".into());
            self.alive = false;
            self.decided_end = true;
            // No result: what is done with it is no mistake of its own.
            if let Some(f) = &mut self.func {
                f.returns.push((Ty::Error, span));
            }
            let by =
                if decided(test_expr, &test).is_some() { "the types decide" } else { "the numbers of the call decide" };
            return self.report(Diagnostic::new(Code::E0705, span, why).note(format!("{by} it")));
        }
        if let TKind::Bool(false) = test.kind {
            self.alive = false;
        } else if possible && self.sizes.facts.contradictory() {
            self.never_holds(test_expr.span);
        }
        self.out.push(TStmt::Assert { test, message: message.filter(|m| !m.ty.is_error()), span });
    }

    /// `sys.advise(holds, message)`: W0102 where the numbers that are known here make it false. It does nothing when
    /// the program runs.
    pub fn advise(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let given = self.match_params("sys.advise", &Slot::built_in("sys.advise"), values, span, None);
        let Some([Some(holds), Some(message)]) = given.as_deref() else { return error_at(span) };
        let holds = self.truth(holds.clone());
        if holds.ty.is_error() {
            return error_at(span);
        }
        if message.ty != Ty::Str {
            let text = format!("the message is a `str`, and this is `{}`", message.ty);
            return self.fail(Diagnostic::new(Code::E0204, message.span, text));
        }
        let known = match &holds.kind {
            TKind::Bool(b) => Some(*b),
            TKind::Compare { op, left, right } => match (left.ty.const_int(), right.ty.const_int()) {
                (Some(a), Some(b)) => super::compare::int_holds(*op, a, b),
                _ => None,
            },
            _ => None,
        };
        let comes_here = self.nested == 0 && self.loop_depth == 0 && self.alive;
        if known == Some(false)
            && comes_here
            && let Some(text) = known_text(message)
        {
            self.report(Diagnostic::new(Code::W0102, span, text));
        }
        super::cx::none(span)
    }

    /// What a condition is that the types decide, or the numbers that a template was called with.
    pub fn decided_here(&self, test: &Expr, condition: &TExpr) -> Option<bool> {
        decided(test, condition).or_else(|| match &self.data {
            Some(d) if d.args.is_some() => decided_by_numbers(condition),
            _ => None,
        })
    }

    /// A value as a string.
    pub fn as_text(&mut self, value: TExpr) -> TExpr {
        match &value.ty {
            Ty::Str | Ty::Error | Ty::Never => value,
            _ => {
                self.reads_data(&value);
                let span = value.span;
                TExpr { kind: TKind::Convert { to: Convert::Str, value: Box::new(value) }, ty: Ty::Str, span }
            }
        }
    }

    fn with_stmt(&mut self, items: &[(Expr, Option<Expr>)], body: &[Stmt]) {
        let before = self.numerics();
        for (e, target) in items {
            match self.numerics_call(e) {
                Some(Some(setting)) => {
                    if let Some(target) = target {
                        self.error(Code::E0204, target.span, "what `numerics` sets is not a value");
                    }
                    self.set_numerics(self.numerics().with(setting));
                }
                Some(None) => {}
                None => {
                    let value = self.expr(e);
                    if !value.ty.is_error() {
                        let d = Diagnostic::new(
                            Code::E0690,
                            e.span,
                            "`with` takes `numerics.policy(…)` and `numerics.precision(…)` only",
                        )
                        .note(format!("this is `{}`, which has nothing to enter and leave", value.ty))
                        .help("files are read and written as a whole: `io.read_text(path)`");
                        self.report(d);
                    }
                    target.iter().for_each(|t| self.assign_to(t, error_at(t.span)));
                }
            }
        }
        let (out, told) = self.telling_block(body);
        self.mark_assigned_too(&told);
        let policy = self.policy;
        self.set_numerics(before);
        match policy == before.policy {
            false => self.out.push(TStmt::WithPolicy { policy, body: out }),
            true => self.out.extend(out),
        }
    }
}

/// What never gets a value is not returned.
fn ty_is_known(value: &Option<TExpr>) -> bool {
    value.as_ref().is_none_or(|v| !v.ty.is_error())
}

/// What comparisons of ints, or of tuples of them, give where their types tell the numbers.
fn decided_by_numbers(condition: &TExpr) -> Option<bool> {
    let ints = |items: &[Ty]| items.iter().map(Ty::const_int).collect::<Option<Vec<i64>>>();
    match &condition.kind {
        TKind::Compare { op, left, right } => match (op, &left.ty, &right.ty) {
            (CmpOp::Eq | CmpOp::Ne, Ty::Tuple(a), Ty::Tuple(b)) => Some((ints(a)? == ints(b)?) == (*op == CmpOp::Eq)),
            _ => super::compare::int_holds(*op, left.ty.const_int()?, right.ty.const_int()?),
        },
        TKind::Not(inner) => decided_by_numbers(inner).map(|b| !b),
        TKind::Logic { and, left, right } => match (decided_by_numbers(left), decided_by_numbers(right)) {
            (Some(b), _) | (_, Some(b)) if b != *and => Some(b),
            (Some(b), Some(_)) => Some(b),
            _ => None,
        },
        TKind::Block { value, .. } => decided_by_numbers(value),
        _ => None,
    }
}

//! Walks over syntax: what statements assign and change, and what stands in what.

use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_grammar::ast::*;

/// `a.b.c` of names, without a leading `tessera`.
pub fn dotted_path(path: &[Name]) -> Arc<str> {
    let parts: Vec<&str> = path.iter().map(|n| &*n.text).collect();
    match parts.as_slice() {
        ["tessera", rest @ ..] if !rest.is_empty() => rest.join(".").into(),
        all => all.join(".").into(),
    }
}

/// Names that statements assign at their own level, nested definitions by name only.
pub fn assigned(stmts: &[Stmt], out: &mut BTreeSet<Arc<str>>) {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Assign { targets, .. } => targets.iter().for_each(|t| target_names(t, out)),
            StmtKind::AnnAssign { target, value: Some(_), .. } => target_names(target, out),
            StmtKind::AugAssign { target, .. } => target_names(target, out),
            StmtKind::Def(def) => drop(out.insert(def.name.text.clone())),
            StmtKind::If { then, otherwise, .. } => {
                assigned(then, out);
                assigned(otherwise, out);
            }
            StmtKind::For { target, body, .. } => {
                target_names(target, out);
                assigned(body, out);
            }
            StmtKind::While { body, .. } => assigned(body, out),
            StmtKind::With { items, body } => {
                items.iter().filter_map(|(_, t)| t.as_ref()).for_each(|t| target_names(t, out));
                assigned(body, out);
            }
            _ => {}
        }
    }
}

/// Names that an assignment to `target` binds (not those that it only changes inside).
pub fn target_names(target: &Expr, out: &mut BTreeSet<Arc<str>>) {
    match &target.kind {
        ExprKind::Name(n) => drop(out.insert(n.clone())),
        ExprKind::Tuple(ts) | ExprKind::List(ts) => ts.iter().for_each(|t| target_names(t, out)),
        _ => {}
    }
}

/// Names whose value statements may change, by assignment or inside (`x[0] = 1`, `x.f = 2`,
/// `x.append(3)`).
pub fn changed(stmts: &[Stmt], out: &mut BTreeSet<Arc<str>>) {
    assigned(stmts, out);
    each_stmt(stmts, &mut |stmt| match &stmt.kind {
        StmtKind::Assign { targets, .. } => out.extend(targets.iter().filter_map(root_name)),
        StmtKind::AugAssign { target, .. } | StmtKind::AnnAssign { target, .. } => out.extend(root_name(target)),
        _ => {}
    });
    each_expr(stmts, &mut |e| {
        if let ExprKind::Call { func, .. } = &e.kind
            && let ExprKind::Attr { base, .. } = &func.kind
            && let Some(name) = root_name(base)
        {
            out.insert(name);
        }
    });
}

/// The variable at the root of a place.
pub fn root_name(place: &Expr) -> Option<Arc<str>> {
    match &place.kind {
        ExprKind::Name(n) => Some(n.clone()),
        ExprKind::Attr { base, .. } | ExprKind::Index { base, .. } => root_name(base),
        _ => None,
    }
}

/// Calls `f` on every statement, nested functions left out.
pub fn each_stmt(stmts: &[Stmt], f: &mut dyn FnMut(&Stmt)) {
    for stmt in stmts {
        f(stmt);
        match &stmt.kind {
            StmtKind::If { then, otherwise, .. } => {
                each_stmt(then, f);
                each_stmt(otherwise, f);
            }
            StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::With { body, .. } => {
                each_stmt(body, f)
            }
            _ => {}
        }
    }
}

/// Calls `f` on every expression, nested functions and lambdas included, from outside in.
pub fn each_expr(stmts: &[Stmt], f: &mut dyn FnMut(&Expr)) {
    for stmt in stmts {
        for e in exprs_of(stmt) {
            each_sub(e, f);
        }
        match &stmt.kind {
            StmtKind::If { then, otherwise, .. } => {
                each_expr(then, f);
                each_expr(otherwise, f);
            }
            StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::With { body, .. } => {
                each_expr(body, f)
            }
            StmtKind::Def(def) => each_expr(&def.body, f),
            _ => {}
        }
    }
}

/// The expressions directly in a statement.
pub fn exprs_of(stmt: &Stmt) -> Vec<&Expr> {
    match &stmt.kind {
        StmtKind::Def(def) => {
            let params = def.params.iter().flat_map(|p| p.ty.iter().chain(&p.default));
            def.decorators.iter().chain(params).chain(&def.ret).collect()
        }
        StmtKind::Struct(def) => def
            .decorators
            .iter()
            .chain(def.fields.iter().flat_map(|f| [Some(&f.ty), f.default.as_ref()].into_iter().flatten()))
            .collect(),
        StmtKind::Expr(e) => vec![e],
        StmtKind::Assign { targets, value } => targets.iter().chain([value]).collect(),
        StmtKind::AnnAssign { target, ty, value } => {
            [Some(target), Some(ty), value.as_ref()].into_iter().flatten().collect()
        }
        StmtKind::AugAssign { target, value, .. } => vec![target, value],
        StmtKind::If { test, .. } | StmtKind::While { test, .. } => vec![test],
        StmtKind::For { target, iter, .. } => vec![target, iter],
        StmtKind::Return(value) => value.iter().collect(),
        StmtKind::Assert { test, message } => [Some(test), message.as_ref()].into_iter().flatten().collect(),
        StmtKind::With { items, .. } => {
            items.iter().flat_map(|(e, t)| [Some(e), t.as_ref()].into_iter().flatten()).collect()
        }
        _ => vec![],
    }
}

fn each_sub(e: &Expr, f: &mut dyn FnMut(&Expr)) {
    f(e);
    for part in parts_of(e) {
        each_sub(part, f);
    }
}

/// The expressions directly in an expression.
pub fn parts_of(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::FStr(parts) => {
            let mut out = vec![];
            format_parts(parts, &mut out);
            out
        }
        ExprKind::Tuple(es) | ExprKind::List(es) => es.iter().collect(),
        ExprKind::Dict(es) => es.iter().flat_map(|(k, v)| [k, v]).collect(),
        ExprKind::Unary { operand, .. } => vec![operand],
        ExprKind::Binary { left, right, .. } | ExprKind::Logic { left, right, .. } => vec![left, right],
        ExprKind::Compare { first, rest } => [&**first].into_iter().chain(rest.iter().map(|(_, e)| e)).collect(),
        ExprKind::Cond { test, then, otherwise } => vec![test, then, otherwise],
        ExprKind::Lambda { params, body } => {
            params.iter().flat_map(|p| p.ty.iter().chain(&p.default)).chain([&**body]).collect()
        }
        ExprKind::Call { func, args } => [&**func].into_iter().chain(args.iter().map(|a| &a.value)).collect(),
        ExprKind::Index { base, index } => [&**base].into_iter().chain(index.iter().map(|a| &a.value)).collect(),
        ExprKind::Slice { low, high, step } => [low, high, step].into_iter().flatten().map(|e| &**e).collect(),
        ExprKind::Attr { base, .. } => vec![base],
        ExprKind::ListComp { element, clauses } => {
            let clauses = clauses.iter().flat_map(|c| [&c.target, &c.iter].into_iter().chain(&c.tests));
            [&**element].into_iter().chain(clauses).collect()
        }
        ExprKind::FnType { params, ret } => params.iter().chain([&**ret]).collect(),
        _ => vec![],
    }
}

fn format_parts<'a>(parts: &'a [FPart], out: &mut Vec<&'a Expr>) {
    for part in parts {
        if let FPart::Value { value, spec, .. } = part {
            out.push(value);
            format_parts(spec, out);
        }
    }
}

/// Collects names that are not bound inside.
#[derive(Default)]
pub(crate) struct Free {
    bound: Vec<BTreeSet<Arc<str>>>,
    pub(crate) out: BTreeSet<Arc<str>>,
    pub(crate) recursive: bool,
    outermost: Option<Arc<str>>,
}

impl Free {
    fn name(&mut self, name: &Arc<str>) {
        if self.outermost.as_ref() == Some(name) {
            self.recursive = true;
        }
        if !self.bound.iter().any(|set| set.contains(name)) {
            self.out.insert(name.clone());
        }
    }

    pub(crate) fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Def(def) => {
                    if self.bound.is_empty() {
                        self.outermost = Some(def.name.text.clone());
                    }
                    def.decorators.iter().for_each(|e| self.expr(e));
                    self.params(&def.params);
                    def.ret.iter().for_each(|e| self.expr(e));
                    let mut bound: BTreeSet<Arc<str>> = def.params.iter().map(|p| p.name.text.clone()).collect();
                    assigned(&def.body, &mut bound);
                    self.bound.push(bound);
                    self.stmts(&def.body);
                    self.bound.pop();
                }
                StmtKind::If { then, otherwise, .. } => {
                    exprs_of(stmt).into_iter().for_each(|e| self.expr(e));
                    self.stmts(then);
                    self.stmts(otherwise);
                }
                StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::With { body, .. } => {
                    exprs_of(stmt).into_iter().for_each(|e| self.expr(e));
                    self.stmts(body);
                }
                _ => exprs_of(stmt).into_iter().for_each(|e| self.expr(e)),
            }
        }
    }

    fn params(&mut self, params: &[Param]) {
        for p in params {
            p.ty.iter().chain(&p.default).for_each(|e| self.expr(e));
        }
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Name(n) => self.name(n),
            ExprKind::Lambda { params, body } => {
                self.params(params);
                self.bound.push(params.iter().map(|p| p.name.text.clone()).collect());
                self.expr(body);
                self.bound.pop();
            }
            ExprKind::ListComp { element, clauses } => {
                // The first iterable is outside the scope of the targets; the others are inside.
                let mut bound = BTreeSet::new();
                clauses.iter().for_each(|c| target_names(&c.target, &mut bound));
                if let Some(first) = clauses.first() {
                    self.expr(&first.iter);
                }
                self.bound.push(bound);
                for (i, clause) in clauses.iter().enumerate() {
                    if i > 0 {
                        self.expr(&clause.iter);
                    }
                    clause.tests.iter().for_each(|t| self.expr(t));
                }
                self.expr(element);
                self.bound.pop();
            }
            _ => parts_of(e).into_iter().for_each(|p| self.expr(p)),
        }
    }
}

/// The names that a function's body takes from outside.
pub fn free_names(
    params: &[Param],
    body: &[Stmt],
    value: Option<&Expr>,
    assigned: &BTreeSet<Arc<str>>,
) -> BTreeSet<Arc<str>> {
    let mut free = Free::default();
    let mut bound = assigned.clone();
    bound.extend(params.iter().map(|p| p.name.text.clone()));
    free.bound.push(bound);
    free.stmts(body);
    if let Some(value) = value {
        free.expr(value);
    }
    free.out
}

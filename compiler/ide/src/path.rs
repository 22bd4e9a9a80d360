//! The syntax around a position: what an editor's cursor stands in.

use tessera_base::Span;
use tessera_grammar::ast::*;
use tessera_resolve::syntax::{exprs_of, parts_of};

/// A name that is not bound and read by itself.
#[derive(Clone, Copy, Debug)]
pub enum Spot<'a> {
    /// `name` of `base.name`.
    Member { base: &'a Expr, name: &'a Name },
    /// `name` of `func(name=…)`.
    Keyword { func: &'a Expr, name: &'a Name },
    /// A part of the path of an import: the names up to it.
    Module { path: &'a [Name], name: &'a Name },
    /// `name` of `from path import name`.
    Imported { path: &'a [Name], name: &'a Name },
    /// A field of the struct that the item defines.
    Field { name: &'a Name },
}

impl<'a> Spot<'a> {
    pub fn name(&self) -> &'a Name {
        match self {
            Spot::Member { name, .. }
            | Spot::Keyword { name, .. }
            | Spot::Module { name, .. }
            | Spot::Imported { name, .. }
            | Spot::Field { name } => name,
        }
    }
}

/// Whether a position stands in a span or at its end.
pub fn touches(span: Span, at: u32) -> bool {
    span.start <= at && at <= span.end
}

/// Calls `f` on every statement, those of functions inside included, from outside in.
pub fn every_stmt<'a>(stmts: &'a [Stmt], f: &mut dyn FnMut(&'a Stmt)) {
    for stmt in stmts {
        f(stmt);
        match &stmt.kind {
            StmtKind::If { then, otherwise, .. } => {
                every_stmt(then, f);
                every_stmt(otherwise, f);
            }
            StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::With { body, .. } => {
                every_stmt(body, f);
            }
            StmtKind::Def(def) => every_stmt(&def.body, f),
            _ => {}
        }
    }
}

/// Every expression of some statements, from outside in.
pub fn every_expr(stmts: &[Stmt]) -> Vec<&Expr> {
    let mut out = vec![];
    collect(stmts, &mut out);
    out
}

fn collect<'a>(stmts: &'a [Stmt], out: &mut Vec<&'a Expr>) {
    every_stmt(stmts, &mut |stmt| {
        let mut work: Vec<&'a Expr> = exprs_of(stmt);
        work.reverse();
        while let Some(e) = work.pop() {
            out.push(e);
            let mut parts = parts_of(e);
            parts.reverse();
            work.extend(parts);
        }
    });
}

/// The spot at a position of an item.
pub fn spot(stmts: &[Stmt], at: u32) -> Option<Spot<'_>> {
    let mut out = None;
    every_stmt(stmts, &mut |stmt| match &stmt.kind {
        StmtKind::Import { path, .. } => {
            if let Some(i) = path.iter().position(|n| touches(n.span, at)) {
                out = Some(Spot::Module { path: &path[..=i], name: &path[i] });
            }
        }
        StmtKind::FromImport { path, names } => {
            if let Some(i) = path.iter().position(|n| touches(n.span, at)) {
                out = Some(Spot::Module { path: &path[..=i], name: &path[i] });
            }
            let here = |(name, alias): &&(Name, Option<Name>)| {
                touches(name.span, at) || alias.as_ref().is_some_and(|a| touches(a.span, at))
            };
            if let Some((name, _)) = names.iter().find(here) {
                out = Some(Spot::Imported { path, name });
            }
        }
        StmtKind::Struct(def) => {
            if let Some(field) = def.fields.iter().find(|f| touches(f.name.span, at)) {
                out = Some(Spot::Field { name: &field.name });
            }
        }
        _ => {}
    });
    if out.is_some() {
        return out;
    }
    every_expr(stmts).into_iter().filter(|e| touches(e.span, at)).find_map(|e| match &e.kind {
        ExprKind::Attr { base, name } if touches(name.span, at) => Some(Spot::Member { base, name }),
        ExprKind::Call { func, args } => {
            let named = args.iter().filter_map(|a| a.name.as_ref()).find(|n| touches(n.span, at))?;
            Some(Spot::Keyword { func, name: named })
        }
        _ => None,
    })
}

/// The names of `a.b.c`.
pub fn dotted(e: &Expr) -> Option<Vec<&str>> {
    match &e.kind {
        ExprKind::Name(name) => Some(vec![name]),
        ExprKind::Attr { base, name } => {
            let mut path = dotted(base)?;
            path.push(&name.text);
            Some(path)
        }
        _ => None,
    }
}

//! Functions and lambdas as syntax, in one form.

use crate::{kernel_signature, syntax};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::Span;
use tessera_grammar::ParsedItem;
use tessera_grammar::ast::*;

/// What callers know of a function. Comes out equal when only the body changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FnSig {
    pub name: Arc<str>,
    /// Tells the functions of one item apart.
    pub start: u32,
    pub params: Vec<Param>,
    pub ret: Option<Expr>,
    pub decorators: Vec<Expr>,
    pub head: Span,
    pub lambda: bool,
    /// Parameters of a kernel that its body writes.
    pub outputs: Vec<u32>,
}

/// A `def` or a `lambda`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FnLike {
    pub sig: Arc<FnSig>,
    pub body: FnBody,
    pub free: BTreeSet<Arc<str>>,
    /// Inside another function, or a lambda.
    pub nested: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FnBody {
    Def(Arc<FnDef>),
    Lambda(Expr),
}

/// Where a `def` starts: what tells functions of one item apart.
pub fn def_start(def: &FnDef) -> u32 {
    def.name.span.start
}

/// All functions of an item by where they start.
pub fn functions(parsed: &ParsedItem) -> BTreeMap<u32, Arc<FnLike>> {
    let mut out = BTreeMap::new();
    walk(&parsed.stmts, false, &mut out);
    // Lambdas, wherever they stand.
    syntax::each_expr(&parsed.stmts, &mut |e| {
        if let ExprKind::Lambda { params, body } = &e.kind {
            let sig = FnSig {
                name: "lambda".into(),
                start: e.span.start,
                params: params.clone(),
                ret: None,
                decorators: vec![],
                head: e.span,
                lambda: true,
                outputs: vec![],
            };
            let f = FnLike {
                sig: Arc::new(sig),
                free: syntax::free_names(params, &[], Some(body), &BTreeSet::new()),
                body: FnBody::Lambda((**body).clone()),
                nested: true,
            };
            out.insert(e.span.start, Arc::new(f));
        }
    });
    out
}

fn walk(stmts: &[Stmt], nested: bool, out: &mut BTreeMap<u32, Arc<FnLike>>) {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Def(def) => {
                let mut assigned = BTreeSet::new();
                syntax::assigned(&def.body, &mut assigned);
                let sig = FnSig {
                    name: def.name.text.clone(),
                    start: def_start(def),
                    params: def.params.clone(),
                    ret: def.ret.clone(),
                    decorators: def.decorators.clone(),
                    head: def.head,
                    lambda: false,
                    outputs: kernel_signature::outputs(def),
                };
                let mut free = syntax::free_names(&def.params, &def.body, None, &assigned);
                // What decorators take is read where the function is checked.
                let none = BTreeSet::new();
                def.decorators.iter().for_each(|e| free.extend(syntax::free_names(&[], &[], Some(e), &none)));
                let f = FnLike { sig: Arc::new(sig), free, body: FnBody::Def(def.clone()), nested };
                out.insert(def_start(def), Arc::new(f));
                walk(&def.body, true, out);
            }
            StmtKind::If { then, otherwise, .. } => {
                walk(then, nested, out);
                walk(otherwise, nested, out);
            }
            StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::With { body, .. } => {
                walk(body, nested, out)
            }
            _ => {}
        }
    }
}

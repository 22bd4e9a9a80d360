//! Constants of a file: the ints that a capitalised name in a signature may stand for.
//!
//! A name is a constant if the top level of its file binds it exactly once, outside of loops and branches, to an
//! int that is known before the program runs, or imports such a constant from another file. Any other variable of the file is another thing than the size of
//! the same name in a signature.

use super::cx::Cx;
use crate::db::{self, Db, Entity, File};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Diagnostic, ItemId, Size, Span};
use tessera_core::ty::Ty;
use tessera_grammar::ast::{BinOp, Expr, ExprKind, Name, Stmt, StmtKind, UnOp};
use tessera_resolve::syntax::{assigned, target_names};

/// A name that its file binds once at the top level, by an assignment or by an import.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constant {
    /// Its place among the items of the file.
    pub order: usize,
    /// Where it is bound.
    pub at: Span,
    /// The value, where it is written with numbers and other constants.
    pub value: Option<i64>,
}

impl Constant {
    /// Whether it is bound above a name of the definition that is this item of the file.
    fn above(&self, order: usize, span: Span) -> bool {
        self.order < order || self.order == order && self.at.item == span.item && self.at.start < span.start
    }
}

/// The constants of a file, with those of the inputs before it. A name is in the list whatever its type.
pub fn constants(db: &dyn Db, file: File) -> BTreeMap<Arc<str>, Constant> {
    let mut found = Found::default();
    for (order, head) in db::all_heads(db, file).enumerate() {
        let Some(item) = db::item_of(db, head.id) else { continue };
        found.order = order;
        found.stmts(&item.syntax(db).stmts);
    }
    found.out
}

/// The names that the top level of a file binds, in the order of the text.
#[derive(Default)]
struct Found {
    out: BTreeMap<Arc<str>, Constant>,
    /// All names that anything has bound.
    bound: BTreeSet<Arc<str>>,
    order: usize,
}

impl Found {
    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Assign { targets, value } => {
                    // `a, b = b, a` reads both before it binds one.
                    let known = self.out.clone();
                    targets.iter().for_each(|t| self.target(t, Some(value), &known));
                }
                StmtKind::AnnAssign { target, value: Some(value), .. } => {
                    let known = self.out.clone();
                    self.target(target, Some(value), &known);
                }
                StmtKind::Import { path, alias } => {
                    alias.as_ref().or(path.first()).into_iter().for_each(|name| self.once(name, None))
                }
                StmtKind::FromImport { names, .. } => {
                    names.iter().for_each(|(name, alias)| self.once(alias.as_ref().unwrap_or(name), None))
                }
                // Runs once, as what stands around it.
                StmtKind::With { items, body } => {
                    items.iter().filter_map(|(_, t)| t.as_ref()).for_each(|t| self.no_constant(t));
                    self.stmts(body);
                }
                _ => {
                    let mut names = BTreeSet::new();
                    assigned(std::slice::from_ref(stmt), &mut names);
                    names.into_iter().for_each(|name| self.drop(name));
                }
            }
        }
    }

    /// A target of an assignment, with the part of the value that it gets where that is written there.
    fn target(&mut self, target: &Expr, value: Option<&Expr>, known: &BTreeMap<Arc<str>, Constant>) {
        match (&target.kind, value.map(|v| &v.kind)) {
            (ExprKind::Name(text), _) => {
                let name = Name { text: text.clone(), span: target.span };
                self.once(&name, value.and_then(|v| evaluate(v, known)));
            }
            (ExprKind::Tuple(ts) | ExprKind::List(ts), Some(ExprKind::Tuple(vs) | ExprKind::List(vs)))
                if ts.len() == vs.len() =>
            {
                ts.iter().zip(vs).for_each(|(t, v)| self.target(t, Some(v), known))
            }
            (ExprKind::Tuple(ts) | ExprKind::List(ts), _) => ts.iter().for_each(|t| self.target(t, None, known)),
            _ => {}
        }
    }

    fn once(&mut self, name: &Name, value: Option<i64>) {
        if self.bound.insert(name.text.clone()) {
            self.out.insert(name.text.clone(), Constant { order: self.order, at: name.span, value });
        } else {
            self.out.remove(&name.text);
        }
    }

    fn no_constant(&mut self, target: &Expr) {
        let mut names = BTreeSet::new();
        target_names(target, &mut names);
        names.into_iter().for_each(|name| self.drop(name));
    }

    fn drop(&mut self, name: Arc<str>) {
        self.out.remove(&name);
        self.bound.insert(name);
    }
}

/// The value of an expression of numbers and constants.
fn evaluate(e: &Expr, known: &BTreeMap<Arc<str>, Constant>) -> Option<i64> {
    match &e.kind {
        ExprKind::Int(digits) => digits.parse().ok(),
        ExprKind::Name(name) => known.get(name)?.value,
        ExprKind::Unary { op: UnOp::Neg, operand } => evaluate(operand, known)?.checked_neg(),
        ExprKind::Binary { op, left, right, .. } => {
            let (a, b) = (evaluate(left, known)?, evaluate(right, known)?);
            match op {
                BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::FloorDiv | BinOp::Mod | BinOp::Pow => {
                    super::symbolic::arith(*op, &Size::constant(a), &Size::constant(b))?.as_const()
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// A diagnostic about a signature with where the constants that it names are bound.
pub fn with_constants(d: Diagnostic, constants: &[(Arc<str>, i64, Span)]) -> Diagnostic {
    constants.iter().fold(d, |d, (name, n, at)| d.with_label(*at, format!("{name} is {n}")))
}

/// What a name of a file means in a signature.
pub enum AsSize {
    Constant(i64, Span),
    /// A variable that is no constant, bound here: the size of the signature is another thing.
    Variable(Span),
    /// No int.
    Other,
}

impl Cx<'_> {
    /// What a variable of the file `home` means at a place of the signature of one of its definitions.
    pub fn as_size(&mut self, home: File, name: &Arc<str>, definition: ItemId, span: Span) -> AsSize {
        // What is bound at a prompt later changes nothing.
        let own = db::written_in(self.db, definition).unwrap_or(home);
        let Some(c) = self.constant_above(own, home, name, definition, span) else {
            return self.variable_as_size(home, name);
        };
        if let Some(n) = c.value {
            return AsSize::Constant(n, c.at);
        }
        let before = own.before(self.db).as_ref().and_then(|b| b.main.vars.get(name));
        let known = match before {
            Some(var) => Some((var.ty.clone(), var.span)),
            None => self.typed_variable(home, name),
        };
        match known {
            Some((Ty::Int(value), at)) => match value.and_then(|n| n.as_const()) {
                Some(n) => AsSize::Constant(n, c.at),
                None => AsSize::Variable(at),
            },
            _ => AsSize::Other,
        }
    }

    fn variable_as_size(&mut self, home: File, name: &Arc<str>) -> AsSize {
        match self.typed_variable(home, name) {
            Some((Ty::Int(_), at)) => AsSize::Variable(at),
            Some(_) => AsSize::Other,
            // Bound below: what it is matters to nobody above.
            None => AsSize::Variable(Span::NONE),
        }
    }

    fn typed_variable(&mut self, home: File, name: &Arc<str>) -> Option<(Ty, Span)> {
        let module = db::module_of(self.db, home.id(self.db));
        let value = self.module_variable(module, home, name, Span::NONE)?;
        let at = match (self.is_module() && module == self.module, self.env.get(name)) {
            (true, Some(binding)) => binding.span,
            _ => Span::NONE,
        };
        Some((value.ty, at))
    }

    /// The binding of a name that the file `own` binds once, above a place of the signature of a definition.
    fn constant_above(
        &self,
        own: File,
        home: File,
        name: &Arc<str>,
        definition: ItemId,
        span: Span,
    ) -> Option<Constant> {
        let order = db::all_heads(self.db, home).position(|h| h.id == definition);
        let constants = db::constants(self.db, own);
        constants.get(name).filter(|c| order.is_none_or(|order| c.above(order, span))).cloned()
    }

    /// As [`Cx::as_size`] of a name that the file imports, with the type of the value.
    pub fn imported_as_size(
        &mut self,
        home: File,
        name: &Arc<str>,
        ty: &Ty,
        (definition, span): (ItemId, Span),
    ) -> AsSize {
        let Ty::Int(value) = ty else { return AsSize::Other };
        let own = db::written_in(self.db, definition).unwrap_or(home);
        let above = self.constant_above(own, home, name, definition, span);
        let constant = above.and_then(|_| self.imported_constant(own, name));
        match (constant, value.as_ref().and_then(Size::as_const)) {
            (Some(at), Some(n)) => AsSize::Constant(n, at),
            _ => AsSize::Variable(Span::NONE),
        }
    }

    /// Where a constant is bound that a file imports, perhaps through others; `None` where one of them binds it twice.
    fn imported_constant(&self, file: File, name: &Arc<str>) -> Option<Span> {
        let (mut file, mut name) = (file, name.clone());
        let mut seen = BTreeSet::new();
        loop {
            let at = db::constants(self.db, file).get(&name)?.at;
            if !seen.insert((file.id(self.db), name.clone())) {
                return None;
            }
            match &self.in_scope(file, &name).entity {
                Some(Entity::Member(from, member)) => {
                    (file, name) = (db::file_of(self.db, *from)?, member.clone());
                }
                _ => return Some(at),
            }
        }
    }
}

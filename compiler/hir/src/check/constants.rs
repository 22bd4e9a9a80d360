//! Constants of a file: the ints that a capitalised name in a signature may stand for.
//!
//! A name is a constant if the top level of its file binds it exactly once, outside of loops and branches, to an
//! int that is known before the program runs. Any other variable of the file is another thing than the size of
//! the same name in a signature.

use super::cx::Cx;
use super::facts::assigned;
use crate::db::{self, Db, File};
use crate::ty::Ty;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Diagnostic, ItemId, Size, Span};
use tessera_grammar::ast::{BinOp, Expr, ExprKind, Stmt, StmtKind, UnOp};

/// A name that its file binds once at the top level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constant {
    /// Its place among the items of the file.
    pub order: usize,
    /// Where it is bound.
    pub at: Span,
    /// The value, where it is written with numbers and other constants.
    pub value: Option<i64>,
}

/// The constants of a file, with those of the inputs before it. A name is in the list whatever its type.
pub fn constants(db: &dyn Db, file: File) -> BTreeMap<Arc<str>, Constant> {
    let mut out: BTreeMap<Arc<str>, Constant> = BTreeMap::new();
    let mut several: BTreeSet<Arc<str>> = BTreeSet::new();
    for (order, head) in db::all_heads(db, file).enumerate() {
        let Some(item) = db::item_of(db, head.id) else { continue };
        for stmt in &db::parsed(db, item).stmts {
            let once = bound_once(stmt);
            let mut names = BTreeSet::new();
            assigned(std::slice::from_ref(stmt), &mut names);
            for name in names {
                if !several.insert(name.clone()) {
                    out.remove(&name);
                } else if let Some((target, value)) = once
                    && matches!(&target.kind, ExprKind::Name(n) if *n == name)
                {
                    let value = evaluate(value, &out);
                    out.insert(name, Constant { order, at: target.span, value });
                }
            }
        }
    }
    out
}

/// `name = value`, annotated or not.
fn bound_once(stmt: &Stmt) -> Option<(&Expr, &Expr)> {
    match &stmt.kind {
        StmtKind::Assign { targets, value } => match targets.as_slice() {
            [target] => Some((target, value)),
            _ => None,
        },
        StmtKind::AnnAssign { target, value: Some(value), .. } => Some((target, value)),
        _ => None,
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
    /// What a variable of the file `home` means in the signature of one of its definitions.
    pub fn as_size(&mut self, home: File, name: &Arc<str>, definition: ItemId) -> AsSize {
        // What is bound at a prompt later changes nothing.
        let own = db::written_in(self.db, definition).unwrap_or(home);
        let constants = db::constants(self.db, own);
        let order = db::all_heads(self.db, home).position(|h| h.id == definition);
        let Some(c) = constants.get(name).filter(|c| order.is_none_or(|order| c.order < order)) else {
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

    /// As [`Cx::as_size`] of a name that another file has.
    pub fn imported_as_size(&mut self, file: crate::source::FileId, name: &Arc<str>, ty: &Ty) -> AsSize {
        let Ty::Int(value) = ty else { return AsSize::Other };
        let constants = db::file_of(self.db, file).map(|f| db::constants(self.db, f));
        let constant = constants.as_ref().and_then(|c| c.get(name));
        match (constant, value.as_ref().and_then(Size::as_const)) {
            (Some(c), Some(n)) => AsSize::Constant(n, c.at),
            _ => AsSize::Variable(Span::NONE),
        }
    }
}

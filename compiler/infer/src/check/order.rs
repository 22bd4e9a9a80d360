//! Operands are computed in the order in which they stand.
//!
//! An expression may need statements before it: a comprehension is a loop, `xs.pop()` a change of `xs`. What stands to
//! the left of it in the same expression is computed before these statements, and kept for where it is wanted.

use super::cx::Cx;
use std::collections::BTreeSet;
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_core::walk::{Var, each_expr, each_stmt, mentioned};
use tessera_grammar::ast::Expr;

/// What statements do that what stands left of them must not see.
struct Doing {
    /// The variables that they change themselves.
    changed: BTreeSet<Var>,
    /// Whether they may do more than that, or fail: what they call may change variables of the file.
    more: bool,
}

impl Doing {
    fn of(stmts: &[TStmt]) -> Doing {
        let mut changed = BTreeSet::new();
        each_stmt(stmts, &mut |s| match s {
            TStmt::Set(l, _) => changed.extend([Var::Local(*l)]),
            TStmt::SetGlobal(g, _) => changed.extend([Var::Global(*g)]),
            TStmt::Mutate { place, .. } => changed.extend([Var::from(place.root)]),
            _ => {}
        });
        Doing { changed, more: !stmts.iter().all(|s| matches!(s, TStmt::Set(_, e) if e.is_certain())) }
    }

    /// Whether it can be seen if they come before this value or behind it.
    fn matters_to(&self, value: &TExpr) -> bool {
        let shared = |v: &Var| self.changed.contains(v) || (self.more && matches!(v, Var::Global(_)));
        if value.is_certain() { mentioned(value).iter().any(shared) } else { self.more }
    }
}

impl Cx<'_> {
    /// Checks what stands to the right of checked operands.
    pub fn right_of<'a, T>(
        &mut self,
        left: impl IntoIterator<Item = &'a mut TExpr>,
        right: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let from = self.out.len();
        let value = right(self);
        self.keep_before(from, left);
        value
    }

    /// Operands in the order in which they stand.
    pub fn operands<'e>(&mut self, items: impl IntoIterator<Item = &'e Expr>) -> Vec<TExpr> {
        self.operands_as(items.into_iter().map(|item| (item, None)))
    }

    /// The same, each with the type that is declared where it stands.
    pub fn operands_as<'e>(&mut self, items: impl IntoIterator<Item = (&'e Expr, Option<&'e Ty>)>) -> Vec<TExpr> {
        let mut out: Vec<TExpr> = vec![];
        for (item, declared) in items {
            let value = self.right_of(&mut out, |cx| match declared {
                Some(ty) => cx.expr_for(item, ty),
                None => cx.expr(item),
            });
            out.push(value);
        }
        out
    }

    /// Values that belong before the statements from `from` on: those that these could change are computed there.
    pub fn keep_before<'a>(&mut self, from: usize, values: impl IntoIterator<Item = &'a mut TExpr>) {
        if self.out.len() <= from {
            return;
        }
        let later = self.out.split_off(from);
        let doing = Doing::of(&later);
        values.into_iter().for_each(|v| self.keep(v, &doing));
        self.out.extend(later);
    }

    /// Values that may be wanted in another order than they are written in, as arguments by keyword: what they do keeps
    /// that of the text.
    pub fn keep_written<'a>(&mut self, values: impl IntoIterator<Item = &'a mut TExpr>) {
        let mut values: Vec<&mut TExpr> = values.into_iter().collect();
        if values.len() < 2 || !values.iter().any(|v| v.has_effect()) {
            return;
        }
        let mut doing = Doing { changed: BTreeSet::new(), more: true };
        for value in &values {
            each_expr(value, &mut |e| {
                if let TKind::Block { stmts, .. } = &e.kind {
                    doing.changed.extend(Doing::of(stmts).changed);
                }
            });
        }
        // Of one that does something and others that nothing changes the order cannot be seen.
        if values.iter().filter(|v| doing.matters_to(v)).count() > 1 {
            values.iter_mut().for_each(|v| self.keep(v, &doing));
        }
    }

    /// What is written out keeps its form, which says what it may become where it is wanted: its parts are computed.
    fn keep(&mut self, value: &mut TExpr, doing: &Doing) {
        match &mut value.kind {
            TKind::Tuple(parts) | TKind::List(parts) | TKind::Struct(parts) | TKind::Closure { captures: parts } => {
                parts.iter_mut().for_each(|p| self.keep(p, doing));
            }
            TKind::Dict(pairs) => pairs.iter_mut().for_each(|(k, v)| {
                self.keep(k, doing);
                self.keep(v, doing);
            }),
            TKind::IntToFloat(x) | TKind::BoolToInt(x) | TKind::Erase { value: x, .. } => self.keep(x, doing),
            _ => {
                if doing.matters_to(value) {
                    let taken = std::mem::replace(value, super::cx::error_at(value.span));
                    *value = self.save("operand", taken);
                }
            }
        }
    }
}

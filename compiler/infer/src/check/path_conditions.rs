//! What conditions and loops say about sizes.

use super::cx::Cx;
use tessera_base::{Code, Diagnostic, Size, SizeVar, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{CmpOp, Stmt, StmtKind};

impl Cx<'_> {
    /// From here on the condition holds, or (`holds` is false) it does not. The values of ints that a condition compares are
    /// symbols: a name that is bound anew gets another one, so what is known of the old value stays true.
    pub fn assume_condition(&mut self, test: &TExpr, holds: bool) {
        match &test.kind {
            // Of `a and b` that does not hold, and of `a or b` that does, nothing is known of either alone.
            TKind::Logic { and, left, right } if *and == holds => {
                self.assume_condition(left, holds);
                self.assume_condition(right, holds);
            }
            TKind::Not(inner) => self.assume_condition(inner, !holds),
            TKind::Block { value, .. } => self.assume_condition(value, holds),
            TKind::Compare { op, left, right } => {
                if let (Ty::Int(Some(a)), Ty::Int(Some(b))) = (&left.ty, &right.ty) {
                    let (a, b) = (a.clone(), b.clone());
                    self.assume_comparison(*op, &a, &b, holds);
                }
            }
            _ => {}
        }
    }

    fn assume_comparison(&mut self, op: CmpOp, a: &Size, b: &Size, holds: bool) {
        let facts = &mut self.sizes.facts;
        let one = Size::constant(1);
        match (op, holds) {
            (CmpOp::Eq, true) | (CmpOp::Ne, false) => facts.assume_equal(a, b),
            (CmpOp::Ne, true) | (CmpOp::Eq, false) => facts.assume_differ(a, b),
            (CmpOp::Ge, true) | (CmpOp::Lt, false) => facts.assume_at_least(a, b),
            (CmpOp::Le, true) | (CmpOp::Gt, false) => facts.assume_at_least(b, a),
            (CmpOp::Gt, true) | (CmpOp::Le, false) => facts.assume_at_least(a, &b.add(&one)),
            (CmpOp::Lt, true) | (CmpOp::Ge, false) => facts.assume_at_least(b, &a.add(&one)),
            (CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn, _) => {}
        }
    }

    /// What holds of the variable of a loop over `range(start, stop, step)` in its body.
    pub fn assume_in_range(&mut self, var: &SizeVar, start: &TExpr, stop: &TExpr, step: &TExpr) {
        let Some(by) = step.ty.const_int().filter(|n| *n != 0) else { return };
        let (at, one) = (Size::var(var.clone()), Size::constant(1));
        let facts = &mut self.sizes.facts;
        if let Ty::Int(Some(start)) = &start.ty {
            if by > 0 {
                facts.assume_at_least(&at, start)
            } else {
                facts.assume_at_least(start, &at)
            }
            if let Some(width) = by.checked_abs().filter(|n| *n > 1) {
                facts.assume_divides(&Size::constant(width), &at.sub(start));
            }
        }
        if let Ty::Int(Some(stop)) = &stop.ty {
            if by > 0 {
                facts.assume_at_least(stop, &at.add(&one))
            } else {
                facts.assume_at_least(&at, &stop.add(&one))
            }
        }
    }

    /// W0103: an assertion that what is known already rules out.
    pub fn never_holds(&mut self, span: Span) {
        let d = Diagnostic::new(Code::W0103, span, "this never holds: what is known of the sizes here rules it out")
            .note("the statements after it are never reached, and nothing is said of their sizes");
        self.report(d);
    }
}

/// Whether a statement of the block leaves the loop whose body it is.
pub fn has_break(body: &[Stmt]) -> bool {
    body.iter().any(|s| match &s.kind {
        StmtKind::Break => true,
        StmtKind::If { then, otherwise, .. } => has_break(then) || has_break(otherwise),
        StmtKind::With { body, .. } => has_break(body),
        _ => false,
    })
}

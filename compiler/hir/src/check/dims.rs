//! The sizes that a signature writes are at least 0: of a call that is required.

use super::cx::{Cx, int};
use super::iterate::int_test;
use crate::rules::sizes::each_dim;
use crate::thir::*;
use crate::ty::Ty;
use std::collections::BTreeSet;
use tessera_base::{Code, Diagnostic, Reach, Size, Span};
use tessera_grammar::ast::CmpOp;

impl Cx<'_> {
    /// `Tensor[N - 2]` in the parameters or the result of `function` says N >= 2, and its body is checked for that. Here
    /// `types` are these types with the sizes of a call: proved, refused (`false`), or compared in `before` the call.
    pub fn dims_hold<'t>(
        &mut self,
        function: &str,
        types: impl Iterator<Item = &'t Ty>,
        before: &mut Vec<TStmt>,
        span: Span,
    ) -> bool {
        let mut dims: BTreeSet<Size> = BTreeSet::new();
        types.for_each(|ty| {
            each_dim(ty, &mut |d| {
                dims.insert(d.clone());
            })
        });
        let zero = Size::constant(0);
        for d in dims {
            let (code, w) = match d.reach(&zero, &self.sizes.facts) {
                Reach::Always => continue,
                Reach::Never(w) => (Code::E0202, w),
                Reach::Depends(w) => match self.compared(function, &d, before, span) {
                    true => continue,
                    false => (Code::E0212, w),
                },
            };
            let text = format!("a size in the signature of `{function}` is {d} here, and sizes are at least 0");
            let mut report = Diagnostic::new(code, span, text);
            if w.is_known() && !w.values.is_empty() {
                report = report.witness(w.to_string());
            }
            if code == Code::E0212
                && let Some(help) = self.sizes.facts.advice_reach(&d, &zero)
            {
                report = report.help(help);
            }
            self.report(report);
            return false;
        }
        true
    }

    /// Compares a size with 0 when the program gets here; `false` for a size that no data decides.
    fn compared(&mut self, function: &str, d: &Size, before: &mut Vec<TStmt>, span: Span) -> bool {
        let data = d.vars().iter().any(|v| !v.rigid || !v.natural);
        let Some(value) = data.then(|| self.size_value(d, span)).flatten() else { return data };
        let text = format!("a size in the signature of `{function}` is {d} here, and it is negative");
        let message = TExpr { kind: TKind::Str(text.into()), ty: Ty::Str, span };
        let test = int_test(CmpOp::Ge, value, int(0, span), span);
        self.learn(&test, true);
        self.sizes.notes.push((span, format!("checked at run time: {d} >= 0")));
        before.push(TStmt::Assert { test, message: Some(message), span });
        true
    }
}

//! The sizes that a signature writes are at least 0: of a call that is required.

use super::cx::Cx;
use std::collections::BTreeSet;
use tessera_base::{Code, Diagnostic, Reach, Size, Span};
use tessera_core::sizes::each_dim;
use tessera_core::ty::Ty;

impl Cx<'_> {
    /// `Tensor[N - 2]` in the parameters or the result of `function` says N >= 2, and its body is checked for that. Here
    /// `types` are these types with the sizes of a call: proved, refused (`false`), or left to the function's entry.
    pub fn dims_hold<'t>(&mut self, function: &str, types: impl Iterator<Item = &'t Ty>, span: Span) -> bool {
        let mut dims: BTreeSet<Size> = BTreeSet::new();
        types.for_each(|ty| {
            each_dim(ty, &mut |d| {
                dims.insert(d.clone());
            })
        });
        let zero = Size::constant(0);
        for d in dims {
            let (code, w) = match d.reach_stated(&zero, &self.sizes.facts) {
                Reach::Always => continue,
                Reach::Never(w) => (Code::E0202, w),
                // The function itself compares it at its entry.
                Reach::Depends(_) if d.vars().iter().any(|v| !v.rigid || !v.natural) => {
                    self.sizes.at_least_zero_at_run_time(&d, span);
                    continue;
                }
                Reach::Depends(w) => (Code::E0212, w),
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
}

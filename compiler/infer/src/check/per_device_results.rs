//! What per-device code gives back, held against what its annotation says of how it lies.

use super::cx::Cx;
use super::misplaced::misplaced;
use tessera_core::layouts;
use tessera_core::ty::Ty;
use tessera_resolve::functions::FnLike;

impl Cx<'_> {
    /// Every tensor that is returned, against the annotation: parts and blocks are what they are said to be, and what differs
    /// between devices is not said to be the same, nor the other way around.
    pub fn results_lie(&mut self, f: &FnLike, stated: Option<&Ty>) {
        let Some(stated) = stated else { return };
        let returns = self.func.as_ref().map(|s| s.returns.clone()).unwrap_or_default();
        let stated = layouts::tensors(stated);
        for (ty, at) in returns {
            for (i, t) in layouts::tensors(&ty).into_iter().enumerate() {
                let said = stated.get(i).map(|t| t.sharding.clone()).unwrap_or_default();
                let Some((d, label)) = misplaced(&t, &said, &f.sig.name, at) else { continue };
                let d = d.here(t.to_string());
                self.report(match &f.sig.ret {
                    Some(e) => d.with_label(e.span, label),
                    None => d,
                });
            }
        }
    }
}

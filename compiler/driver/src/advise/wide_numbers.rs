//! Kernels that compute in 64 bits: half as many numbers fit in a register and come from memory in a second.

use super::{Facts, Finding, Rule, part, working};
use tessera_base::DType;

/// Of the time in 64 bits, what 32 bits take.
const HALF: f64 = 0.5;

pub fn find(facts: &Facts) -> Vec<Finding> {
    let mut out = vec![];
    for (called, sized, groups) in facts.graphs() {
        let g = &sized.graph;
        let is_wide = |id| g.ty(id).dtype == DType::F64 && g.ty(id).elems() != Some(1);
        let mut wide = working(g).filter(|(id, n)| is_wide(*id) && !n.origin.span.is_none());
        let Some((_, first)) = wide.next() else { continue };
        let cost = facts.kernels(sized, groups, &is_wide);
        out.push(Finding {
            rule: Rule::WideNumbers,
            span: first.origin.span,
            what: format!("`{}` computes in f64", called.name),
            edit: "use f32 where its 24 bits are enough: `x.to(f32)`, or make the tensors with `dtype=f32`".into(),
            cost,
            gain: part(cost, 1.0 - HALF),
        });
    }
    out
}

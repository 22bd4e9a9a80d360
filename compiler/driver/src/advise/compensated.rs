//! Sums of a policy that takes more operations for each number.

use super::{Facts, Finding, Rule, working};
use crate::roof::Roof;
use std::time::Duration;
use tessera_ir::graph::{Graph, Node, NodeId, Policy, Reason};
use tessera_ops::prim::Prim;

/// Of the most that the machine reaches, what a plain product or sum does.
const REACHED: f64 = 0.8;

pub fn find(facts: &Facts) -> Vec<Finding> {
    let mut out = vec![];
    let Some(roof) = facts.roof else { return out };
    for (called, sized, groups) in facts.graphs() {
        let g = &sized.graph;
        let is_sum = |id: NodeId| is_compensated(g.node(id));
        let sums: Vec<(NodeId, &Node)> = working(g).filter(|(id, _)| is_sum(*id)).collect();
        let Some((_, first)) = sums.first() else { continue };
        let cost = facts.kernels(sized, groups, &is_sum);
        // A product is two such sums, of the products and of what their rounding loses.
        let plain: f64 = sums.iter().map(|(_, n)| plainly(g, n, roof)).sum();
        out.push(Finding {
            rule: Rule::Compensated,
            span: first.origin.span,
            what: format!(
                "`{}` sums under the policy `kahan_sum`, which carries what each step rounds off",
                called.name
            ),
            edit: "keep the policy to the sums that need it: the default is as reproducible".into(),
            cost,
            // A roof of nothing, as a damaged file may have it, promises nothing.
            gain: cost.saturating_sub(Duration::try_from_secs_f64(plain * sized.calls as f64).unwrap_or(Duration::MAX)),
        });
    }
    out
}

fn is_compensated(n: &Node) -> bool {
    matches!(n.prim, Prim::Reduce { .. }) && n.policy == Policy::KahanSum && !n.origin.span.is_none()
}

/// Seconds that the sum takes under the default policy: of a product one of two sums, whose numbers are not in memory.
fn plainly(g: &Graph, n: &Node, roof: &Roof) -> f64 {
    let from = g.ty(n.operands[0]);
    let elems = from.elems().unwrap_or(0) as f64;
    match n.origin.reason {
        Some(Reason::Pass(_)) => elems / (roof.flops * REACHED),
        _ => elems * from.dtype.bytes() as f64 / (roof.bytes * REACHED),
    }
}

//! Values that are computed in every call, of arguments that are the same in all of them.

use super::{Facts, Finding, Rule, part, working};
use crate::called::Sized;
use std::collections::BTreeSet;
use tessera_base::Span;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::prim::{Site, row};
use tessera_ops::prim::Prim;

pub fn find(facts: &Facts) -> Vec<Finding> {
    let mut out = vec![];
    for (called, sized, groups) in facts.graphs().filter(|(_, s, _)| s.calls > 1) {
        let (fixed, g) = (fixed(sized), &sized.graph);
        let Some(span) = costliest(g, &fixed) else { continue };
        let cost = facts.kernels(sized, groups, &|id| fixed.contains(&id));
        // In kernels that compute other values, too, by the operations of each.
        let rest = facts.kernels(sized, groups, &|id| !fixed.contains(&id));
        let all = facts.kernels(sized, groups, &|_| true);
        let both = (cost + rest).saturating_sub(all);
        let calls = sized.calls;
        out.push(Finding {
            rule: Rule::SameArguments,
            span,
            what: format!("this is computed {calls} times in `{}`, of values that are the same each time", called.name),
            edit: "compute it once, before the loop, and keep the result".into(),
            cost,
            gain: part(cost.saturating_sub(both), 1.0 - 1.0 / calls as f64),
        });
    }
    out
}

/// The nodes that depend on nothing that differs between calls.
fn fixed(sized: &Sized) -> BTreeSet<NodeId> {
    let mut out = BTreeSet::new();
    for id in sized.graph.ids() {
        let n = sized.graph.node(id);
        let is_fixed = match n.prim {
            Prim::Input(i) => sized.same.get(i as usize).copied().unwrap_or(false),
            _ => n.operands.iter().all(|o| out.contains(o)),
        };
        if is_fixed {
            out.insert(id);
        }
    }
    out
}

/// Where the most is computed of these nodes.
fn costliest(g: &Graph, nodes: &BTreeSet<NodeId>) -> Option<Span> {
    let cost = |id: NodeId| row(&g.node(id).prim).cost(Site { g, node: g.node(id) }).operations;
    let all = working(g).filter(|(id, n)| nodes.contains(id) && !n.origin.span.is_none());
    all.max_by_key(|(id, _)| (cost(*id), std::cmp::Reverse(*id))).map(|(_, n)| n.origin.span)
}

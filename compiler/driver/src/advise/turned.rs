//! Kernels that only bring a tensor into another order.

use super::{Facts, Finding, Rule, span_of};
use std::time::Duration;
use tessera_ir::group::Role;
use tessera_ir::prim::{Site, row};
use tessera_ops::prim::Prim;
use tessera_runtime::profile::Kind;

pub fn find(facts: &Facts) -> Vec<Finding> {
    let mut out = vec![];
    for (called, sized, groups) in facts.graphs() {
        let g = &sized.graph;
        let is_view = |id| row(&g.node(id).prim).role(Site { g, node: g.node(id) }) == Role::View;
        let turns = |id| matches!(g.node(id).prim, Prim::Transpose { .. });
        let copies =
            groups.iter().filter(|c| c.members.iter().all(|m| is_view(*m)) && c.members.iter().any(|m| turns(*m)));
        for copy in copies {
            let span = g.node(copy.roots[0]).origin.span;
            let rows = facts
                .profile
                .rows
                .iter()
                .filter(|r| r.kind == Kind::Step && span_of(r) == span && r.name.contains("transpose"));
            let (mut runs, mut cost, mut longest) = (0, Duration::ZERO, Duration::ZERO);
            for r in rows {
                (runs, cost) = (runs + r.times.len(), cost + r.time());
                longest = r.times.iter().copied().max().unwrap_or_default().max(longest);
            }
            let cost = cost.min(sized.time);
            out.push(Finding {
                rule: Rule::Turned,
                span,
                what: format!("`{}` copies a tensor into another order, {runs} times", called.name),
                edit: "keep it in the order in which it is read: turn it once, where it is made".into(),
                cost,
                // Once it is still turned, into memory that was not there.
                gain: cost.saturating_sub(longest),
            });
        }
    }
    out
}

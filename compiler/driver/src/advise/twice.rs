//! A value that is computed by itself, and again beside its derivative.

use super::{Facts, Finding, Rule, part, place, working};
use crate::called::Called;
use std::collections::BTreeSet;
use tessera_base::Span;
use tessera_ir::graph::{Graph, Node, NodeId, Reason};
use tessera_ir::prim::{Site, row};

/// Of what it computes, what a derivative has too, at least.
const SHARED_MIN: f64 = 0.25;

pub fn find(facts: &Facts) -> Vec<Finding> {
    let shared = |c: &Called| facts.calls.iter().map(|d| shared(d, c)).fold(0.0, f64::max);
    let all = facts.calls.iter().map(|c| (c, shared(c)));
    all.filter(|(_, shared)| *shared >= SHARED_MIN).map(|(c, shared)| finding(c, shared)).collect()
}

fn derives(g: &Graph) -> bool {
    g.nodes.iter().any(|n| matches!(n.origin.reason, Some(Reason::Derivative | Reason::Again(_))))
}

/// Of what `small` computes, the part that `large` computes beside derivatives, where it is called as often.
fn shared(large: &Called, small: &Called) -> f64 {
    let (Some(a), Some(b)) = (large.sized.first(), small.sized.first()) else { return 0.0 };
    let (a, b) = (&*a.graph, &*b.graph);
    if !derives(a) || derives(b) || large.calls() != small.calls() {
        return 0.0;
    }
    // Derivatives have the places of what they are of.
    let own = working(a).filter(|(_, n)| n.origin.reason != Some(Reason::Derivative));
    let there: BTreeSet<(Span, &[u64])> = own.map(|(_, n)| (n.origin.span, &n.ty.shape[..])).collect();
    let cost = |(_, n): &(NodeId, &Node)| row(&n.prim).cost(Site { g: b, node: n }).operations;
    let is_there = |(_, n): &(NodeId, &Node)| there.contains(&(n.origin.span, &n.ty.shape[..]));
    let all: u64 = working(b).map(|n| cost(&n)).sum();
    let both: u64 = working(b).filter(|n| !n.1.origin.span.is_none()).filter(is_there).map(|n| cost(&n)).sum();
    both as f64 / all.max(1) as f64
}

fn finding(c: &Called, shared: f64) -> Finding {
    let cost = c.making() + c.time();
    Finding {
        rule: Rule::Twice,
        span: place(c),
        what: format!("what `{}` computes here is computed again with its derivative", c.name),
        edit: "take both from one call: `value, slope = autodiff.value_and_grad(f)(…)`".into(),
        cost,
        gain: part(cost, shared),
    }
}

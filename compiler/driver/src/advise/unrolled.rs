//! A loop inside tensor code that is written out: each turn is traced and compiled. Turns that are alike become a loop by
//! themselves; these differ in their sizes.

use super::{Facts, Finding, Rule, part, working};
use crate::called::Called;
use std::collections::BTreeMap;
use tessera_base::Span;
use tessera_ir::prim::row;

/// Turns from which on a loop is worth keeping.
const TURNS_MIN: usize = 16;

pub fn find(facts: &Facts) -> Vec<Finding> {
    facts.calls.iter().filter_map(finding).collect()
}

/// The operation that is there most often from one place.
fn turns(c: &Called) -> Option<(usize, Span)> {
    let graph = &c.sized.first()?.graph;
    let mut count: BTreeMap<(Span, String), usize> = BTreeMap::new();
    for (_, n) in working(graph).filter(|(_, n)| !n.origin.span.is_none()) {
        *count.entry((n.origin.span, row(&n.prim).word().into_owned())).or_default() += 1;
    }
    let ((span, _), turns) = count.into_iter().max_by_key(|((span, _), n)| (*n, std::cmp::Reverse(*span)))?;
    Some((turns, span))
}

fn finding(c: &Called) -> Option<Finding> {
    let (turns, span) = turns(c).filter(|(turns, _)| *turns >= TURNS_MIN)?;
    Some(Finding {
        rule: Rule::Unrolled,
        span,
        what: format!("in `{}` this is written out {turns} times, and each of them is compiled", c.name),
        edit: "give all turns the same sizes (with a mask where they differ): `op.fori`, `op.scan` or `autodiff.vmap` keep the loop"
            .into(),
        cost: c.making() + c.time(),
        gain: part(c.making(), 1.0 - 1.0 / turns as f64),
    })
}

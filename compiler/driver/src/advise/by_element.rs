//! Numbers of a tensor that host code takes one at a time, and computes with as tensors: each is a call of tensor code.

use super::{Facts, Finding, Rule, place};
use crate::called::{Called, Sized};
use std::time::Duration;

/// Calls from which on it is a loop over elements.
const CALLS_MIN: u64 = 64;

pub fn find(facts: &Facts) -> Vec<Finding> {
    let host = facts.host_time();
    facts.calls.iter().filter(|c| is_of_elements(c)).map(|c| finding(c, host)).collect()
}

/// Whether all that the calls compute with are single numbers.
pub fn is_of_elements(c: &Called) -> bool {
    let single = |s: &Sized| {
        let g = &s.graph;
        let results = super::working(g).map(|(id, _)| id).chain(g.outputs.iter().copied());
        let mut all = results.map(|id| g.ty(id).elems()).chain(g.inputs.iter().map(|i| i.ty.elems()));
        g.inputs.iter().any(|i| !i.scalar) && all.all(|n| n == Some(1))
    };
    c.calls() >= CALLS_MIN && c.sized.iter().all(single)
}

/// `host`: what host code takes around a call.
fn finding(c: &Called, host: Duration) -> Finding {
    let cost = c.making() + c.time() + host.mul_f64(c.calls() as f64);
    Finding {
        rule: Rule::ByElement,
        span: place(c),
        what: format!("single numbers are tensors here, and each of {} is a call of tensor code", c.calls()),
        edit: "compute with the whole tensor, or take all numbers out at once: `for v in x.tolist():`".into(),
        cost,
        gain: cost,
    }
}

//! Tensor code that is called so often, and computes so little, that calling it takes the time.

use super::{Facts, Finding, Rule, place};
use crate::called::Called;
use crate::profile::shown;
use std::time::Duration;

/// Calls from which on it is a loop.
const CALLS_MIN: u64 = 200;
/// Of its time, what is not in kernels, at least.
const AROUND_MIN: f64 = 0.3;

pub fn find(facts: &Facts) -> Vec<Finding> {
    let many = |c: &&Called| c.calls() >= CALLS_MIN && !c.on_mesh && !super::by_element::is_of_elements(c);
    let around = |c: &&Called| c.time().saturating_sub(c.kernels).as_secs_f64() >= AROUND_MIN * c.time().as_secs_f64();
    let host = facts.host_time();
    facts.calls.iter().filter(many).filter(around).map(|c| finding(c, host)).collect()
}

/// `host`: what host code takes around a call.
fn finding(c: &Called, host: Duration) -> Finding {
    let calls = c.calls();
    let time = c.time() + host.mul_f64(calls as f64);
    let around = time.saturating_sub(c.kernels);
    let each = shown(time.div_f64(calls as f64));
    Finding {
        rule: Rule::SmallCalls,
        span: place(c),
        what: format!(
            "`{}` was called {calls} times, {each} each, of which its kernels take {:.0} %",
            c.name,
            100.0 * c.kernels.as_secs_f64() / time.as_secs_f64().max(1e-12)
        ),
        edit: "have the loop in tensor code: `op.fori(0, n, step, state)` or `op.scan` in one function".into(),
        cost: time,
        gain: around,
    }
}

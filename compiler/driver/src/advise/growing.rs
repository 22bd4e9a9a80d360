//! A tensor that a loop makes longer with `op.concat`: each turn copies all of it.

use super::{Facts, Finding, Rule, part, place};
use crate::called::Called;
use tessera_ops::prim::Prim;

/// Lengths from which on it grows.
const LENGTHS_MIN: usize = 8;

pub fn find(facts: &Facts) -> Vec<Finding> {
    facts.calls.iter().filter(|c| grows(c)).map(finding).collect()
}

/// Whether the calls join something to an argument that is longer each time.
pub fn grows(c: &Called) -> bool {
    let joins = |s: &crate::called::Sized| {
        s.graph.nodes.iter().any(|n| {
            let input = |o: &tessera_ir::graph::NodeId| matches!(s.graph.node(*o).prim, Prim::Input(_));
            matches!(n.prim, Prim::Concat { .. }) && n.operands.first().is_some_and(input)
        })
    };
    let bytes: Vec<u64> = c.sized.iter().map(output_bytes).collect();
    c.sized.len() >= LENGTHS_MIN && bytes.windows(2).all(|w| w[0] < w[1]) && c.sized.iter().all(joins)
}

fn output_bytes(s: &crate::called::Sized) -> u64 {
    s.graph.outputs.iter().map(|&o| s.graph.ty(o).bytes().unwrap_or(0)).sum()
}

fn finding(c: &Called) -> Finding {
    // What all turns write, against what one join of all parts writes.
    let written: u64 = c.sized.iter().map(|s| s.calls * output_bytes(s)).sum();
    let once = c.sized.iter().map(output_bytes).max().unwrap_or(0);
    let cost = c.making() + c.time();
    let kept = once as f64 / written.max(1) as f64;
    let turns = 1.0 / c.sized.len() as f64;
    Finding {
        rule: Rule::Growing,
        span: place(c),
        what: format!("`op.concat` makes a tensor longer in {} turns, and copies all of it in each", c.calls()),
        edit: "append the parts to a list in the loop, and join them once behind it: `op.concat(parts)`".into(),
        cost,
        gain: part(cost, 1.0 - kept.max(turns)),
    }
}

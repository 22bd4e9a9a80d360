//! Where the devices of a mesh meet: exchanges, and loops that have some.

use std::collections::BTreeSet;
use tessera_abi::plan::{Plan, Step};
use tessera_ir::graph::{Graph, Node};
use tessera_ops::prim::{Exchange, Prim};

/// Exchanges and loops, in their order.
fn meetings(g: &Graph) -> impl Iterator<Item = &Node> {
    g.nodes.iter().filter(|n| matches!(n.prim, Prim::Exchange(_) | Prim::Scan { .. }))
}

/// The tags of the exchanges, those of loops among them.
pub fn tags(g: &Graph) -> Vec<u32> {
    exchanges(g).into_iter().map(|e| e.tag).collect()
}

/// What has to be there: nobody may wait for a device that does not come. Devices that have no part in a loop do not
/// run its exchanges, with which nobody outside of it has to do.
pub fn agree(graphs: &[Graph], first: usize) -> bool {
    let all: Vec<BTreeSet<u32>> = graphs.iter().map(|g| tags(g).into_iter().collect()).collect();
    let comes = |peer: u64, tag: u32| {
        let known = (peer as usize).checked_sub(first).and_then(|i| all.get(i));
        known.is_none_or(|tags| tags.contains(&tag))
    };
    let met = |e: &Exchange| e.sends.iter().chain(&e.receives).all(|t| comes(t.peer, e.tag));
    graphs.iter().all(|g| exchanges(g).into_iter().all(met))
}

/// The exchanges, those of loops among them.
fn exchanges(g: &Graph) -> Vec<&Exchange> {
    let mut out = vec![];
    for n in meetings(g) {
        match &n.prim {
            Prim::Exchange(e) => out.push(&**e),
            Prim::Scan { body, .. } => out.extend(g.bodies.get(*body as usize).map(exchanges).unwrap_or_default()),
            _ => {}
        }
    }
    out
}

/// Batches of exchanges must come in one order on all devices, each in one piece, and none may be missing: otherwise
/// devices would wait for each other.
pub fn in_order(g: &Graph, plan: &Plan) -> bool {
    let mut names: Vec<String> = vec![];
    // The batch that the last one was of, and the least that may follow.
    let (mut now, mut next) = (None, 0);
    for n in meetings(g) {
        let Prim::Exchange(e) = &n.prim else {
            names.push("scan".into());
            now = None;
            continue;
        };
        if now == Some(e.batch) {
            continue;
        }
        if e.batch < next {
            return false;
        }
        names.push(e.name.to_string());
        (now, next) = (Some(e.batch), e.batch.saturating_add(1));
    }
    let planned = plan.steps.iter().filter_map(|s| match s {
        Step::Native { name, .. } if names.iter().any(|n| **n == **name) => Some(&**name),
        _ => None,
    });
    planned.eq(names.iter().map(String::as_str))
}

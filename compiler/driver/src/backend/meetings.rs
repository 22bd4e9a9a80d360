//! Where the devices of a mesh meet: exchanges, and loops that have some.

use tessera_abi::plan::{Plan, Step};
use tessera_ir::graph::{Graph, Node};
use tessera_ops::prim::Prim;

/// Exchanges and loops, in their order.
fn meetings(g: &Graph) -> impl Iterator<Item = &Node> {
    g.nodes.iter().filter(|n| matches!(n.prim, Prim::Exchange(_) | Prim::Scan { .. }))
}

/// The tags of the exchanges, those of loops among them.
pub fn tags(g: &Graph) -> Vec<u32> {
    let of = |n: &Node| match &n.prim {
        Prim::Exchange(e) => vec![e.tag],
        Prim::Scan { body, .. } => g.bodies.get(*body as usize).map(tags).unwrap_or_default(),
        _ => vec![],
    };
    meetings(g).flat_map(of).collect()
}

/// Exchanges must come in one order on all devices, and none may be missing: otherwise devices would wait for
/// each other.
pub fn in_order(g: &Graph, plan: &Plan) -> bool {
    let name = |n: &Node| if let Prim::Exchange(e) = &n.prim { e.name.to_string() } else { "scan".into() };
    let names: Vec<String> = meetings(g).map(name).collect();
    let planned = plan.steps.iter().filter_map(|s| match s {
        Step::Native { name, .. } if names.iter().any(|n| **n == **name) => Some(&**name),
        _ => None,
    });
    tags(g).is_sorted() && planned.eq(names.iter().map(String::as_str))
}

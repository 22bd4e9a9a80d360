//! Copies of nodes in a graph, and inputs for them.

use std::collections::BTreeMap;
use tessera_ir::graph::{Graph, Input, Node, NodeId, NodeType, Origin, Policy, Reason};
use tessera_ops::prim::Prim;

/// Adds an input.
pub fn input(g: &mut Graph, name: &str, ty: NodeType) -> NodeId {
    let n = g.inputs.len() as u32;
    g.inputs.push(Input { name: name.into(), ty: ty.clone(), scalar: false });
    let (origin, policy) = (Origin::default(), Policy::default());
    g.push(Node { prim: Prim::Input(n), operands: vec![], ty, results: vec![], origin, policy })
}

/// Copies nodes to the end of `g`; gives the copies. Inputs become `values`, and nodes that are
/// not copied keep their number. The bodies of loops are those of `g` unless others are given. With
/// a number, the copies are marked as a computation of their own.
pub fn copy_into(
    g: &mut Graph,
    nodes: Vec<(NodeId, Node)>,
    bodies: Option<&[Graph]>,
    values: &[NodeId],
    again: Option<u32>,
) -> BTreeMap<NodeId, NodeId> {
    let mut copied: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    for (id, mut node) in nodes {
        if let Prim::Input(n) = node.prim {
            if let Some(&value) = values.get(n as usize) {
                copied.insert(id, value);
            }
            continue;
        }
        for o in &mut node.operands {
            *o = copied.get(o).copied().unwrap_or(*o);
        }
        if let Prim::Scan { body, .. } = &mut node.prim
            && let Some(inner) = bodies.unwrap_or(&g.bodies).get(*body as usize).cloned()
        {
            g.bodies.push(inner);
            *body = g.bodies.len() as u32 - 1;
        }
        if let Some(number) = again {
            node.origin.reason = Some(Reason::Again(number));
        }
        // Hints of kernels are for the values of the program.
        node.origin.kernel = None;
        copied.insert(id, g.push(node));
    }
    copied
}

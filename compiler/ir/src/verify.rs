//! The verifier of Graph IR: what every pass may rely on.

use crate::graph::{Graph, Node};
use crate::prim::{Site, row};
use tessera_ops::prim::Prim;
use tessera_ops::reference::TypeRef;

/// What is wrong with a graph, one line a node.
pub fn verify(g: &Graph) -> Vec<String> {
    let mut found = vec![];
    let mut inputs = 0;
    for id in g.ids() {
        let n = g.node(id);
        if let Some(bad) = n.operands.iter().find(|o| o.0 >= id.0) {
            found.push(format!("{id}: its operand {bad} does not come before it"));
            continue;
        }
        if n.ty.bytes().is_none() {
            found.push(format!("{id}: {} has more than 2^64 bytes", n.ty));
            continue;
        }
        inputs += usize::from(matches!(n.prim, Prim::Input(_)));
        if let Err(why) = check(g, n) {
            found.push(format!("{id}: {why}"));
        }
    }
    if inputs != g.inputs.len() {
        found.push(format!("{} inputs are declared, {inputs} have a node", g.inputs.len()));
    }
    found.extend(
        g.outputs.iter().filter(|o| o.0 as usize >= g.nodes.len()).map(|o| format!("the output {o} does not exist")),
    );
    for (i, body) in g.bodies.iter().enumerate() {
        found.extend(verify(body).into_iter().map(|f| format!("body {i}: {f}")));
    }
    found
}

fn check(g: &Graph, n: &Node) -> Result<(), String> {
    let row = row(&n.prim);
    let types: Vec<TypeRef> =
        n.operands.iter().map(|&o| TypeRef { dtype: g.ty(o).dtype, shape: &g.ty(o).shape }).collect();
    row.shape(&types, TypeRef { dtype: n.ty.dtype, shape: &n.ty.shape })?;
    row.stands(Site { g, node: n })
}

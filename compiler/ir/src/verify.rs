//! The verifier of Graph IR: what every pass may rely on.

use crate::graph::{Graph, Node, NodeId, NodeType};
use tessera_ops::prim::Prim;
use tessera_ops::reference;

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
        if let Err(why) = check(g, n, &mut inputs) {
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

fn check(g: &Graph, n: &Node, inputs: &mut usize) -> Result<(), String> {
    let operand = |i: usize| n.operands.get(i).map(|&o| g.ty(o)).ok_or_else(|| format!("operand {i} is missing"));
    match &n.prim {
        Prim::Input(i) => {
            *inputs += 1;
            let input = g.inputs.get(*i as usize).ok_or_else(|| format!("input {i} is not declared"))?;
            // How it lies is the caller's.
            if input.ty.anywhere() == n.ty.anywhere() {
                Ok(())
            } else {
                Err(format!("input {i} is declared as {}, used as {}", input.ty, n.ty))
            }
        }
        Prim::Scan { body, carry, sequences, trips } => scan(g, n, *body, *carry, *sequences, *trips),
        Prim::Get { index } => {
            let source = n.operands.first().map(|&o| g.node(o)).ok_or("the operand is missing")?;
            match source.results.get(*index) {
                Some(ty) if *ty == n.ty => Ok(()),
                Some(ty) => Err(format!("result {index} is {ty}, not {}", n.ty)),
                None => Err(format!("there is no result {index}")),
            }
        }
        prim => {
            operand(0).map(|_| ()).or_else(|e| if n.operands.is_empty() { Ok(()) } else { Err(e) })?;
            let types: Vec<reference::TypeRef> = n
                .operands
                .iter()
                .map(|&o| reference::TypeRef { dtype: g.ty(o).dtype, shape: &g.ty(o).shape })
                .collect();
            reference::shape_check(prim, &types, reference::TypeRef { dtype: n.ty.dtype, shape: &n.ty.shape })
        }
    }
}

/// Carries keep their types; sequences lose their leading dim inside; the results are the
/// carries and the stacked outputs.
fn scan(g: &Graph, n: &Node, body: u32, carry: usize, sequences: usize, trips: u64) -> Result<(), String> {
    let body = g.bodies.get(body as usize).ok_or("its body does not exist")?;
    if body.inputs.len() != n.operands.len() {
        return Err(format!("its body has {} inputs for {} operands", body.inputs.len(), n.operands.len()));
    }
    for (i, (&o, input)) in n.operands.iter().zip(&body.inputs).enumerate() {
        let outside: &NodeType = g.ty(o);
        let inside = if (carry..carry + sequences).contains(&i) {
            if outside.shape.first() != Some(&trips) {
                return Err(format!("sequence {i} has no leading dim of {trips}"));
            }
            NodeType::new(outside.shape[1..].to_vec(), outside.dtype)
        } else {
            outside.anywhere()
        };
        if inside != input.ty {
            return Err(format!("operand {i} is {inside} inside, the body declares {}", input.ty));
        }
    }
    let expected: Vec<NodeType> = body
        .outputs
        .iter()
        .enumerate()
        .map(|(i, &o): (usize, &NodeId)| {
            let ty = body.ty(o);
            if i < carry { ty.anywhere() } else { ty.stacked(trips) }
        })
        .collect();
    if expected == n.results { Ok(()) } else { Err("its results are not those of its body".into()) }
}

//! Tangents through loops that end by themselves, or have such loops inside: a second loop carries them beside the state.

use super::{pushforward, through};
use crate::copies::{copy_into, input};
use crate::reverse::{Blocked, active, active_inputs};
use std::collections::BTreeSet;
use std::ops::Range;
use tessera_ir::graph::{Graph, NodeId, NodeType};
use tessera_ir::writer::{Writer, smooth, zeros_like};
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Id, expand};

/// Such loops between what has a tangent and the outputs, in the order of the graph.
pub fn loops(g: &Graph, outputs: &[NodeId], tangents: &[(NodeId, NodeId)]) -> Vec<NodeId> {
    let ends = |id: &NodeId| ends_by_itself(g, *id);
    if !g.ids().any(|id| ends(&id)) {
        return vec![];
    }
    let wrt: Vec<NodeId> = tangents.iter().map(|t| t.0).collect();
    let first = wrt.iter().min().copied().unwrap_or(NodeId(0));
    let reached = active(g, &wrt, first, NodeId(g.nodes.len() as u32));
    let (mut read, mut todo) = (BTreeSet::new(), outputs.to_vec());
    while let Some(id) = todo.pop() {
        if read.insert(id) {
            todo.extend(&g.node(id).operands);
        }
    }
    read.into_iter().filter(|id| reached.contains(id) && ends(id)).collect()
}

fn ends_by_itself(g: &Graph, id: NodeId) -> bool {
    let inside = |body: u32| g.bodies.get(body as usize).is_some_and(|b| b.ids().any(|id| ends_by_itself(b, id)));
    matches!(g.node(id).prim, Prim::Scan { until, body, .. } if until || inside(body))
}

/// What the loop's results have as tangents: pairs of a result and its tangent.
pub fn tangents(g: &mut Graph, id: NodeId, known: &[(NodeId, NodeId)]) -> Result<Vec<(NodeId, NodeId)>, Blocked> {
    let node = g.node(id).clone();
    let Prim::Scan { body, carry, sequences, trips, reversed, until } = node.prim else { return Ok(vec![]) };
    let Some(inner) = g.bodies.get(body as usize).cloned() else { return Ok(vec![]) };
    let given = through(g, &node.operands, known)?;
    let on = active_inputs(&inner, given.iter().map(Option::is_some).collect(), carry);
    let Moving { body: wide, results: moving } =
        Moving::of(&inner, &on, (carry, sequences)).map_err(|b| Blocked { node: id, why: b.why })?;
    let mut w = Writer::of(g, &node.origin, node.policy);
    let mut operands = vec![];
    let mut counts = vec![];
    for part in parts(carry, sequences, on.len()) {
        let before = operands.len();
        operands.extend(&node.operands[part.clone()]);
        for i in part.filter(|&i| on[i]) {
            operands.push(given[i].unwrap_or_else(|| zeros_like(&mut w, node.operands[i])));
        }
        counts.push(operands.len() - before);
    }
    let (carried, rows) = (counts[0], counts[1]);
    let result = |(i, &o): (usize, &NodeId)| {
        let ty = wide.ty(o);
        if i < carried { ty.unsharded() } else { ty.stacked(trips) }
    };
    let results: Vec<NodeType> = wide.outputs.iter().enumerate().map(result).collect();
    let Some(first) = results.first().cloned() else { return Ok(vec![]) };
    w.graph.bodies.push(wide);
    let body = w.graph.bodies.len() as u32 - 1;
    let prim = Prim::Scan { body, carry: carried, sequences: rows, trips, reversed, until };
    let looped = w.node(prim, operands, first, results);
    let gets = |g: &Graph, index: usize| -> Vec<NodeId> {
        let is_it = |n: &NodeId| g.node(*n).operands.first() == Some(&id) && g.node(*n).prim == Prim::Get { index };
        g.ids().filter(is_it).collect()
    };
    let mut out = vec![];
    // A result that nothing moves has a tangent of zero: the way back ends there, too.
    for index in 0..node.results.len() {
        for get in gets(w.graph, index).into_iter().filter(|_| smooth(node.results[index].dtype)) {
            let moved = moving.iter().find(|(i, _)| *i == index).and_then(|(_, at)| w.get(looped, *at));
            let tangent = moved.unwrap_or_else(|| zeros_like(&mut w, get));
            out.push((get, tangent));
            // Rows of a batch have their turns in front; turned round they are what a derivative is stated of.
            let turned = w.graph.ids().filter(|n| w.graph.node(*n).operands == [get]);
            let turned: Vec<(NodeId, Vec<usize>)> = turned
                .filter_map(|n| match &w.graph.node(n).prim {
                    Prim::Transpose { perm } => Some((n, perm.clone())),
                    _ => None,
                })
                .collect();
            for (n, perm) in turned {
                out.push((n, NodeId(expand::transpose(&mut w, Id(tangent.0), &perm).0)));
            }
        }
    }
    Ok(out)
}

/// Carries, sequences and constants among so many operands.
fn parts(carry: usize, sequences: usize, count: usize) -> [Range<usize>; 3] {
    [0..carry, carry..carry + sequences, carry + sequences..count]
}

/// A body that takes tangents as well: behind the carries, behind the elements of sequences, and behind the constants.
struct Moving {
    body: Graph,
    /// Results that have a tangent, and where that is among those of the body.
    results: Vec<(usize, usize)>,
}

impl Moving {
    /// `on`: which inputs have tangents.
    fn of(inner: &Graph, on: &[bool], (carry, sequences): (usize, usize)) -> Result<Moving, Blocked> {
        let (kernels, memory) = (inner.kernels.clone(), inner.memory);
        let mut out = Graph { name: inner.name.clone(), kernels, memory, ..Graph::default() };
        let (mut values, mut pairs) = (vec![], vec![]);
        for part in parts(carry, sequences, on.len()) {
            let given = part.clone().map(|i| input(&mut out, &inner.inputs[i].name, inner.inputs[i].ty.clone()));
            values.extend(given.collect::<Vec<_>>());
            for i in part.filter(|&i| on[i]) {
                pairs.push((values[i], input(&mut out, "tangent", inner.inputs[i].ty.clone())));
            }
        }
        let nodes = inner.ids().map(|id| (id, inner.node(id).clone())).collect();
        let copied = copy_into(&mut out, nodes, Some(&inner.bodies), &values, None);
        let all: Vec<NodeId> = inner.ids().collect();
        let statements = inner.derivatives.copied(&all, &|id| copied.get(&id).copied());
        out.derivatives.extend(statements);
        let outputs: Vec<NodeId> = inner.outputs.iter().map(|o| copied[o]).collect();

        let has = |k: &usize| if *k < carry { on[*k] } else { smooth(out.ty(outputs[*k]).dtype) };
        let wanted: Vec<usize> = (0..outputs.len()).filter(has).collect();
        let ends: Vec<NodeId> = wanted.iter().map(|&k| outputs[k]).collect();
        let made = pushforward(&mut out, &ends, &pairs)?;
        let mut w = Writer::new(&mut out, Default::default());
        let made: Vec<NodeId> =
            made.into_iter().zip(&ends).map(|(t, &o)| t.unwrap_or_else(|| zeros_like(&mut w, o))).collect();
        let carries = wanted.iter().filter(|k| **k < carry).count();
        let (first, rest) = made.split_at(carries);
        let place = |(n, &k): (usize, &usize)| (k, if n < carries { carry + n } else { outputs.len() + n });
        let results = wanted.iter().enumerate().map(place).collect();
        out.outputs = [&outputs[..carry], first, &outputs[carry..], rest].concat();
        Ok(Moving { body: out, results })
    }
}

//! The meaning of Graph IR: runs a graph node by node through the reference kernels.
//!
//! Compiled code gives the same bits. Values are dropped after their last reader.

use crate::graph::{Graph, NodeId, NodeType, Policy};
use crate::reference;
use std::borrow::Cow;
use tessera_base::Span;
use tessera_ops::prim::Prim;
use tessera_ops::reference::{ArrayRef, EvalError, Summation};

/// Why a graph stopped: the node, in the graph or in a loop's body, and what its kernel said (an index out of range).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stopped {
    pub node: NodeId,
    /// Where the node comes from.
    pub span: Span,
    pub error: EvalError,
}

/// The bytes of each output. `inputs[i]` holds the bytes of input `i`, row-major (a host scalar
/// as one element of its type).
pub fn run(g: &Graph, inputs: &[&[u8]]) -> Result<Vec<Vec<u8>>, Stopped> {
    // Readers that are still to come; what no output needs has none and does not run.
    let mut left = vec![0usize; g.nodes.len()];
    for o in &g.outputs {
        left[o.0 as usize] += 1;
    }
    for (i, n) in g.nodes.iter().enumerate().rev() {
        if left[i] > 0 {
            for o in &n.operands {
                left[o.0 as usize] += 1;
            }
        }
    }
    let mut values: Vec<Vec<Cow<[u8]>>> = vec![vec![]; g.nodes.len()];
    for id in g.ids() {
        let n = g.node(id);
        if left[id.0 as usize] == 0 {
            continue;
        }
        let stop = |error: EvalError| Stopped { node: id, span: n.origin.span, error };
        let value = match &n.prim {
            Prim::Input(i) => {
                let bytes = inputs.get(*i as usize).ok_or_else(|| stop(format!("input {i} is missing").into()))?;
                vec![Cow::Borrowed(*bytes)]
            }
            Prim::Get { index } => {
                let source = n.operands.first().and_then(|o| values[o.0 as usize].get(*index));
                vec![source.cloned().ok_or_else(|| stop(format!("there is no result {index}").into()))?]
            }
            Prim::Scan { body, carry, sequences, trips, reversed, until } => {
                let body = g.bodies.get(*body as usize).ok_or_else(|| stop("the body is missing".to_owned().into()))?;
                let operands: Vec<&[u8]> = n.operands.iter().map(|o| first(&values, *o)).collect();
                scan(body, &operands, (*carry, *sequences), (*trips, *reversed, *until))
                    .map_err(|e| Stopped { node: id, ..e })?
                    .into_iter()
                    .map(Cow::Owned)
                    .collect()
            }
            prim => {
                let operands: Vec<ArrayRef> = n
                    .operands
                    .iter()
                    .map(|&o| ArrayRef { dtype: g.ty(o).dtype, shape: &g.ty(o).shape, bytes: first(&values, o) })
                    .collect();
                let made = reference::eval_summing(prim, &operands, n.ty.dtype, &n.ty.shape, summation(n.policy));
                vec![Cow::Owned(made.map_err(stop)?)]
            }
        };
        values[id.0 as usize] = value;
        for o in &n.operands {
            let count = &mut left[o.0 as usize];
            *count -= 1;
            if *count == 0 {
                values[o.0 as usize].clear();
            }
        }
    }
    Ok(g.outputs.iter().map(|&o| first(&values, o).to_vec()).collect())
}

/// How sums are formed under a policy. `fast` allows any order, so it takes the canonical one.
pub fn summation(policy: Policy) -> Summation {
    match policy {
        Policy::Deterministic | Policy::Fast => Summation::Canonical,
        Policy::KahanSum => Summation::Compensated,
    }
}

fn first<'a>(values: &'a [Vec<Cow<[u8]>>], id: NodeId) -> &'a [u8] {
    values[id.0 as usize].first().map_or(&[], |c| c)
}

/// Bytes of one value of a type that the verifier accepted.
fn bytes_of(ty: &NodeType) -> usize {
    ty.bytes().unwrap_or(0) as usize
}

/// Whether a loop that ends by itself has another turn: what it carries first.
pub(crate) fn goes_on(state: &[Vec<u8>]) -> bool {
    state.first().is_some_and(|flag| flag.first().is_some_and(|&b| b != 0))
}

/// Carries, then stacked outputs.
fn scan(
    body: &Graph,
    operands: &[&[u8]],
    (carry, sequences): (usize, usize),
    (trips, reversed, until): (u64, bool, bool),
) -> Result<Vec<Vec<u8>>, Stopped> {
    let mut state: Vec<Vec<u8>> = operands[..carry].iter().map(|b| b.to_vec()).collect();
    let trips = trips as usize;
    let mut stacked: Vec<Vec<u8>> =
        body.outputs[carry..].iter().map(|&o| vec![0; bytes_of(body.ty(o)) * trips]).collect();
    for t in (0..trips).map(|t| if reversed { trips - 1 - t } else { t }) {
        if until && !goes_on(&state) {
            break;
        }
        let mut inputs: Vec<&[u8]> = state.iter().map(Vec::as_slice).collect();
        for (i, operand) in operands.iter().enumerate().skip(carry) {
            let one = bytes_of(&body.inputs[i].ty);
            inputs.push(if i < carry + sequences { &operand[t * one..(t + 1) * one] } else { operand });
        }
        let mut outputs = run(body, &inputs)?;
        for (all, one) in stacked.iter_mut().zip(outputs.drain(carry..)) {
            all[t * one.len()..(t + 1) * one.len()].copy_from_slice(&one);
        }
        state = outputs;
    }
    state.extend(stacked);
    Ok(state)
}

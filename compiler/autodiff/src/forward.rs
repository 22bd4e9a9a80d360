//! Forward mode, from reverse mode twice.
//!
//! Loops that end by themselves carry the tangents along: a reverse loop would keep what every turn begins with, of which there may
//! be any number.

mod until;

use crate::reverse::{Blocked, pullback};
use tessera_ir::graph::{Graph, NodeId, Policy};
use tessera_ir::writer::Writer;
use tessera_ops::prim::Scalar;
use tessera_ops::surface::expand;

/// Directional derivatives of `outputs` along the tangents given: pairs of a node and its tangent,
/// of one type. An output that does not depend on the nodes gets `None`. Cost: that of the
/// outputs, times a small constant.
///
/// With `u` a free cotangent, the pullback `uᵀJ` is linear in `u`; its own pullback along the
/// tangent `t` is `Jt`, whatever `u` is.
///
/// # Errors
/// A node on the way that has no derivative.
pub fn pushforward(
    g: &mut Graph,
    outputs: &[NodeId],
    tangents: &[(NodeId, NodeId)],
) -> Result<Vec<Option<NodeId>>, Blocked> {
    let mut known = tangents.to_vec();
    for id in until::loops(g, outputs, tangents) {
        known.extend(until::tangents(g, id, &known)?);
    }
    through(g, outputs, &known)
}

/// The same where the results of loops that end by themselves are among the nodes with tangents: the way back stops there.
fn through(g: &mut Graph, outputs: &[NodeId], tangents: &[(NodeId, NodeId)]) -> Result<Vec<Option<NodeId>>, Blocked> {
    let mut free = vec![];
    for &o in outputs {
        let ty = g.ty(o).clone();
        let mut w = Writer::new(g, Policy::default());
        free.push(NodeId(expand::full(&mut w, &ty.shape, ty.dtype, Scalar::F(0.0)).0));
    }
    let seeds: Vec<(NodeId, NodeId)> = outputs.iter().copied().zip(free.iter().copied()).collect();
    let wrt: Vec<NodeId> = tangents.iter().map(|t| t.0).collect();
    let back = pullback(g, &seeds, &wrt)?;
    let again: Vec<(NodeId, NodeId)> = back.iter().zip(tangents).filter_map(|(c, (_, t))| Some(((*c)?, *t))).collect();
    pullback(g, &again, &free)
}

//! Products whose operands move because a part of their contracted dim ends inside a leaf: what that costs, and which sizes would do.

use crate::exchange::flows;
use crate::layout::NodeLayout;
use crate::partial_products::{moves_less, split_over};
use std::sync::Arc;
use tessera_base::{Mesh, Span};
use tessera_ir::graph::{Graph, NodeId, Policy};
use tessera_ops::prim::{Prim, Steps};

/// Fewer bytes than these are not worth a word.
const BYTES_MIN: u64 = 1 << 20;

/// A product over a split dim that no device can begin by itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SplitLeaf {
    pub span: Span,
    /// Positions that are contracted, in so many parts, with so many to a leaf.
    pub depth: u64,
    pub parts: u64,
    pub leaf: u64,
    /// What a device sends of its operands in the mean, and what it would send of the nodes of the tree and of the result.
    pub moved: u64,
    pub ideal: u64,
}

/// Such products of a graph in the form in which it is laid out, and of its loops, in the order of the program.
pub fn split_leaves(g: &Graph, mesh: &Arc<Mesh>, placed: &[NodeLayout]) -> Vec<SplitLeaf> {
    let mut out: Vec<SplitLeaf> = vec![];
    for id in g.ids() {
        if let (prim @ Prim::Scan { body, .. }, Some(turn)) = (&g.node(id).prim, &placed[id.0 as usize].turn)
            && let Some(body) = g.bodies.get(*body as usize)
        {
            let turns = prim.turns().unwrap_or(0);
            out.extend(split_leaves(body, mesh, &turn.placed).into_iter().map(|s| SplitLeaf {
                moved: s.moved.saturating_mul(turns),
                ideal: s.ideal.saturating_mul(turns),
                ..s
            }));
        }
        out.extend(of_product(g, mesh, placed, id));
    }
    out.sort();
    // The same line in several layers.
    out.dedup_by(|more, first| {
        let alike = |s: &SplitLeaf| (s.span, s.depth, s.parts, s.leaf);
        let same = alike(more) == alike(first);
        if same {
            (first.moved, first.ideal) =
                (first.moved.saturating_add(more.moved), first.ideal.saturating_add(more.ideal));
        }
        same
    });
    out
}

fn of_product(g: &Graph, mesh: &Arc<Mesh>, placed: &[NodeLayout], id: NodeId) -> Option<SplitLeaf> {
    let node = g.node(id);
    let (&Prim::Dot { accum, steps: Steps::All, leaf, .. }, &[left, right]) = (&node.prim, &node.operands[..]) else {
        return None;
    };
    let axes = split_over(g, [left, right], placed)?;
    let parts: u64 = axes.iter().filter_map(|a| mesh.size(a)).product();
    let depth = *g.ty(left).shape.last()?;
    let fixed = accum.is_float() && node.policy == Policy::Deterministic;
    let fits = depth.is_multiple_of(parts) && (depth / parts.max(1)).is_multiple_of(leaf);
    if parts < 2 || depth < parts * leaf / 2 || !fixed || fits || !moves_less(g, [left, right], axes, mesh, placed, 1) {
        return None;
    }
    let devices = mesh.devices();
    let sent = |(o, to): (&NodeId, &crate::placement::Placement)| {
        let ty = g.ty(*o);
        let [from, to] = [&placed[o.0 as usize].held(), to].map(|p| p.parts(&ty.shape, devices));
        flows(&from, &to).iter().map(|f| f.elems).sum::<u64>().saturating_mul(ty.dtype.bytes() as u64) / devices
    };
    let made = placed[id.0 as usize].made.first()?;
    let moved = node.operands.iter().zip(&made.operands).map(sent).sum();
    let share = node.ty.elems()? / (devices / parts).max(1);
    let ideal = 2 * share / parts * (parts - 1) * accum.bytes() as u64;
    (moved >= BYTES_MIN && moved > ideal).then_some(SplitLeaf {
        span: node.origin.span,
        depth,
        parts,
        leaf,
        moved,
        ideal,
    })
}

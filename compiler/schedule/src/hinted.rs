//! Directives of kernels over those of the cost model.
//!
//! | hint | effect on a CPU |
//! |---|---|
//! | `tile` | macro tile: rows, columns and depth of a product; positions of the last axes that one grid point takes elsewhere |
//! | `vectorize` | lanes of vectors along a parallel axis (at most 16 in a product) |
//! | `shared` | operands of a product are packed, or left where they are |
//! | `unroll` | copies of the innermost loop's body |
//! | `parallel` | the axes that the grid divides |
//!
//! The other hints have no effect on this target; the checker says so.

use crate::choose::parallel_axes;
use tessera_ir::graph::Graph;
use tessera_ir::group::Group;
use tessera_ir::hints::KernelHints;
use tessera_ir::index::Var;
use tessera_ir::schedule::{Directive, Machine, Schedule, ValueId, ValueOp};
use tessera_ops::prim::Prim;
use tessera_ops::prim::fold::block;

/// Lanes of a product's vectors, at most.
const PRODUCT_LANES_MAX: u32 = 16;

/// The hints of the kernel that a group belongs to: that of its product, else of a reduction,
/// else of the last member that has any.
pub fn of<'g>(graph: &'g Graph, group: &Group) -> Option<&'g KernelHints> {
    let kernel = |wanted: &dyn Fn(&Prim) -> bool| {
        group.members.iter().rev().map(|&m| graph.node(m)).filter(|n| wanted(&n.prim)).find_map(|n| n.origin.kernel)
    };
    let at = kernel(&|p| matches!(p, Prim::Dot { .. }))
        .or_else(|| kernel(&|p| matches!(p, Prim::Reduce { .. })))
        .or_else(|| kernel(&|_| true))?;
    graph.kernels.get(at as usize)
}

/// Applies hints to a schedule that has the cost model's directives.
pub fn apply(s: &mut Schedule, hints: &KernelHints, machine: &Machine) {
    let shorter = hints.vectorize.map(|lanes| lanes.min(machine.lanes_max));
    let hints = &KernelHints { vectorize: shorter, ..hints.clone() };
    let dot = s.values.iter().position(|v| matches!(v.op, ValueOp::Dot { .. }));
    match dot {
        Some(at) => product(s, ValueId(at as u32), hints),
        None => loops(s, hints),
    }
    if let Some(factor) = hints.unroll.filter(|n| *n > 1) {
        for d in &mut s.directives {
            if let Directive::Steps { unroll, .. } = d {
                *unroll = factor;
            }
        }
        s.directives.push(Directive::Unroll(factor));
    }
}

/// Replaces the tile of an axis.
fn set_tile(s: &mut Schedule, axis: Var, size: u64) {
    s.directives.retain(|d| !matches!(d, Directive::Tile { axis: a, .. } if *a == axis));
    let size = size.min(s.extent(axis).max(1)).max(1);
    s.directives.push(Directive::Tile { axis, size });
}

fn set_lanes(s: &mut Schedule, lanes: u32) {
    for d in &mut s.directives {
        if let Directive::Vectorize { lanes: have, .. } = d {
            *have = lanes;
        }
    }
}

fn product(s: &mut Schedule, dot: ValueId, hints: &KernelHints) {
    let ValueOp::Dot { axis: k, order, leaf, .. } = s.value(dot).op else { return };
    let axes = parallel_axes(s);
    let (m, n) = s.sides(dot);
    if let Some(lanes) = hints.vectorize {
        set_lanes(s, lanes.min(PRODUCT_LANES_MAX));
    }
    if let &[rows, columns, ref depth @ ..] = &hints.tile[..] {
        if let Some(m) = m {
            set_tile(s, m, rows);
        }
        if let Some(n) = n {
            set_tile(s, n, columns);
        }
        if let Some(&depth) = depth.first() {
            s.directives.retain(|d| !matches!(d, Directive::Block { .. }));
            // Blocks hold whole leaves.
            let size = block(depth, s.extent(k), leaf, order.unit().max(16));
            if size < s.extent(k) {
                s.directives.push(Directive::Block { axis: k, size });
            }
        }
        // The grain counted points of another size.
        s.directives.retain(|d| !matches!(d, Directive::Grain(_)));
    }
    if let Some(pack) = hints.shared {
        s.directives.retain(|d| !matches!(d, Directive::Pack { .. }));
        if pack {
            s.directives.extend([0, 1].map(|operand| Directive::Pack { operand }));
        }
    }
    if !hints.parallel.is_empty() {
        let chosen = chosen(&axes, &hints.parallel);
        for axis in [m, n].into_iter().flatten().filter(|v| !chosen.contains(v)) {
            set_tile(s, axis, s.extent(axis));
        }
        s.directives.retain(|d| !matches!(d, Directive::Grain(_)));
    }
}

fn loops(s: &mut Schedule, hints: &KernelHints) {
    let axes = parallel_axes(s);
    if let Some(lanes) = hints.vectorize {
        set_lanes(s, lanes);
    }
    if !hints.tile.is_empty() {
        s.directives.retain(|d| !matches!(d, Directive::Tile { .. } | Directive::Grain(_)));
        for (&axis, &size) in axes.iter().rev().zip(hints.tile.iter().rev()) {
            set_tile(s, axis, size);
        }
    }
    if !hints.parallel.is_empty() {
        let chosen = chosen(&axes, &hints.parallel);
        s.directives.retain(|d| match d {
            Directive::Tile { axis, .. } => chosen.contains(axis),
            Directive::Grain(_) => false,
            _ => true,
        });
        for axis in chosen {
            if !s.directives.iter().any(|d| matches!(d, Directive::Tile { axis: a, .. } if *a == axis)) {
                set_tile(s, axis, s.extent(axis).div_ceil(POINTS));
            }
        }
    }
}

/// Grid points of an axis that threads shall divide.
const POINTS: u64 = 32;

/// Axes by the numbers of dims, outermost first; axes that were merged count as one.
fn chosen(axes: &[Var], dims: &[u32]) -> Vec<Var> {
    let mut out: Vec<Var> =
        dims.iter().filter_map(|&d| axes.get((d as usize).min(axes.len().saturating_sub(1))).copied()).collect();
    out.sort();
    out.dedup();
    out
}

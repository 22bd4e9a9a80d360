//! Directives of Fourier transforms: which axis the lanes take, and the grid.
//!
//! The lanes of a vector are different lines, so that a butterfly is the scalar one in every lane. Lines that lie side by
//! side are taken as they lie; those that do not are turned over in registers on the way in and out.

use super::{GRID_MAX, POINT_NS, WAKE_NS, parallel_axes, points};
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::{Directive, Machine, Schedule, ValueOp};

/// Additions and products per nanosecond and lane, roughly.
const SPEED: f64 = 2.0;
/// What a number costs that is read or written in a row, turned over, or far from all others, in additions.
const ROW: f64 = 1.0;
const TURNED: f64 = 3.0;
const FAR: f64 = 8.0;

/// `None` where nothing is transformed.
pub fn directives(s: &Schedule, machine: &Machine) -> Option<Vec<Directive>> {
    let (count, axis, to) = s.values.iter().find_map(|v| match v.op {
        ValueOp::Transform { points, axis, to, .. } => Some((points as f64, axis, to)),
        _ => None,
    })?;
    let outer: Vec<Var> = parallel_axes(s).into_iter().filter(|v| *v != to).collect();
    let widest = u64::from(machine.vector_bytes / 4).clamp(2, 16);
    let lanes = |v: Var| s.extent(v).next_power_of_two().min(widest);
    // Numbers of a line, and those of them that are arithmetic.
    let deep = 2.5 * count.log2().max(1.0);
    let cost = |v: &Var| {
        let groups = s.extent(*v).div_ceil(lanes(*v)) as f64;
        let idle = groups * widest as f64 / s.extent(*v).max(1) as f64;
        (deep + traffic(s, *v, [axis, to])) * idle
    };
    let vector = outer.iter().copied().min_by(|a, b| cost(a).total_cmp(&cost(b)));
    let mut out = vec![];
    if let Some(axis) = vector {
        out.push(Directive::Vectorize { axis, lanes: lanes(axis).max(2) as u32 });
    }
    let per_line = count * deep / SPEED;
    let total_ns = points(s, &outer) * per_line / vector.map_or(1, lanes) as f64;
    let mut order: Vec<Var> = outer.iter().copied().filter(|v| Some(*v) != vector).collect();
    order.extend(vector);
    let (mut wanted, mut grid) = ((total_ns / POINT_NS).clamp(1.0, GRID_MAX), 1.0);
    for &axis in &order {
        let extent = s.extent(axis);
        if wanted < 1.5 || extent == 0 {
            break;
        }
        let unit = if Some(axis) == vector { lanes(axis) } else { 1 };
        let size = ((extent as f64 / wanted).ceil() as u64).next_multiple_of(unit);
        out.push(Directive::Tile { axis, size });
        wanted /= extent.div_ceil(size) as f64;
        grid *= extent.div_ceil(size) as f64;
    }
    out.push(Directive::Order(order));
    out.push(Directive::Grain((WAKE_NS * grid / total_ns.max(1.0)).ceil().clamp(1.0, 1e9) as u64));
    Some(out)
}

/// What loads and stores cost for each number if lanes run along `v` and lines along the others.
fn traffic(s: &Schedule, v: Var, lines: [Var; 2]) -> f64 {
    let near = |at: &Index, v: Var| matches!(at.stride(v), Some(0..=2));
    let one = |at: &Index| match near(at, v) {
        true => ROW,
        false if lines.iter().all(|l| near(at, *l)) => TURNED,
        false => FAR,
    };
    let loads = s.values.iter().map(|x| match &x.op {
        ValueOp::Load { at, .. } => one(at),
        ValueOp::Gather { .. } => FAR,
        _ => 0.0,
    });
    let stores = s.stores.iter().map(|st| one(&st.at));
    (loads.sum::<f64>() + stores.sum::<f64>()) / 2.0
}

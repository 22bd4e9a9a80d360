//! Directives of running sums: which axis the lanes take, and the grid.
//!
//! The chain itself is one addition after the other, so lanes hold several chains: columns
//! where they are contiguous, else rows, whose elements are turned over in registers.

use super::{GRID_MAX, POINT_NS, WAKE_NS, parallel_axes, points, work};
use tessera_ir::index::Var;
use tessera_ir::schedule::{Directive, Machine, Schedule, ValueOp};

/// Columns of a grid point: whole lines, accumulators in the first cache.
const COLUMNS: u64 = 256;

/// The axis that a running sum goes along.
pub fn axis(op: &ValueOp) -> Option<Var> {
    if let ValueOp::Cumulate { axis, .. } = op { Some(*axis) } else { None }
}

pub fn directives(s: &Schedule, along: Var, machine: &Machine) -> Vec<Directive> {
    let outer: Vec<Var> = parallel_axes(s).into_iter().filter(|v| *v != along).collect();
    let stride = |v: &Var| s.stores.first().and_then(|st| st.at.stride(*v)).unwrap_or(0);
    let columns = outer.iter().copied().find(|v| stride(v) == 1);
    let bytes = s.values.iter().filter(|v| axis(&v.op).is_some()).map(|v| v.dtype.bytes()).max().unwrap_or(4) as u32;
    let lanes = (machine.vector_bytes / bytes).clamp(4, 16);
    let rows = outer.iter().copied().max_by_key(|v| s.extent(*v)).filter(|v| s.extent(*v) >= u64::from(lanes));
    let mut out = vec![];
    let vector = columns.or(rows);
    if let Some(axis) = vector {
        out.push(Directive::Vectorize { axis, lanes });
    }
    let total_ns = points(s, &outer) * s.extent(along) as f64 * work(s);
    let mut order: Vec<Var> = outer.iter().copied().filter(|v| Some(*v) != vector).collect();
    order.extend(vector);
    let mut wanted = (total_ns / POINT_NS).clamp(1.0, GRID_MAX);
    let mut grid = 1.0;
    for &axis in &order {
        let extent = s.extent(axis);
        if wanted < 1.5 || extent == 0 {
            break;
        }
        let unit = if Some(axis) != vector {
            1
        } else if columns.is_some() {
            COLUMNS
        } else {
            u64::from(lanes)
        };
        let size = ((extent as f64 / wanted).ceil() as u64).max(unit).next_multiple_of(unit);
        out.push(Directive::Tile { axis, size });
        wanted /= extent.div_ceil(size) as f64;
        grid *= extent.div_ceil(size) as f64;
    }
    out.push(Directive::Order(order));
    out.push(Directive::Grain((WAKE_NS * grid / total_ns.max(1.0)).ceil().clamp(1.0, 1e9) as u64));
    out
}

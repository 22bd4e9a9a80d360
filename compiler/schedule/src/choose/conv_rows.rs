//! Columns of a product that lie in short rows: whether the rows count as one axis, and how many
//! of them a grid point takes.
//!
//! The right operand of a convolution is even along a row of the image only. A row of 56 columns
//! fills 3.5 vectors of 16; four rows fill 14. Joined rows cost a copy with divisions per row,
//! so they are joined only where that fills vectors better.

use crate::axes;
use tessera_ir::index::Var;
use tessera_ir::schedule::{Machine, Schedule, ValueId, ValueOp};

/// Vectors that joining has to save at least, as a part of all.
const GAIN: f64 = 0.03;
/// What a missing grid point costs at most, as a part of all.
const IDLE: f64 = 0.1;

/// Joins axes of the columns of product `dot` where that fills vectors of `lanes` better.
pub fn join(s: &mut Schedule, dot: ValueId, lanes: u64) {
    let ValueOp::Dot { a, b, .. } = s.value(dot).op else { return };
    let (m, Some(n)) = s.sides(dot) else { return };
    // Short rows become the rows of the product instead.
    let row = s.extent(n);
    if row == 0 || row < lanes && m.is_some_and(|m| s.extent(m) > row) {
        return;
    }
    let run = rows(s, a, b, n);
    let all: u64 = run.iter().map(|v| s.extent(*v)).product();
    if run.is_empty() || filled(row, lanes) - filled(all * row, lanes) < GAIN {
        return;
    }
    for outer in run {
        axes::join(s, outer, n);
    }
}

/// Vectors for a row over the vectors that its elements would fill.
fn filled(row: u64, lanes: u64) -> f64 {
    row.next_multiple_of(lanes) as f64 / row.max(1) as f64
}

/// The axes, innermost first, that continue the columns `n` in every store and belong to the
/// right operand alone.
pub fn rows(s: &Schedule, a: ValueId, b: ValueId, n: Var) -> Vec<Var> {
    let domains = s.domains();
    let (left, right) = (&domains[a.0 as usize], &domains[b.0 as usize]);
    let mut out = vec![];
    let mut length = s.extent(n) as i64;
    let follows = |v: &Var, length: i64| s.stores.iter().all(|st| st.at.stride(*v) == Some(length));
    if !follows(&n, 1) {
        return out;
    }
    while let Some(next) = right
        .iter()
        .copied()
        .find(|v| !s.axes[v.0 as usize].reduced && s.extent(*v) > 1 && !left.contains(v) && follows(v, length))
    {
        length *= s.extent(next) as i64;
        out.push(next);
    }
    out
}

/// Columns of one grid point, where they are rows of `row` elements each: few enough that `depth`
/// steps of them stay in half of the second-level cache, with vectors well filled and about
/// `points` grid points in all.
pub fn tile(columns: u64, row: u64, lanes: u64, step_bytes: u64, points: u64, machine: &Machine) -> u64 {
    let rows = columns / row.max(1);
    let cost = |per: u64| {
        let vectors = |rows: u64| (rows * row).div_ceil(lanes);
        let all = (rows / per) * vectors(per) + vectors(rows % per);
        let tiles = rows.div_ceil(per);
        let idle = IDLE * points.saturating_sub(tiles) as f64 / points.max(1) as f64;
        all as f64 * lanes as f64 / columns as f64 + idle
    };
    let fits = |per: &u64| *per == 1 || per * row * step_bytes <= machine.l2_bytes / 2;
    (1..=rows.max(1)).take_while(fits).min_by(|x, y| cost(*x).total_cmp(&cost(*y))).unwrap_or(1) * row
}

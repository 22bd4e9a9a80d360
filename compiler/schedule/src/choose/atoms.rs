//! Directives of a product on units for matrices: the block of a point, its warps, what is staged ahead.

use super::parallel_axes;
use tessera_ir::schedule::{Directive, Schedule, ValueId, ValueOp};

/// Lines of a block, and the least that an instruction takes.
const LINES_MAX: u64 = 128;
const LINES_MIN: u64 = 16;
/// Points worth having, so that every multiprocessor has one.
const POINTS: u64 = 128;
/// Warps of a block.
const WARPS: u32 = 4;
/// Steps that are staged at once, and how many times that ahead.
const CHUNK: u64 = 32;
const STAGES: u32 = 4;

pub fn directives(s: &Schedule, dot: ValueId) -> Vec<Directive> {
    let ValueOp::Dot { axis: k, leaf, .. } = s.value(dot).op else { return vec![] };
    let (m, n) = s.sides(dot);
    let extent = |v: Option<_>| v.map_or(1, |v| s.extent(v));
    let others: Vec<_> = parallel_axes(s).into_iter().filter(|v| Some(*v) != m && Some(*v) != n).collect();
    let batch: u64 = others.iter().map(|v| s.extent(*v)).product();
    let lines = |n: u64| n.next_power_of_two().clamp(LINES_MIN, LINES_MAX);
    let (mut rows, mut cols) = (lines(extent(m)), lines(extent(n)));
    let points = |rows: u64, cols: u64| batch * extent(m).div_ceil(rows) * extent(n).div_ceil(cols);
    while points(rows, cols) < POINTS && rows * cols > 64 * 64 {
        if rows >= cols { rows /= 2 } else { cols /= 2 }
    }
    let (mut of_rows, mut of_cols) = (1, 1);
    while of_rows * of_cols < WARPS {
        let (height, width) = (rows / u64::from(of_rows), cols / u64::from(of_cols));
        match height >= width {
            true if height > LINES_MIN => of_rows *= 2,
            false if width > LINES_MIN => of_cols *= 2,
            _ => break,
        }
    }
    let even = |n: u64| n.is_multiple_of(CHUNK);
    let chunk = if even(s.extent(k)) && (even(leaf) || s.extent(k) <= leaf) { CHUNK } else { LINES_MIN };
    let mut out = vec![Directive::Warps { rows: of_rows, cols: of_cols }, Directive::Stages(STAGES)];
    out.push(Directive::Block { axis: k, size: chunk });
    out.extend(others.into_iter().map(|axis| Directive::Tile { axis, size: 1 }));
    out.extend(m.map(|axis| Directive::Tile { axis, size: rows }));
    out.extend(n.map(|axis| Directive::Tile { axis, size: cols }));
    out.push(Directive::Grain(1));
    out
}

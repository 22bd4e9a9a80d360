//! Directives of a convolution whose windows are read in the image: channels of the result run along
//! the lanes, so that neighbouring windows may lie any stride apart.

use super::dot::lanes;
use super::register_tile::{STEPS_NESTED, balanced};
use super::{WAKE_NS, conv_rows, parallel_axes};
use crate::axes;
use tessera_ir::schedule::conv_windows::Windows;
use tessera_ir::schedule::{Directive, Machine, Schedule, ValueId, ValueOp};
use tessera_ops::prim::fold;

/// Steps of a product at least: a register tile is turned over at its end.
const DEPTH_MIN: u64 = 64;
/// Windows of a row at least.
const ROW_MIN: u64 = 4;
/// Vectors that the channels fill, over vectors that they would need, at most.
const FILLED_MAX: f64 = 1.25;
/// Cycles for a vector of the image that is copied.
const COPY_CYCLES: f64 = 3.0;
/// Numbers of threads that share the points evenly, with the weight of each.
const THREADS: [(u64, f64); 3] = [(2, 0.6), (4, 0.3), (8, 0.1)];
/// Grid points worth having, and what missing all of them costs.
const POINTS: u64 = 32;
const IDLE: f64 = 0.02;

/// Rows and vectors of a register tile for rows of `row` windows and `channels` columns: the one with the fewest cycles.
fn registers(row: u64, channels: u64, lanes: u64, registers: u64) -> (u64, u64) {
    tiles(row, channels, lanes, registers).first().map_or((1, 1), |(tile, _)| *tile)
}

/// The tiles that fit the registers, with the cycles that a step of a row of windows takes in them, the fewest first: a cycle
/// issues two multiply-adds or two loads, and a chain waits four.
pub fn tiles(row: u64, channels: u64, lanes: u64, registers: u64) -> Vec<((u64, u64), f64)> {
    let cycles = |rows: u64, vectors: u64| ((rows * vectors).max(rows + vectors) as f64 / 2.0).max(4.0);
    let parts = |all: u64, size: u64| [(all / size, size), (u64::from(!all.is_multiple_of(size)), all % size)];
    let cost = |rows: u64, vectors: u64| -> f64 {
        let tiles = parts(row, rows).into_iter().flat_map(|r| parts(channels.div_ceil(lanes), vectors).map(|v| (r, v)));
        tiles.map(|((m, rows), (n, vectors))| (m * n) as f64 * cycles(rows, vectors)).sum()
    };
    let fits = (1..=channels.div_ceil(lanes).clamp(1, 4)).flat_map(|v| (1..=row.min(28)).map(move |r| (r, v)));
    // Of equal ones the tallest of two vectors: it reads least.
    let fits = fits.filter(|(r, v)| r * v + v < registers);
    let mut all: Vec<((u64, u64), f64)> = fits.map(|(r, v)| ((r, v), cost(r, v))).collect();
    all.sort_by(|(x, a), (y, b)| a.total_cmp(b).then((x.1 != 2, y.0).cmp(&(y.1 != 2, x.0))));
    all
}

/// Directives where product `dot` is a convolution worth it; the rows of its windows are joined then.
pub fn directives(s: &mut Schedule, dot: ValueId, machine: &Machine) -> Option<Vec<Directive>> {
    let ValueOp::Dot { a, b, axis: k, within: None, beyond: None, leaf, .. } = s.value(dot).op else {
        return None;
    };
    if s.value(a).dtype != s.value(dot).dtype {
        return None;
    }
    let lanes = lanes(s, dot, machine) as u64;
    let (Some(n), Some(m)) = s.sides(dot) else { return None };
    let depth = s.extent(k);
    let channels = s.extent(n);
    let filled = channels.next_multiple_of(lanes) as f64 / channels.max(1) as f64;
    if filled > FILLED_MAX || depth < DEPTH_MIN || lanes < 2 {
        return None;
    }
    let mut joined = s.clone();
    if let Some(outer) = conv_rows::rows(s, a, b, m).first() {
        axes::join(&mut joined, *outer, m);
    }
    let (_, w) = Windows::find(&joined, b, m, k)?;
    if w.row < ROW_MIN || !w.ends_with(leaf) {
        return None;
    }
    *s = joined;
    let bytes = machine.vector_bytes as u64 / lanes;
    let (rows, vectors) = registers(w.row, channels, lanes, machine.vector_registers as u64);
    // A panel of weights stays in three quarters of the nearest cache, beside the image that passes.
    let deepest = machine.l1_bytes * 3 / 4 / (vectors * lanes * bytes);
    let block = fold::block(block(&w, depth, deepest), depth, leaf, lanes);
    let batch: u64 = parallel_axes(s).iter().filter(|v| **v != m && **v != n).map(|v| s.extent(*v)).product();
    let wide = balanced(channels, (machine.l2_bytes / 2 / (block * bytes)).max(vectors * lanes), vectors * lanes);
    let shape = Shape { w: &w, lanes, block, rows, lines: s.extent(m) / w.row, channels: wide.min(channels) };
    let others = batch * channels.div_ceil(wide);
    let fits = |lines: &u64| *lines == 1 || shape.image(*lines) * bytes <= machine.l2_bytes / 4;
    let lines = (1..=shape.lines.max(1))
        .take_while(fits)
        .min_by(|x, y| shape.cost(*x, others).total_cmp(&shape.cost(*y, others)))
        .unwrap_or(1);
    let mut out = vec![
        Directive::Swap,
        Directive::Windows,
        Directive::Registers { rows: rows as u32, vectors: vectors as u32 },
        STEPS_NESTED,
        Directive::Vectorize { axis: n, lanes: lanes as u32 },
    ];
    if block < depth {
        out.push(Directive::Block { axis: k, size: block });
    }
    let rest = parallel_axes(s).into_iter().filter(|v| *v != m && *v != n);
    out.extend(rest.map(|axis| Directive::Tile { axis, size: 1 }));
    out.push(Directive::Tile { axis: m, size: lines * w.row });
    out.push(Directive::Tile { axis: n, size: wide });
    out.push(Directive::Pack { operand: 1 });
    let point_ns = (lines * w.row * wide * depth) as f64 / 80.0 + 100.0;
    out.push(Directive::Grain((WAKE_NS / point_ns).ceil().max(1.0) as u64));
    Some(out)
}

/// Steps of a block: whole images, at most about `deepest`, even blocks.
fn block(w: &Windows, depth: u64, deepest: u64) -> u64 {
    let inner = w.inner().max(1);
    let unit = (1..=16).map(|n| n * inner).find(|n| n.is_multiple_of(16)).unwrap_or(inner);
    let most = (deepest / unit).max(1) * unit;
    if !w.divides() || depth <= most {
        return depth;
    }
    depth.div_ceil(depth.div_ceil(most)).next_multiple_of(unit).min(depth)
}

/// A convolution in numbers.
struct Shape<'w> {
    w: &'w Windows,
    lanes: u64,
    block: u64,
    rows: u64,
    /// Rows of windows.
    lines: u64,
    /// Channels that one point computes.
    channels: u64,
}

impl Shape<'_> {
    /// Elements of the image under `lines` rows of windows, for one block.
    fn image(&self, lines: u64) -> u64 {
        let (depth, w) = (self.w.nest.iter().product::<u64>(), self.w);
        let free: u64 = w.free.iter().map(|(d, _)| w.nest[*d]).product();
        let line = w.along.extent.next_multiple_of(self.lanes);
        free * self.block / depth.max(1) * line * w.under(lines)
    }

    /// What points of `lines` rows cost beyond the arithmetic, as a part of it: copies of the image,
    /// panels of weights that are read again, threads without work. `others`: points for each such strip.
    fn cost(&self, lines: u64, others: u64) -> f64 {
        let depth = self.w.nest.iter().product::<u64>();
        let arithmetic = (lines * self.w.row * self.channels * depth) as f64 / (2 * self.lanes) as f64;
        let copied = self.image(lines) as f64 * depth as f64 / self.block as f64 / self.lanes as f64;
        let tiles = lines * self.w.row.div_ceil(self.rows);
        let again = 2.0 / (tiles * self.rows) as f64;
        let points = self.lines.div_ceil(lines) * others;
        let even = (self.lines * others) as f64;
        let late = |threads: u64| (points.next_multiple_of(threads) * lines) as f64 / even - 1.0;
        let waits: f64 = THREADS.iter().map(|(threads, weight)| late(*threads).max(0.0) * weight).sum();
        let idle = IDLE * POINTS.saturating_sub(points) as f64 / POINTS as f64;
        copied * COPY_CYCLES / arithmetic.max(1.0) + again + waits + idle
    }
}

#[cfg(test)]
mod tests {
    use super::registers;

    #[test]
    fn register_tiles_divide_rows() {
        assert_eq!(registers(56, 64, 16, 32), (14, 2));
        assert_eq!(registers(112, 64, 16, 32), (14, 2));
        assert_eq!(registers(28, 64, 16, 32), (14, 2));
        assert_eq!(registers(7, 64, 16, 32), (7, 2));
        assert_eq!(registers(14, 16, 16, 32), (14, 1));
        assert_eq!(registers(56, 64, 8, 16), (4, 2));
    }
}

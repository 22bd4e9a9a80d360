//! Directives of a matrix product: which axes are rows, columns and batch, the register tile,
//! blocks by cache size, packing.

use super::register_tile::{
    STEPS, STEPS_NESTED, UNIT_COLUMNS, UNIT_LANES, UNIT_PANELS, UNIT_ROWS, UNIT_ROWS_FEW, UNIT_STEPS_A_NS, balanced,
    registers,
};
use super::{WAKE_NS, atoms, conv_rows, group_dot, parallel_axes};
use tessera_ir::index::Var;
use tessera_ir::schedule::{Class, Directive, Machine, Schedule, ValueId, ValueOp};
use tessera_ops::map::kind_of;
use tessera_ops::prim::Order;
use tessera_ops::prim::fold::block;

/// Steps of k in one block.
const DEPTH_MAX: u64 = 2048;
/// Steps of a block of columns that are read as they lie, at least.
const DEPTH_MIN: u64 = 256;
/// Steps of k for which rows of columns are packed at once.
const ROWS_DEPTH: u64 = 1024;
/// Row panels in a block at least: packed columns are read once per block.
const PANELS_MIN: u64 = 10;
/// Rows of a product at most whose columns are read as they lie, and bytes of a row of columns then.
const ROWS_FEW: u64 = 128;
const ROW_SHORT: u64 = 1024;
/// Grid points worth having, so that a few threads share them evenly.
const POINTS: u64 = 32;
/// Multiply-adds that one grid point should have at least: some 15 µs on a current core.
const POINT_STEPS: f64 = 2.0e6;

/// Multiply-adds that fetching an element costs as much as.
const MOVE_STEPS: f64 = 30.0;
/// Row panels that a block has at least where packing columns is cheap, since they are few.
const PANELS_FEW: u64 = 3;

/// Whether a product of few rows is better taken with rows and columns exchanged: the right
/// operand then gives its numbers one by one as they lie, and is not turned round.
fn reads_rows(
    s: &Schedule,
    (left, m): (ValueId, Option<Var>),
    (right, n): (ValueId, Option<Var>),
    k: Var,
    lanes: u32,
) -> bool {
    let (Some(m), Some(n)) = (m, n) else { return false };
    let rows = s.extent(m);
    let few = rows <= lanes as u64 && rows * 2 > lanes as u64 && s.extent(n) >= 4 * rows;
    let along = |v: ValueId, axis: Var| {
        plain(s, v).is_some_and(|at| at.stride(k) == Some(1) && !matches!(at.stride(axis), None | Some(1)))
    };
    few && s.value(left).dtype == s.value(right).dtype && along(right, n) && plain(s, left).is_some()
}

/// An operand that is a plain load of the accumulator's type, and the strides of its axes.
pub fn plain(s: &Schedule, v: ValueId) -> Option<&tessera_ir::index::Index> {
    match &s.value(v).op {
        ValueOp::Load { at, guards, .. } if guards.is_empty() => Some(at),
        _ => None,
    }
}

/// Lanes of a vector register of the accumulator's type.
pub fn lanes(s: &Schedule, dot: ValueId, machine: &Machine) -> u32 {
    (machine.vector_bytes / accumulator_bytes(s, dot)).clamp(1, machine.lanes_max)
}

pub fn accumulator_bytes(s: &Schedule, dot: ValueId) -> u32 {
    kind_of(s.value(dot).dtype).map_or(4, |k| (k.bits() / 8).max(1))
}

pub fn directives(s: &Schedule, dot: ValueId, machine: &Machine) -> Vec<Directive> {
    if matches!(s.value(dot).op, ValueOp::Dot { order: Order::Atoms, .. }) {
        return atoms::directives(s, dot);
    }
    if machine.class == Class::Gpu {
        return group_dot::directives(s, dot, machine);
    }
    let ValueOp::Dot { a, b, axis: k, ref within, ref beyond, order, leaf } = s.value(dot).op else { return vec![] };
    let axes = parallel_axes(s);
    let lanes = lanes(s, dot, machine);
    // Factors may be narrower than the sum: pairs of bf16.
    let paired = order.is_paired();
    let bytes = if paired { 2 } else { accumulator_bytes(s, dot) };
    // The other parallel axes repeat the product.
    let (mut m, mut n) = s.sides(dot);
    let (mut left, mut right) = (a, b);
    let extent = |v: Option<Var>| v.map_or(1, |v| s.extent(v));
    let mut out = vec![];
    // Rows that take different numbers of steps stay rows.
    let narrow = extent(n) < lanes as u64 && extent(m) > extent(n);
    if (narrow || reads_rows(s, (left, m), (right, n), k, lanes)) && within.is_none() && beyond.is_none() {
        (m, n, left, right) = (n, m, right, left);
        out.push(Directive::Swap);
    }
    let depth = s.extent(k);
    let batch: u64 = axes.iter().filter(|v| Some(**v) != m && Some(**v) != n).map(|v| s.extent(*v)).product();
    let work = batch as f64 * extent(m) as f64 * extent(n) as f64 * depth as f64;
    // Each element of the right operand is fetched, and turned round where columns lie far apart.
    let moved = batch as f64 * extent(n).max(extent(m)) as f64 * depth as f64;
    let points = (((work + MOVE_STEPS * moved) / POINT_STEPS) as u64).clamp(1, POINTS);
    // Whole rows of columns, where the right operand is even in them only.
    let packed_rows = n.and_then(|n| s.row_along(right, n)).map(|row| {
        let step_bytes = depth.min(ROWS_DEPTH) * bytes as u64;
        conv_rows::tile(extent(n), row, lanes as u64, step_bytes, points.div_ceil(batch.max(1)), machine)
    });
    // The unit for matrices wants its right operand packed, which rows enough have to pay for.
    let unit = order == Order::Units && packed_rows.is_none() && lanes == UNIT_LANES && extent(m) > UNIT_ROWS_FEW;
    // Vectors hold three sums of each element of a unit.
    let free = machine.vector_registers / if order == Order::Units { 3 } else { 1 };
    let (rows, vectors) = match unit {
        true => (extent(m).min(UNIT_ROWS) as u32, extent(n).div_ceil(lanes as u64).clamp(1, 2) as u32),
        false => registers(extent(m), packed_rows.unwrap_or(extent(n)), lanes, free),
    };
    out.push(Directive::Registers { rows, vectors });
    out.push(if packed_rows.is_some() { STEPS_NESTED } else { STEPS });
    if unit {
        out.push(Directive::MatrixUnit);
    }
    if let Some(n) = n {
        out.push(Directive::Vectorize { axis: n, lanes });
    }
    let panel = (vectors * lanes) as u64;
    let same = |v: ValueId| {
        plain(s, v)
            .filter(|_| s.value(dot).dtype.compute() == s.value(dot).dtype)
            .filter(|at| s.value(v).dtype == s.value(dot).dtype || paired && (v == right || at.stride(k) == Some(1)))
    };
    let direct_right = same(right).is_some_and(|at| {
        let contiguous = n.is_none_or(|n| at.stride(n) == Some(1)) && at.stride(k).is_some();
        let near = depth * extent(n) * bytes as u64 <= machine.l1_bytes / 2;
        // Copying columns takes as long as a hundred rows or so win by it.
        let short = extent(m) <= ROWS_FEW && extent(n) * bytes as u64 <= ROW_SHORT;
        !unit && contiguous && (extent(m) <= 2 * rows as u64 || near || short)
    });
    // A panel of the right operand stays in a quarter of the second-level cache, packed rows in half of it.
    let deepest = match packed_rows {
        Some(columns) => machine.l2_bytes / 2 / (columns * bytes as u64).max(1),
        // What the unit for matrices reads again for all rows stays in the first-level cache.
        None if unit => machine.l1_bytes / 3 / (vectors * lanes * bytes) as u64,
        // Of rows that lie as they are a panel has parts of lines, which its neighbours find in the first-level cache.
        None if direct_right => (machine.l1_bytes / (vectors * lanes * bytes) as u64).max(DEPTH_MIN),
        None => machine.l2_bytes / 4 / (vectors * lanes * bytes) as u64,
    };
    let deepest = deepest.clamp(64, DEPTH_MAX);
    let blocks = depth.div_ceil(deepest).max(1);
    let block = if blocks == 1 { depth } else { block(deepest, depth, leaf, order.unit().max(16)) };
    if block < depth {
        out.push(Directive::Block { axis: k, size: block });
    }
    // The unit for matrices reads 32 rows at once.
    let apart = if unit { 2048 } else { 4096 };
    let direct_left = same(left).is_some_and(|at| {
        let row = m.map_or(Some(0), |m| at.stride(m));
        match (row, at.stride(k)) {
            // Rows a multiple of 4096 bytes apart share the sets of the first-level cache.
            (Some(row), Some(1)) => rows <= 8 || !(row.unsigned_abs() * bytes as u64).is_multiple_of(apart),
            // Rows that are neighbours: a step reads a part of a line, and the next rows find the rest. Not where lines of many
            // steps share their sets.
            (Some(1), Some(step)) if !unit && !(step.unsigned_abs() * bytes as u64).is_multiple_of(2048) => true,
            (Some(_), Some(_)) => extent(m) * depth * bytes as u64 <= machine.l1_bytes / 2,
            _ => false,
        }
    });
    let panels_min = match direct_right {
        // Nothing is packed that many rows would share.
        true => 1,
        false if extent(n) <= lanes as u64 => PANELS_FEW,
        false => PANELS_MIN,
    };
    let rows_block = match unit {
        true => UNIT_PANELS * rows as u64,
        false => (machine.l2_bytes / 2 / (block.max(1) * bytes as u64)).max(panels_min * rows as u64),
    };
    let mut mc = balanced(extent(m), rows_block, rows as u64);
    let others = (extent(m).div_ceil(mc.max(1)) * batch).max(1);
    // A point that packs its rows needs columns enough to read them often.
    let narrowest = if direct_left { panel } else { 8 * panel };
    let columns_block = match unit {
        true => UNIT_COLUMNS,
        false => extent(n).div_ceil(points.div_ceil(others)).clamp(narrowest, 4096.max(8 * panel)),
    };
    let nc = packed_rows.unwrap_or(balanced(extent(n), columns_block, panel));
    let columns = (extent(n).div_ceil(nc.max(1)) * batch).max(1);
    if packed_rows.is_some() {
        // Every point packs its own columns: one point for all rows.
        mc = if direct_left { extent(m) } else { mc };
    } else if !unit && others * extent(n).div_ceil(nc.max(1)) < points {
        let rows_block = extent(m).div_ceil(points.div_ceil(columns)).max(panels_min * rows as u64);
        mc = mc.min(balanced(extent(m), rows_block, rows as u64));
    }
    // Where the right operand stays in the second-level cache, a point takes whole rows of the
    // result: what is read and written beside the product is read and written in long runs.
    let right_bytes = depth * extent(n) * bytes as u64;
    let whole_rows = !unit
        && points > 1
        && block == depth
        && direct_left
        && packed_rows.is_none()
        && right_bytes <= machine.l2_bytes / 4;
    let nc = if whole_rows && extent(m) > 4 * rows as u64 {
        mc = rows as u64;
        extent(n)
    } else {
        nc
    };
    for v in axes.iter().filter(|v| Some(**v) != m && Some(**v) != n) {
        out.push(Directive::Tile { axis: *v, size: 1 });
    }
    if let Some(m) = m {
        out.push(Directive::Tile { axis: m, size: mc });
    }
    if let Some(n) = n {
        out.push(Directive::Tile { axis: n, size: nc });
    }
    if !direct_left {
        out.push(Directive::Pack { operand: 0 });
    }
    if !direct_right {
        out.push(Directive::Pack { operand: 1 });
    }
    if beside(s, dot, m, n) > machine.l2_bytes {
        out.push(Directive::Prefetch);
    }
    let steps = (mc * nc * depth) as f64 + MOVE_STEPS * (mc.max(nc) * depth) as f64;
    let point_ns = steps / if unit { UNIT_STEPS_A_NS } else { 80.0 } + 100.0;
    out.push(Directive::Grain((WAKE_NS / point_ns).ceil().max(1.0) as u64));
    out
}

/// Bytes that the results read beside the product, element by element.
fn beside(s: &Schedule, dot: ValueId, m: Option<Var>, n: Option<Var>) -> u64 {
    let mut todo: Vec<ValueId> = s.stores.iter().map(|st| st.value).collect();
    let mut operands: Vec<u32> = vec![];
    while let Some(v) = todo.pop() {
        match &s.value(v).op {
            ValueOp::Load { operand, at, .. } => {
                let varies = |axis: Option<Var>| axis.is_some_and(|a| at.stride(a) != Some(0));
                if varies(m) && varies(n) && !operands.contains(operand) {
                    operands.push(*operand);
                }
            }
            _ if v == dot => {}
            _ => todo.extend(s.args(v)),
        }
    }
    operands.iter().map(|o| &s.operands[*o as usize]).map(|o| o.elems * o.dtype.bytes() as u64).sum()
}

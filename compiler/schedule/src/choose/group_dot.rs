//! Directives of a matrix product where lanes are threads: a point is one register tile of a group of threads.
//!
//! There is no cache of a core that panels could be packed for, and thousands of points run at once: neighbours read the same
//! columns and the rows beside each other, which the cache of their multiprocessor holds for all of them. What does not lie as
//! numbers of the accumulator's type is turned into such before.

use super::dot::{accumulator_bytes, plain};
use super::parallel_axes;
use tessera_ir::index::Var;
use tessera_ir::schedule::{Directive, Machine, Schedule, ValueId, ValueOp};
use tessera_ops::prim::fold::block;

/// Rows of a register tile, and its vectors: 64 sums for each thread.
const ROWS_MAX: u64 = 16;
const VECTORS_MAX: u64 = 4;
/// Points worth having, so that every multiprocessor has some and can change between them.
const POINTS: u64 = 2048;
/// Steps of k in one block, where a factor is turned into numbers of the accumulator's type.
const BLOCK: u64 = 256;
/// Steps that are written in a row.
const STEPS: Directive = Directive::Steps { unroll: 4, distance: 0 };

pub fn directives(s: &Schedule, dot: ValueId, machine: &Machine) -> Vec<Directive> {
    let ValueOp::Dot { a, b, axis: k, ref within, ref beyond, order, leaf, .. } = s.value(dot).op else {
        return vec![];
    };
    let lanes = u64::from(machine.lanes_max.min(128 / accumulator_bytes(s, dot)));
    let (mut m, mut n) = s.sides(dot);
    let extent = |v: Option<_>| v.map_or(1, |v| s.extent(v));
    let mut out = vec![];
    // Rows that take different numbers of steps stay rows.
    if extent(n) < lanes && extent(m) > extent(n) && within.is_none() && beyond.is_none() {
        (m, n) = (n, m);
        out.push(Directive::Swap);
    }
    let lanes = lanes.min(extent(n).next_power_of_two().max(4));
    let others: Vec<_> = parallel_axes(s).into_iter().filter(|v| Some(*v) != m && Some(*v) != n).collect();
    let batch: u64 = others.iter().map(|v| s.extent(*v)).product();
    let (mut rows, mut vectors) = (extent(m).min(ROWS_MAX), extent(n).div_ceil(lanes).min(VECTORS_MAX));
    let points = |rows: u64, vectors: u64| batch * extent(m).div_ceil(rows) * extent(n).div_ceil(vectors * lanes);
    while points(rows, vectors) < POINTS && (rows > 4 || vectors > 1) {
        if rows > 4 * vectors || vectors == 1 { rows = (rows / 2).max(1) } else { vectors /= 2 }
    }
    out.push(Directive::Registers { rows: rows as u32, vectors: vectors as u32 });
    out.push(STEPS);
    out.extend(n.map(|axis| Directive::Vectorize { axis, lanes: lanes as u32 }));
    let (left, right) = if out.contains(&Directive::Swap) { (b, a) } else { (a, b) };
    let even = |v: ValueId, axis: Option<Var>| {
        let number = s.value(v).dtype == s.value(dot).dtype && s.value(v).dtype.compute() == s.value(v).dtype;
        plain(s, v)
            .is_some_and(|at| number && at.stride(k).is_some() && axis.is_none_or(|axis| at.stride(axis).is_some()))
    };
    let columns = plain(s, right).zip(n).is_none_or(|(at, n)| at.stride(n) == Some(1));
    let size = block(BLOCK, s.extent(k), leaf, order.unit().max(16));
    if size < s.extent(k) && !(even(left, m) && even(right, n) && columns) {
        out.push(Directive::Block { axis: k, size });
    }
    out.extend(others.into_iter().map(|axis| Directive::Tile { axis, size: 1 }));
    out.extend(m.map(|axis| Directive::Tile { axis, size: rows }));
    out.extend(n.map(|axis| Directive::Tile { axis, size: vectors * lanes }));
    out.push(Directive::Grain(1));
    out
}

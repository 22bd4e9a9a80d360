//! What the cost model compared for a kernel, for people who ask why: found again from the schedule by the functions that choose.

use super::dot::lanes;
use super::register_tile::{STEPS, Tile, tiles};
use super::{conv_windows, cumulate, parallel_axes, reduction, transform, vector_axes};
use tessera_ir::schedule::attention::Attention;
use tessera_ir::schedule::conv_windows::Windows;
use tessera_ir::schedule::{Class, Directive, Machine, Schedule, ValueId, ValueOp};
use tessera_ops::prim::Order;

/// A choice between several ways: the one that was taken, and the one that came second.
#[derive(Clone, PartialEq, Debug)]
pub struct Weighed {
    pub choice: Choice,
    pub taken: Way,
    pub second: Way,
}

/// What was chosen, and so what the numbers of its ways are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// The axis along the lanes. What the accesses of an element cost, where 1 is one of neighbours: the least is taken.
    VectorAxis,
    /// The register tile of a product. The part of its multiply-adds that its loads leave time for: the most is taken, of equal
    /// ones that with more sums.
    RegisterTile,
    /// The register tile of a convolution. The cycles that a step of a row of windows takes: the fewest are taken.
    WindowTile,
}

/// A way: as a directive would say it, and what it was compared by.
#[derive(Clone, PartialEq, Debug)]
pub struct Way {
    pub what: String,
    pub number: f64,
}

/// What was weighed for a schedule of [`crate::schedule`]. Nothing where a rule decided, where there was one way, or where
/// directives of the program or of a tuner stand in place of the choice.
pub fn of(s: &Schedule, machine: &Machine) -> Option<Weighed> {
    let (choice, ways) = match s.values.iter().position(|v| matches!(v.op, ValueOp::Dot { .. })) {
        _ if s.stores_nothing() => return None,
        Some(at) if s.directives.contains(&Directive::Windows) => {
            (Choice::WindowTile, window_tiles(s, ValueId(at as u32), machine)?)
        }
        Some(at) => (Choice::RegisterTile, register_tiles(s, ValueId(at as u32), machine)?),
        None => (Choice::VectorAxis, along_lanes(s, machine)?),
    };
    let [taken, second] = ways.into_iter().take(2).collect::<Vec<_>>().try_into().ok()?;
    Some(Weighed { choice, taken, second })
}

fn along_lanes(s: &Schedule, machine: &Machine) -> Option<Vec<Way>> {
    if s.values.iter().any(|v| cumulate::axis(&v.op).is_some()) || transform::directives(s, machine).is_some() {
        return None;
    }
    let ways = vector_axes(s, &parallel_axes(s), &reduction(s));
    let axis = ways.first()?.0;
    let stands = |d: &Directive| matches!(d, Directive::Vectorize { axis: own, .. } if *own == axis);
    let way = |(axis, number): (tessera_ir::index::Var, f64)| {
        let a = &s.axes[axis.0 as usize];
        let reduced = if a.reduced { ", which is reduced" } else { "" };
        Way { what: format!("{:?} of {}{reduced}", a.name, a.extent), number }
    };
    s.directives.iter().any(stands).then(|| ways.into_iter().map(way).collect())
}

/// The register tiles of a product that vectors compute, whose columns are one long row.
fn register_tiles(s: &Schedule, dot: ValueId, machine: &Machine) -> Option<Vec<Way>> {
    let ValueOp::Dot { order, .. } = s.value(dot).op else { return None };
    let by_others = Attention::is(s) || machine.class == Class::Gpu || order == Order::Atoms;
    if by_others || s.directives.contains(&Directive::MatrixUnit) || !s.directives.contains(&STEPS) {
        return None;
    }
    let (m, n) = s.sides(dot);
    let (m, n) = if s.directives.contains(&Directive::Swap) { (n, m) } else { (m, n) };
    let [m, n] = [m, n].map(|v| v.map_or(1, |v| s.extent(v)));
    let free = machine.vector_registers / if order == Order::Units { 3 } else { 1 };
    let ways = tiles(m, n, lanes(s, dot, machine), free);
    let way = |t: Tile| ((t.rows, t.vectors), f64::from(t.multiplied) / 1000.0);
    of_tiles(s, ways.into_iter().map(way).collect())
}

/// The register tiles of a convolution that reads its windows in the image.
fn window_tiles(s: &Schedule, dot: ValueId, machine: &Machine) -> Option<Vec<Way>> {
    let (ValueOp::Dot { b, axis: k, .. }, (Some(n), Some(m))) = (&s.value(dot).op, s.sides(dot)) else { return None };
    let (_, windows) = Windows::find(s, *b, m, *k)?;
    let (lanes, registers) = (lanes(s, dot, machine).into(), machine.vector_registers.into());
    let ways = conv_windows::tiles(windows.row, s.extent(n), lanes, registers).into_iter();
    of_tiles(s, ways.map(|((rows, vectors), cycles)| ((rows as u32, vectors as u32), cycles)).collect())
}

/// Tiles of which the schedule has the first.
fn of_tiles(s: &Schedule, ways: Vec<((u32, u32), f64)>) -> Option<Vec<Way>> {
    let (rows, vectors) = ways.first()?.0;
    let way = |((rows, vectors), number)| Way { what: format!("rows={rows}, vectors={vectors}"), number };
    s.directives.contains(&Directive::Registers { rows, vectors }).then(|| ways.into_iter().map(way).collect())
}

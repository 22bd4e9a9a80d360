//! Directives of two products with reductions of rows between them: how many rows a strip has,
//! how the second product divides the keys.

use super::WAKE_NS;
use super::register_tile::{STEPS, UNIT_LANES, UNIT_ROWS, UNIT_ROWS_FEW, UNIT_STEPS_A_NS, balanced, registers};
use tessera_ir::schedule::attention::Attention;
use tessera_ir::schedule::{Directive, Machine, Schedule, ValueOp};
use tessera_ops::map::kind_of;
use tessera_ops::prim::Order;
use tessera_ops::prim::fold::block;

/// Rows of a strip at most: more do not help the cache.
const ROWS_MAX: u64 = 64;
/// Steps of the second product in one block: its panel and the rows share the nearest cache.
const BLOCK: u64 = 256;
/// The same where the unit for matrices takes them, of half the size.
const UNIT_BLOCK: u64 = 512;
/// Register tiles of rows that make packing what lies well already worth it.
const PACK_TILES: u64 = 4;

pub fn directives(s: &Schedule, machine: &Machine) -> Vec<Directive> {
    let Ok(strip) = Attention::find(s) else { return vec![] };
    let dot =
        |v| if let ValueOp::Dot { axis, order, leaf, .. } = s.value(v).op { Some((axis, order, leaf)) } else { None };
    let (Some((depth, first, _)), Some((_, second, leaf))) = (dot(strip.first), dot(strip.second)) else {
        return vec![];
    };
    let bytes = kind_of(s.value(strip.first).dtype).map_or(4, |k| (k.bits() / 8).max(1)) as u64;
    let lanes = (machine.vector_bytes / bytes as u32).clamp(2, machine.lanes_max);
    let (m, keys) = (s.extent(strip.rows), s.extent(strip.keys));
    let orders = [first, second];
    let unit = orders.contains(&Order::Units) && lanes == UNIT_LANES && m > UNIT_ROWS_FEW;
    let (rows, vectors) = if unit {
        let rows = m.min(UNIT_ROWS);
        // Rows of vectors divide those of the unit.
        (if first == second { rows } else { rows.next_power_of_two() } as u32, 2)
    } else {
        // Vectors hold three sums of each element of a unit.
        let sums = if orders.contains(&Order::Units) { 3 } else { 1 };
        registers(m, keys, lanes, machine.vector_registers / sums)
    };
    // Weights that are taken in pairs lie beside the strip.
    let element = bytes + if second.is_paired() { 2 } else { 0 };
    let room = machine.l2_bytes / 2 / (keys * element).max(1);
    let tile = balanced(m, room.clamp(rows as u64, ROWS_MAX.max(rows as u64)), rows as u64);
    let mut out = vec![
        Directive::Registers { rows, vectors },
        STEPS,
        Directive::Vectorize { axis: strip.keys, lanes },
        Directive::Tile { axis: strip.rows, size: tile },
    ];
    if unit {
        out.push(Directive::MatrixUnit);
    }
    out.extend(strip.batch.iter().map(|a| Directive::Tile { axis: *a, size: 1 }));
    let most = if unit && second == Order::Units { UNIT_BLOCK } else { BLOCK };
    let size = block(most, keys, leaf, second.unit().max(16));
    if size < keys {
        out.push(Directive::Block { axis: strip.keys, size });
    }
    // Rows of the left factor may share sets of the nearest cache; copying them costs next to nothing.
    if unit && first == Order::Units {
        out.push(Directive::Pack { operand: 0 });
    }
    if m > PACK_TILES * rows as u64 {
        out.push(Directive::Pack { operand: 1 });
    }
    let features = s.extent(depth) + strip.columns.map_or(1, |c| s.extent(c));
    let steps_a_ns = if unit && first == second { UNIT_STEPS_A_NS } else { 60.0 };
    // Few rows wait for the keys and values to come from memory.
    let point_ns = (tile * keys * features) as f64 / steps_a_ns + (keys * features * bytes) as f64 / 10.0 + 100.0;
    out.push(Directive::Grain((WAKE_NS / point_ns).ceil().max(1.0) as u64));
    out
}

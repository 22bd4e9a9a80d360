//! Directives of two products with reductions of rows between them: how many rows a strip has,
//! how the second product divides the keys.

use super::WAKE_NS;
use super::dot::{balanced, registers};
use tessera_ir::schedule::attention::Attention;
use tessera_ir::schedule::{Directive, Machine, Schedule, ValueOp};
use tessera_ops::map::kind_of;

/// Rows of a strip at most: more do not help the cache.
const ROWS_MAX: u64 = 64;
/// Steps of the second product in one block: its panel and the rows share the nearest cache.
const BLOCK: u64 = 256;
/// Register tiles of rows that make packing what lies well already worth it.
const PACK_TILES: u64 = 4;

pub fn directives(s: &Schedule, machine: &Machine) -> Vec<Directive> {
    let Ok(strip) = Attention::find(s) else { return vec![] };
    let (ValueOp::Dot { axis: depth, .. }, columns) = (&s.value(strip.first).op, strip.columns) else { return vec![] };
    let bytes = kind_of(s.value(strip.first).dtype).map_or(4, |k| (k.bits() / 8).max(1)) as u64;
    let lanes = (machine.vector_bytes / bytes as u32).max(2);
    let (m, keys) = (s.extent(strip.rows), s.extent(strip.keys));
    let (rows, vectors) = registers(m, keys, lanes, machine.vector_registers);
    let room = machine.l2_bytes / 2 / (keys * bytes).max(1);
    let block = balanced(m, room.clamp(rows as u64, ROWS_MAX.max(rows as u64)), rows as u64);
    let mut out = vec![
        Directive::Registers { rows, vectors },
        Directive::Vectorize { axis: strip.keys, lanes },
        Directive::Tile { axis: strip.rows, size: block },
    ];
    out.extend(strip.batch.iter().map(|a| Directive::Tile { axis: *a, size: 1 }));
    if keys > BLOCK {
        let size = keys.div_ceil(keys.div_ceil(BLOCK)).next_multiple_of(16);
        out.push(Directive::Block { axis: strip.keys, size });
    }
    if m > PACK_TILES * rows as u64 {
        out.push(Directive::Pack { operand: 1 });
    }
    let features = s.extent(*depth) + columns.map_or(1, |c| s.extent(c));
    // Few rows wait for the keys and values to come from memory.
    let point_ns = (block * keys * features) as f64 / 60.0 + (keys * features * bytes) as f64 / 10.0 + 100.0;
    out.push(Directive::Grain((WAKE_NS / point_ns).ceil().max(1.0) as u64));
    out
}

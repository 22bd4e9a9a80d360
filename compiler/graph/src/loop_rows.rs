//! Operands of loops that lie in another value as they are: some of its rows, in order or from the last on. The loop reads
//! them there, and nothing is copied before it.

use std::collections::BTreeSet;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ops::prim::Prim;

/// Rows in a value: the first begins so many bytes behind its start, each next one so many behind the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowsOf {
    pub value: NodeId,
    pub first: u64,
    pub step: i64,
}

/// The rows that the turns of a loop take of operand `at`: all of it in each turn, unless it is a sequence. `None` of what is
/// no operand of a loop, and of sizes beyond 64 bits.
pub fn rows(g: &Graph, id: NodeId, at: usize) -> Option<RowsOf> {
    let Prim::Scan { carry, sequences, trips, reversed, .. } = g.node(id).prim else { return None };
    let value = *g.node(id).operands.get(at)?;
    let is_sequence = (carry..carry + sequences).contains(&at);
    let row = if is_sequence { g.ty(value).bytes()?.checked_div(trips).unwrap_or(0) } else { 0 };
    let (first, step) = walk(row, trips, reversed)?;
    Some(RowsOf { value, first, step })
}

/// Where the first turn finds its row among rows of so many bytes, and how far on each next one is.
pub fn walk(row: u64, trips: u64, reversed: bool) -> Option<(u64, i64)> {
    let step = i64::try_from(row).ok()?;
    Some(if reversed { (row.checked_mul(trips.saturating_sub(1))?, -step) } else { (0, step) })
}

/// The same rows in what `rows.value` is a view of; `None` where it is none, or where a row does not lie in one piece there.
/// `bytes`: of a row.
pub fn through(g: &Graph, rows: RowsOf, bytes: u64) -> Option<RowsOf> {
    let n = g.node(rows.value);
    let value = *n.operands.first()?;
    match &n.prim {
        Prim::Reshape => Some(RowsOf { value, ..rows }),
        Prim::Slice { start, step } => {
            let (from, to) = (&g.ty(value).shape, &n.ty.shape);
            let whole = |d: usize| start[d] == 0 && step[d] == 1 && from[d] == to[d];
            if to.is_empty() || !(1..to.len()).all(whole) {
                return None;
            }
            // Of a row of the slice, and from one of them to the next in what it is a slice of.
            let one = (g.ty(rows.value).bytes()? / to[0].max(1)) as i64;
            let apart = one.checked_mul(step[0])?;
            let begin = one.checked_mul(start[0])?;
            if step[0] == 1 {
                return Some(RowsOf { value, first: rows.first.checked_add(begin as u64)?, step: rows.step });
            }
            // A row of the loop must not be more than one of the slice.
            let aligned =
                one > 0 && bytes <= one as u64 && rows.first.is_multiple_of(one as u64) && rows.step % one == 0;
            aligned.then(|| {
                let first = begin + rows.first as i64 / one * apart;
                Some(RowsOf { value, first: u64::try_from(first).ok()?, step: rows.step / one * apart })
            })?
        }
        _ => None,
    }
}

/// The bytes that a turn takes of operand `at`.
pub fn bytes_of_turn(g: &Graph, id: NodeId, at: usize) -> Option<u64> {
    let Prim::Scan { body, .. } = g.node(id).prim else { return None };
    g.bodies.get(body as usize)?.inputs.get(at)?.ty.bytes()
}

/// What a loop reads.
pub struct Reads {
    /// Views through which it reads what is in memory.
    pub views: BTreeSet<NodeId>,
    /// Operands that it takes as they are.
    pub plain: Vec<NodeId>,
}

/// What loop `id` reads, where `in_memory` tells the values that are in memory anyway.
pub fn reads(g: &Graph, id: NodeId, in_memory: &dyn Fn(NodeId) -> bool) -> Reads {
    let (mut views, mut plain) = (BTreeSet::new(), vec![]);
    for (at, &operand) in g.node(id).operands.iter().enumerate() {
        match viewed(g, id, at, in_memory) {
            Some(chain) => views.extend(chain),
            None => plain.push(operand),
        }
    }
    // What is taken as it is in one place is a value of its own.
    if plain.iter().any(|o| views.contains(o)) {
        return Reads { views: BTreeSet::new(), plain: g.node(id).operands.clone() };
    }
    Reads { views, plain }
}

/// The views between operand `at` and a value that is in memory.
fn viewed(g: &Graph, id: NodeId, at: usize, in_memory: &dyn Fn(NodeId) -> bool) -> Option<Vec<NodeId>> {
    let bytes = bytes_of_turn(g, id, at)?;
    let mut rows = rows(g, id, at)?;
    let mut chain = vec![];
    while !in_memory(rows.value) {
        chain.push(rows.value);
        rows = through(g, rows, bytes)?;
    }
    Some(chain).filter(|c| !c.is_empty())
}

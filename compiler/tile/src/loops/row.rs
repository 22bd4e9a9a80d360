//! Rows that are read more than once: several reductions over one axis, and the walk that writes.
//!
//! The stages of a row are its reductions in order and the walk. What several of them need is
//! computed again where that is cheap, and kept in scratch memory by the first where it is not:
//! a softmax evaluates each exponential once.

use super::{Plan, Red};
use crate::LowerError;
use crate::nest::{Nest, identity};
use tessera_ir::index::Index;
use tessera_ir::schedule::{Schedule, ValueId, ValueOp};
use tessera_ir::tile::{Access, Def, LANE, Val};
use tessera_ops::map::kind_of;
use tessera_ops::prim::{LANES, Reduction};

/// What a store and a load from the nearest cache cost, in the units of the operator table.
const KEEP_COST: u32 = 4;
/// Accumulators of a reduction whose order is free.
const CHAINS: usize = 4;

/// A value of the row that one stage keeps for later ones.
#[derive(Clone, Debug)]
pub struct Kept {
    pub value: ValueId,
    /// Which stages use it, ascending; the first computes it.
    pub stages: Vec<usize>,
    /// Scratch buffer, by position in the row.
    pub buf: u32,
}

/// The values to keep: needed in several stages, and dearer to compute again than to load.
pub fn worth_keeping(s: &Schedule, reductions: &[Red]) -> Vec<Kept> {
    let Some(axis) = reductions.first().map(|r| r.axis) else { return vec![] };
    if reductions.iter().any(|r| r.axis != axis) {
        return vec![];
    }
    let domains = s.domains();
    let mut stages: Vec<Vec<usize>> = vec![vec![]; s.values.len()];
    let walk = s.stores.iter().map(|st| (reductions.len(), st.value));
    for (stage, root) in reductions.iter().enumerate().map(|(i, r)| (i, r.arg)).chain(walk) {
        mark(s, root, stage, &mut stages);
    }
    let mut cost = vec![0u32; s.values.len()];
    let mut out = vec![];
    for (i, v) in s.values.iter().enumerate() {
        let id = ValueId(i as u32);
        if !domains[i].contains(&axis) {
            continue;
        }
        let below: u32 = s.args(id).iter().map(|a| cost[a.0 as usize]).sum();
        cost[i] = match &v.op {
            ValueOp::Map { op, .. } => below + op.def().cost,
            ValueOp::Reduce { .. } => 0,
            _ => below + 1,
        };
        if stages[i].len() > 1 && cost[i] > KEEP_COST && matches!(v.op, ValueOp::Map { .. }) {
            out.push(Kept { value: id, stages: stages[i].clone(), buf: 0 });
            cost[i] = 1;
        }
    }
    out
}

/// Notes that `stage` computes `v` and what it is made of, up to the results of reductions.
fn mark(s: &Schedule, v: ValueId, stage: usize, stages: &mut [Vec<usize>]) {
    let mut todo = vec![v];
    while let Some(v) = todo.pop() {
        let seen = &mut stages[v.0 as usize];
        if matches!(s.value(v).op, ValueOp::Reduce { .. }) || seen.last() == Some(&stage) {
            continue;
        }
        seen.push(stage);
        todo.extend(s.args(v));
    }
}

impl<'s> Plan<'s> {
    /// Scratch memory for what is kept.
    pub(super) fn keep_room(&mut self, n: &mut Nest) {
        let Some(r) = self.reductions.first() else { return };
        let elems = self.s.extent(r.axis).next_multiple_of(LANES as u64);
        for k in &mut self.kept {
            k.buf = n.scratch(&format!("row{}", k.value.0), self.s.value(k.value).dtype, elems);
        }
    }

    /// Loads what earlier stages have kept for `stage` at the present place of the row.
    pub(super) fn recall(&self, n: &mut Nest<'s>, stage: usize) {
        let Some(axis) = self.reductions.first().map(|r| r.axis) else { return };
        for k in self.kept.iter().filter(|k| k.stages[1..].contains(&stage)) {
            let at = n.place_of(axis).clone();
            let lanes = if at.uses(LANE) { n.lanes } else { 1 };
            let valid = if lanes > 1 { n.valid } else { 1 };
            if let Some(kind) = kind_of(self.s.value(k.value).dtype) {
                let v = n.define(Def::Load(Access { buf: k.buf, at, valid, guards: vec![] }), kind, lanes);
                n.bind(k.value, v);
            }
        }
    }

    /// The argument of a reduction at the present place of the row, with what later stages need
    /// of it kept.
    pub(super) fn row_value(&self, n: &mut Nest<'s>, r: &Red) -> Result<Val, LowerError> {
        let stage = self.reductions.iter().position(|o| o.value == r.value).unwrap_or(0);
        self.recall(n, stage);
        let value = n.eval(r.arg)?;
        for k in self.kept.iter().filter(|k| k.stages.first() == Some(&stage)) {
            let v = n.eval(k.value)?;
            let at = n.place_of(r.axis).clone();
            n.store(k.buf, at, v, false);
        }
        Ok(value)
    }

    /// Whether the reduction chooses among elements, in whatever order, and is long.
    pub(super) fn is_long_choice(&self, r: &Red) -> bool {
        matches!(r.kind, Reduction::Max | Reduction::Min) && self.s.extent(r.axis) >= (4 * CHAINS * LANES) as u64
    }

    /// The whole of such a reduction: several accumulators, which do not wait for one another.
    pub(super) fn choose_along(&self, n: &mut Nest<'s>, r: &Red) -> Result<Val, LowerError> {
        let extent = self.s.extent(r.axis);
        let (whole, valid) = ((extent / LANES as u64) as i64, (extent % LANES as u64) as u32);
        let rounds = whole / CHAINS as i64;
        let start = n.define(Def::Const(identity(r.kind, r.of)), r.of, LANES as u32);
        let var = n.var(rounds - 1);
        let first = Index::var(var).times(CHAINS as i64);
        let mut acc =
            n.carry_loop(var, vec![Index::default()], vec![Index::constant(rounds)], &[start; CHAINS], |n, acc| {
                let fold = |(j, a): (usize, &Val)| self.choose_chunk(n, r, first.offset(j as i64), *a, LANES as u32);
                acc.iter().enumerate().map(fold).collect()
            })?;
        for chunk in rounds * CHAINS as i64..whole + (valid > 0) as i64 {
            let lanes = if chunk < whole { LANES as u32 } else { valid };
            acc[0] = self.choose_chunk(n, r, Index::constant(chunk), acc[0], lanes)?;
        }
        let mut count = CHAINS;
        while count > 1 {
            count /= 2;
            for j in 0..count {
                let both = Def::Fold { kind: r.kind, acc: acc[j], value: acc[j + count], valid: LANES as u32 };
                acc[j] = n.define(both, r.of, LANES as u32);
            }
        }
        Ok(n.define(Def::Lanes { kind: r.kind, arg: acc[0] }, r.of, 1))
    }

    fn choose_chunk(&self, n: &mut Nest<'s>, r: &Red, chunk: Index, acc: Val, valid: u32) -> Result<Val, LowerError> {
        let before = (n.lanes, n.valid);
        (n.lanes, n.valid) = (LANES as u32, valid);
        let old = n.place(r.axis, chunk.times(LANES as i64).plus(&Index::var(LANE)));
        let value = self.row_value(n, r)?;
        let next = n.define(Def::Fold { kind: r.kind, acc, value, valid }, r.of, LANES as u32);
        n.place(r.axis, old);
        (n.lanes, n.valid) = before;
        Ok(next)
    }
}

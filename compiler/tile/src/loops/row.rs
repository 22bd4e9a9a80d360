//! Rows that are read more than once: several reductions over one axis, and the walk that writes.
//!
//! Also called: softmax and normalisation kernels.
//!
//! The stages of a row are its reductions in order and the walk. What several of them need is
//! computed again where that is cheap, and kept in scratch memory by the first where it is not:
//! a softmax evaluates each exponential once.

use super::{Plan, Red};
use crate::LowerError;
use crate::nest::{Nest, identity};
use tessera_base::bug;
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
    /// Kept for longer than the row: the buffer holds many rows.
    pub strip: bool,
}

/// The values to keep: needed in several stages, and dearer to compute again than to load.
/// Besides the reductions there are the stages `more`, each with what it computes.
pub fn worth_keeping(s: &Schedule, reductions: &[Red], more: &[(usize, ValueId)]) -> Vec<Kept> {
    let Some(axis) = reductions.first().map(|r| r.axis) else { return vec![] };
    if reductions.iter().any(|r| r.axis != axis) {
        return vec![];
    }
    let domains = s.domains();
    let mut stages: Vec<Vec<usize>> = vec![vec![]; s.values.len()];
    for (stage, root) in reductions.iter().enumerate().map(|(i, r)| (i, r.arg)).chain(more.iter().copied()) {
        mark(s, root, stage, &mut |_| false, &mut stages);
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
            ValueOp::Reduce { .. } | ValueOp::Dot { .. } => 0,
            _ => below + 1,
        };
        if stages[i].len() > 1 && cost[i] > KEEP_COST && matches!(v.op, ValueOp::Map { .. }) {
            out.push(Kept { value: id, stages: stages[i].clone(), buf: 0, strip: false });
            cost[i] = 1;
        }
    }
    out
}

/// Notes that `stage` computes `v` and what it is made of, up to the results of reductions and
/// what is `held` in memory.
pub fn mark(s: &Schedule, v: ValueId, stage: usize, held: &mut dyn FnMut(ValueId) -> bool, stages: &mut [Vec<usize>]) {
    let mut todo = vec![v];
    while let Some(v) = todo.pop() {
        let seen = &mut stages[v.0 as usize];
        if matches!(s.value(v).op, ValueOp::Reduce { .. }) || seen.last() == Some(&stage) {
            continue;
        }
        seen.push(stage);
        if !held(v) && !matches!(s.value(v).op, ValueOp::Dot { .. }) {
            todo.extend(s.args(v));
        }
    }
}

impl<'s> Plan<'s> {
    /// Scratch memory for what is kept.
    pub(super) fn keep_room(&mut self, n: &mut Nest) {
        let Some(r) = self.reductions.first() else { return };
        let elems = self.s.extent(r.axis).next_multiple_of(LANES as u64);
        for k in self.kept.iter_mut().filter(|k| !k.strip) {
            k.buf = n.scratch(&format!("row{}", k.value.0), self.s.value(k.value).dtype, elems);
        }
    }

    fn kept_at(&self, k: &Kept, place: &Index) -> Index {
        if k.strip { self.base.plus(place) } else { place.clone() }
    }

    /// Loads what earlier stages have kept for `stage` at the present place of the row.
    pub(super) fn recall(&self, n: &mut Nest<'s>, stage: usize) {
        let Some(axis) = self.reductions.first().map(|r| r.axis) else { return };
        for k in self.kept.iter().filter(|k| k.stages[1..].contains(&stage)) {
            let at = self.kept_at(k, n.axis_index(axis));
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
        let Some(stage) = self.reductions.iter().position(|o| o.value == r.value) else {
            bug!("the value {} is reduced by no stage of its row", r.value.0);
        };
        if self.prefetch {
            self.prefetch_for(n, r, stage);
        }
        self.stage_value(n, r, stage)
    }

    /// The same, where nothing is asked for ahead; `stage` is the reduction's number.
    pub(super) fn stage_value(&self, n: &mut Nest<'s>, r: &Red, stage: usize) -> Result<Val, LowerError> {
        self.recall(n, stage);
        let value = n.eval(r.arg)?;
        for k in self.kept.iter().filter(|k| k.stages.first() == Some(&stage)) {
            let v = n.eval(k.value)?;
            let at = self.kept_at(k, n.axis_index(r.axis));
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
        let start = n.define(Def::Const(identity(r.kind, r.of)), r.of, LANES as u32);
        let upto = |last: i64, limit: Option<Index>| [Index::constant(last)].into_iter().chain(limit).collect();
        // A limit reaches at most the ragged chunk.
        let ragged = (valid > 0) as i64;
        let rounds = self.limit.as_ref().map(|l| l.offset(-ragged).div(CHAINS as i64, &|v| n.range(v)));
        let begun = Index::constant(whole - whole % CHAINS as i64);
        let begun = rounds.as_ref().map_or(begun, |q| q.times(CHAINS as i64));
        let var = n.var(whole / CHAINS as i64 - 1);
        let first = Index::var(var).times(CHAINS as i64);
        let lo = vec![Index::default()];
        let mut acc = n.carry_loop(var, lo, upto(whole / CHAINS as i64, rounds), &[start; CHAINS], |n, acc| {
            let fold = |(j, a): (usize, &Val)| self.choose_chunk(n, r, first.offset(j as i64), *a, LANES as u32);
            acc.iter().enumerate().map(fold).collect()
        })?;
        // What is left of whole chunks, and the ragged one.
        let rest = (begun, whole, LANES as u32);
        for (from, to, lanes) in [rest, (Index::constant(whole), whole + ragged, valid)] {
            if from.as_constant() == Some(to) {
                continue;
            }
            let var = n.var(to - 1);
            acc[0] = n.carry_loop(var, vec![from], upto(to, self.limit.clone()), &acc[..1], |n, acc| {
                Ok(vec![self.choose_chunk(n, r, Index::var(var), acc[0], lanes)?])
            })?[0];
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

    /// Walks the row in vectors.
    pub(super) fn over_row(
        &self,
        n: &mut Nest<'s>,
        body: &mut dyn FnMut(&mut Nest<'s>) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let Some(r) = self.reductions.first() else { return Ok(()) };
        let extent = self.s.extent(r.axis);
        let (whole, all) = ((extent / LANES as u64) as i64, extent.div_ceil(LANES as u64) as i64);
        for (from, to, valid) in [(0, whole, LANES as u32), (whole, all, (extent % LANES as u64) as u32)] {
            if from == to {
                continue;
            }
            let var = n.var(all - 1);
            let hi = [Index::constant(to)].into_iter().chain(self.limit.clone()).collect();
            n.plain_loop(var, vec![Index::constant(from)], hi, |n| {
                let before = (n.lanes, n.valid);
                (n.lanes, n.valid) = (LANES as u32, valid);
                let old = n.bind_axis(r.axis, Index::var(var).times(LANES as i64).plus(&Index::var(LANE)));
                body(n)?;
                n.bind_axis(r.axis, old);
                (n.lanes, n.valid) = before;
                Ok(())
            })?;
        }
        Ok(())
    }

    fn choose_chunk(&self, n: &mut Nest<'s>, r: &Red, chunk: Index, acc: Val, valid: u32) -> Result<Val, LowerError> {
        let before = (n.lanes, n.valid);
        (n.lanes, n.valid) = (LANES as u32, valid);
        let old = n.bind_axis(r.axis, chunk.times(LANES as i64).plus(&Index::var(LANE)));
        let value = self.row_value(n, r)?;
        let next = n.define(Def::Fold { kind: r.kind, acc, value, valid }, r.of, LANES as u32);
        n.bind_axis(r.axis, old);
        (n.lanes, n.valid) = before;
        Ok(next)
    }
}

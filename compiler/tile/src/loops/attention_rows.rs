//! The reductions of a row whose elements another product has left in memory: what stands
//! between two products of one kernel.

use super::row::{Kept, mark, worth_keeping};
use super::{Plan, reductions};
use crate::LowerError;
use crate::nest::Nest;
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::{Schedule, ValueId};
use tessera_ir::tile::{Access, Def};
use tessera_ops::prim::LANES;

/// Stands before every stage.
const BEFORE: usize = usize::MAX;

/// The stages of such a row: its reductions in order, then the value that goes on.
pub struct Stages<'s> {
    plan: Plan<'s>,
    /// What the row holds at first.
    held: ValueId,
    /// What it holds in the end.
    left: ValueId,
    /// Whether a reduction's stage already writes `left`.
    written: bool,
    strip: u32,
    /// Memory for `left`: the strip, or of another type beside it.
    weights: u32,
    /// Whether `left` has another type than `held`.
    apart: bool,
    sums: Vec<u32>,
    /// Results by row of the strip, one buffer for each reduction.
    results: Vec<u32>,
}

impl<'s> Stages<'s> {
    /// Rows along `axis` that hold `held` and shall hold `left`. Errors: another reduction.
    pub fn new(s: &'s Schedule, axis: Var, held: ValueId, left: ValueId) -> Result<Stages<'s>, LowerError> {
        let reductions = reductions(s)?;
        if reductions.is_empty() || reductions.iter().any(|r| r.axis != axis) {
            return Err(LowerError("a reduction over something else between two products".into()));
        }
        if reductions.iter().any(|r| r.compensated) {
            return Err(LowerError("a compensated sum between two products".into()));
        }
        let last = reductions.len();
        let roots = || reductions.iter().map(|r| r.arg).chain([left]);
        let mut kept: Vec<Kept> = worth_keeping(s, &reductions, &[(last, left)]);
        let mut stages = vec![vec![]; s.values.len()];
        for (stage, root) in roots().enumerate() {
            let stops = |v: ValueId| v == held || kept.iter().any(|k| k.value == v && k.stages[0] < stage);
            mark(s, root, stage, &mut { stops }, &mut stages);
        }
        // The stage that computes `left` writes it over `held`, if nothing later needs that.
        let first = stages[left.0 as usize].first().copied().unwrap_or(last);
        let mut later = vec![vec![]; s.values.len()];
        for (stage, root) in roots().enumerate().skip(first.saturating_add(1)) {
            mark(s, root, stage, &mut |v| v == held || v == left, &mut later);
        }
        let apart = s.value(left).dtype != s.value(held).dtype;
        let written = first < last && (apart || later[held.0 as usize].is_empty());
        kept.retain(|k| !written || k.value != left);
        let mut using = std::mem::take(&mut stages[held.0 as usize]);
        if written {
            kept.push(Kept { value: left, stages: std::mem::take(&mut stages[left.0 as usize]), buf: 0, strip: true });
            using.retain(|stage| apart || *stage <= first);
        }
        using.insert(0, BEFORE);
        kept.push(Kept { value: held, stages: using, buf: 0, strip: true });
        let mut plan = Plan::new(s, &|_| false);
        (plan.vector, plan.lanes) = (Some(axis), LANES as u32);
        (plan.inner, plan.reductions, plan.kept) = (vec![], reductions, kept);
        Ok(Stages { plan, held, left, written, strip: 0, weights: 0, apart, sums: vec![], results: vec![] })
    }

    /// The kinds and arguments of the reductions.
    pub fn reductions(&self) -> impl Iterator<Item = (tessera_ops::prim::Reduction, ValueId)> + '_ {
        self.plan.reductions.iter().map(|r| (r.kind, r.arg))
    }

    /// Scratch memory for `rows` rows; `strip`, of so many elements, holds the rows themselves. Gives what holds `left` in
    /// the end, where the rows lie as in the strip.
    pub fn room(&mut self, n: &mut Nest<'s>, strip: u32, rows: u64, elems: u64) -> u32 {
        self.strip = strip;
        self.weights = if self.apart { n.scratch("weights", self.plan.s.value(self.left).dtype, elems) } else { strip };
        self.plan.keep_room(n);
        for k in self.plan.kept.iter_mut().filter(|k| k.strip) {
            k.buf = if k.value == self.left { self.weights } else { strip };
        }
        for r in &self.plan.reductions {
            self.sums.push(self.plan.leaf_sums(n, r));
            self.results.push(n.scratch(&format!("result{}", r.value.0), r.accum, rows));
        }
        self.weights
    }

    /// All stages at the present row, which starts at `base` of the strip and is row `row` of it.
    /// With a `limit` only positions below it count.
    pub fn run(&mut self, n: &mut Nest<'s>, base: Index, row: Index, limit: Option<Index>) -> Result<(), LowerError> {
        self.plan.base = base;
        self.plan.limit = limit;
        let p = &self.plan;
        for (i, r) in p.reductions.iter().enumerate() {
            let v = if p.is_long_choice(r) { p.choose_along(n, r)? } else { p.reduce_along(n, r, self.sums[i])? };
            n.bind(r.value, v);
            n.store(self.results[i], row.clone(), v, false);
        }
        if self.written || self.left == self.held {
            return Ok(());
        }
        p.over_row(n, &mut |n| {
            p.recall(n, p.reductions.len());
            let v = n.eval(self.left)?;
            let at = p.base.plus(n.axis_index(p.reductions[0].axis));
            n.store(self.weights, at, v, false);
            Ok(())
        })
    }

    /// Makes the results of row `row` of the strip known.
    pub fn bind(&self, n: &mut Nest<'s>, row: &Index) {
        for (r, buf) in self.plan.reductions.iter().zip(&self.results) {
            let v = n.define(Def::Load(Access { buf: *buf, at: row.clone(), valid: 1, guards: vec![] }), r.of, 1);
            n.bind(r.value, v);
        }
    }
}

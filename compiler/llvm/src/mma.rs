//! The microkernel: a register tile of a matrix product as one fused-multiply-add chain per
//! element, in ascending k, from zero. What becomes of the chains of several leaves is in [`crate::leaves`].
//!
//! Plain IR is enough: accumulators are phis, the row operand is broadcast from memory (the
//! back end folds that into the multiply-add), steps are unrolled. Registers needed: rows ×
//! vectors accumulators, one per vector of the right operand, one broadcast.

use crate::LlvmError;
use crate::emit::Emitter;
use crate::instr::{IntPred, V};
use crate::masked::{Elements, Mask};
use std::ops::Range;
use tessera_ir::index::Index;
use tessera_ir::tile::{Mma, Panel};
use tessera_ops::prim::Order;
use tessera_ops::scalar::Kind;

/// How many steps there are, and which of them rows take ([`Mma`]).
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub limit: V,
    /// The same, where it is known.
    pub known: Option<i64>,
    pub ramp: Option<V>,
    pub lead: Option<V>,
}

/// Bytes of a line of the cache.
const LINE: i64 = 64;

impl Emitter<'_> {
    pub fn mma(&mut self, m: &Mma) -> Result<(), LlvmError> {
        if self.b.group.is_some() {
            return self.mma_of_threads(m);
        }
        self.product(m)
    }

    pub fn product(&mut self, m: &Mma) -> Result<(), LlvmError> {
        let [a, b, c] = [&m.a, &m.b, &m.c].map(|p| self.start(p));
        let (a, b, c) = (a?, b?, c?);
        let bound = |e: &Self, i: &Option<Index>| i.as_ref().map(|i| e.index(i, 1)).transpose();
        let (ramp, lead) = (bound(self, &m.ramp)?, bound(self, &m.lead)?);
        let steps = Steps { limit: self.bound(&m.depth, true)?, known: m.known_depth(), ramp, lead };
        match &m.fold {
            Some(f) => self.leaves(m, f, (a, b, c), steps),
            None if self.by_matrix_unit(m) => self.chain_by_matrix_unit(m, (a, b, c), steps),
            None => {
                let acc = self.chain_of(m, (a, b), steps)?;
                self.write_back(m, c, &acc);
                Ok(())
            }
        }
    }

    /// Where a panel starts.
    pub(super) fn start(&self, p: &Panel) -> Result<V, LlvmError> {
        Ok(self.b.offset(self.bases[p.buf as usize], self.bytes(p, self.index(&p.at, 1)?)))
    }

    /// The accumulators after so many steps from zero.
    pub(super) fn chain_of(&mut self, m: &Mma, (a, b): (V, V), steps: Steps) -> Result<Vec<V>, LlvmError> {
        let Steps { limit, known, ramp, lead } = steps;
        if m.order == Order::Units {
            return self.chain_in_units(m, (a, b), steps);
        }
        let zero = self.b.zero(self.b.kind(m.kind, m.lanes));
        let init = vec![zero; (m.rows * self.vectors(m)) as usize];
        if !m.hops.is_empty() {
            return self.nested(m, (a, b), limit, init);
        }
        let depth = ramp.map_or(limit, |r| self.within(limit, r));
        let (first_a, first_b) = (a, b);
        let mut acc = init;
        let (mut a, mut b, mut depth) = (a, b, depth);
        if let Some(lead) = lead {
            acc = self.descend(m, (a, b), limit, lead, acc)?;
            // The last row starts last: from there on all go.
            let from = self.within(limit, self.b.add(lead, self.b.i64(m.rows as i64 - 1)));
            (a, b) = (self.step(m, a, &m.a, from), self.step(m, b, &m.b, from));
            depth = self.b.sub(depth, from);
        }
        let unroll = i64::from(m.unroll);
        let rounds = self.b.sub(depth, self.b.urem(depth, self.b.i64(unroll)));
        if known.is_none_or(|d| d >= unroll) {
            // Addresses step with the loop.
            let mut carried: Vec<V> = [a, b].into_iter().chain(acc).collect();
            let asked = match known {
                Some(d) if !m.ahead.is_empty() => d / unroll / m.rows as i64 * unroll,
                _ => 0,
            };
            if !m.ahead.is_empty() {
                carried = self.steps_and_ahead(m, asked, &carried)?;
            }
            let out = self.steps(m, self.b.i64(asked * m.rows as i64), rounds, &carried)?;
            acc = out[2..].to_vec();
        }
        match known {
            Some(d) => {
                let k = self.b.i64(d - d % unroll);
                let (a, b) = (self.step(m, a, &m.a, k), self.step(m, b, &m.b, k));
                for u in 0..d % unroll {
                    self.rank_one(m, a, b, u, &mut acc)?;
                }
            }
            None => {
                acc = self.raw_loop(rounds, depth, 1, &acc, |e, k, acc| {
                    let mut acc = acc.to_vec();
                    let (a, b) = (e.step(m, a, &m.a, k), e.step(m, b, &m.b, k));
                    e.rank_one(m, a, b, 0, &mut acc)?;
                    Ok(acc)
                })?;
            }
        }
        if let Some(ramp) = ramp {
            acc = self.climb(m, (first_a, first_b), limit, ramp, acc)?;
        }
        Ok(acc)
    }

    /// Steps `from..to`, whole rounds of them; carries both addresses and the accumulators.
    fn steps(&mut self, m: &Mma, from: V, to: V, carried: &[V]) -> Result<Vec<V>, LlvmError> {
        let unroll = i64::from(m.unroll);
        self.raw_loop(from, to, unroll, carried, |e, _, carried| {
            let (a, b, mut acc) = (carried[0], carried[1], carried[2..].to_vec());
            for u in 0..unroll {
                e.rank_one(m, a, b, u, &mut acc)?;
            }
            let step = e.b.i64(unroll);
            Ok([e.step(m, a, &m.a, step), e.step(m, b, &m.b, step)].into_iter().chain(acc).collect())
        })
    }

    /// For each row what is wanted of it next is asked for, then come `steps` steps: all at once
    /// would keep memory from what the steps themselves read.
    fn steps_and_ahead(&mut self, m: &Mma, steps: i64, carried: &[V]) -> Result<Vec<V>, LlvmError> {
        let bases = m.ahead.iter().map(|p| self.start(p)).collect::<Result<Vec<V>, LlvmError>>()?;
        let (zero, rows) = (self.b.i64(0), self.b.i64(m.rows as i64));
        self.raw_loop(zero, rows, 1, carried, |e, i, carried| {
            for (p, base) in m.ahead.iter().zip(&bases) {
                let row = e.b.offset(*base, e.bytes(p, e.b.mul(i, e.b.i64(p.row))));
                for line in 0..(m.cols as i64 * e.element_bytes(p)).div_euclid(LINE).max(1) {
                    e.ask(e.b.offset(row, e.b.i64(line * LINE)), 2);
                }
            }
            match steps {
                0 => Ok(carried.to_vec()),
                _ => e.steps(m, zero, e.b.i64(steps), carried),
            }
        })
    }

    /// Bytes of so many elements.
    pub(super) fn bytes(&self, p: &Panel, elements: V) -> V {
        self.b.mul(elements, self.b.i64(self.element_bytes(p)))
    }

    /// The chain over nested steps: a loop for each run, the shortest ones written out.
    fn nested(&mut self, m: &Mma, (a, b): (V, V), depth: V, acc: Vec<V>) -> Result<Vec<V>, LlvmError> {
        let level = m.hops.len();
        let Some((every, _)) = m.hops.last().copied() else { return Ok(acc) };
        let carried: Vec<V> = [a, b].into_iter().chain(acc).collect();
        let zero = self.b.i64(0);
        let out = self.raw_loop(zero, depth, every, &carried, |e, _, carried| {
            let (a, b) = (carried[0], carried[1]);
            let acc = e.run(m, level, a, b, carried[2..].to_vec())?;
            let next = [e.at(a, run_stride(m, level), &m.a), e.at(b, every * m.b.step, &m.b)];
            Ok(next.into_iter().chain(acc).collect())
        })?;
        Ok(out[2..].to_vec())
    }

    /// All steps of one run of level `level`: runs of the level below, at level 0 a single step.
    fn run(&mut self, m: &Mma, level: usize, a: V, b: V, acc: Vec<V>) -> Result<Vec<V>, LlvmError> {
        if level == 0 {
            let mut acc = acc;
            // A step reads again what neighbouring rows read in another: loaded once for both, it
            // would stay in a register that the accumulators need.
            let a = if self.b.group.is_some() { a } else { self.b.opaque(a) };
            self.rank_one(m, a, b, 0, &mut acc)?;
            return Ok(acc);
        }
        let (length, inner) = (run_length(m, level), run_length(m, level - 1));
        let strides = (run_stride(m, level - 1), inner * m.b.step);
        // Runs of the level below that one round takes.
        let count = length / inner;
        let most = (i64::from(m.unroll) / inner).max(1);
        let copies = (1..=count).rev().find(|n| count % n == 0 && *n <= most).unwrap_or(1);
        let carried: Vec<V> = [a, b].into_iter().chain(acc).collect();
        let round = |e: &mut Self, carried: &[V]| -> Result<Vec<V>, LlvmError> {
            let (a, b) = (carried[0], carried[1]);
            let mut acc = carried[2..].to_vec();
            for u in 0..copies {
                acc = e.run(m, level - 1, e.at(a, u * strides.0, &m.a), e.at(b, u * strides.1, &m.b), acc)?;
            }
            let next = [e.at(a, copies * strides.0, &m.a), e.at(b, copies * strides.1, &m.b)];
            Ok(next.into_iter().chain(acc).collect())
        };
        let out = if copies == count {
            round(self, &carried)?
        } else {
            let (zero, rounds) = (self.b.i64(0), self.b.i64(count / copies));
            self.raw_loop(zero, rounds, 1, &carried, |e, _, carried| round(e, carried))?
        };
        Ok(out[2..].to_vec())
    }

    /// A position put between 0 and `limit`. Of a ramp: the steps that all rows take, since its first
    /// row takes the fewest.
    fn within(&self, limit: V, at: V) -> V {
        let zero = self.b.i64(0);
        let least = self.b.select(self.b.icmp(IntPred::LLVMIntSLT, at, limit), at, limit);
        self.b.select(self.b.icmp(IntPred::LLVMIntSGT, least, zero), least, zero)
    }

    /// The steps that only later rows of a ramp take: step `ramp + s - 1` from row `s` on.
    fn climb(&mut self, m: &Mma, from: (V, V), limit: V, ramp: V, mut acc: Vec<V>) -> Result<Vec<V>, LlvmError> {
        for s in 1..m.rows {
            let k = self.b.add(ramp, self.b.i64(s as i64 - 1));
            acc = self.some_rows(m, from, limit, k, s..m.rows, acc)?;
        }
        Ok(acc)
    }

    /// The steps that only the first rows after a lead take: step `lead + s` up to row `s`.
    fn descend(&mut self, m: &Mma, from: (V, V), limit: V, lead: V, mut acc: Vec<V>) -> Result<Vec<V>, LlvmError> {
        for s in 0..m.rows.saturating_sub(1) {
            let k = self.b.add(lead, self.b.i64(s as i64));
            acc = self.some_rows(m, from, limit, k, 0..s + 1, acc)?;
        }
        Ok(acc)
    }

    /// Step `k` of these rows, if there is one.
    fn some_rows(
        &mut self,
        m: &Mma,
        (a, b): (V, V),
        limit: V,
        k: V,
        rows: Range<u32>,
        mut acc: Vec<V>,
    ) -> Result<Vec<V>, LlvmError> {
        let vectors = self.vectors(m) as usize;
        // Also false for a step before the first.
        let inside = self.b.icmp(IntPred::LLVMIntULT, k, limit);
        let some = self.b.icmp(IntPred::LLVMIntSGT, limit, self.b.i64(0));
        let (before, step, join) = (self.b.current(), self.b.block(), self.b.block());
        self.b.branch(self.b.and(inside, some), step, join);
        self.b.position(step);
        let (pa, pb) = (self.step(m, a, &m.a, k), self.step(m, b, &m.b, k));
        let mut next = acc.clone();
        self.rank_one_of(m, rows.clone(), pa, pb, 0, &mut next);
        let step = self.b.current();
        self.b.jump(join);
        self.b.position(join);
        let ty = self.b.kind(m.kind, m.lanes);
        let count = rows.len() * vectors;
        for (old, new) in acc.iter_mut().zip(next).skip(rows.start as usize * vectors).take(count) {
            let phi = self.b.phi(ty);
            self.b.incoming(phi, *old, before);
            self.b.incoming(phi, new, step);
            *old = phi;
        }
        Ok(acc)
    }

    pub(super) fn element_bytes(&self, p: &Panel) -> i64 {
        self.kernel.bufs[p.buf as usize].dtype.bytes() as i64
    }

    pub(super) fn step(&self, m: &Mma, base: V, p: &Panel, k: V) -> V {
        self.b.offset(base, self.b.mul(k, self.b.i64(self.stride(m, p) * self.element_bytes(p))))
    }

    pub fn at(&self, base: V, elements: i64, p: &Panel) -> V {
        if elements == 0 {
            return base;
        }
        self.b.offset(base, self.b.i64(elements * self.element_bytes(p)))
    }

    /// Lanes of vector `j` that lie inside the tile.
    pub(super) fn valid(&self, m: &Mma, j: u32) -> u32 {
        (m.cols - j * m.lanes).min(m.lanes)
    }

    pub(super) fn vectors(&self, m: &Mma) -> u32 {
        m.cols.div_ceil(m.lanes)
    }

    pub(super) fn load_vector(&self, m: &Mma, p: V, valid: u32) -> V {
        self.load_lanes(m.kind, m.lanes, p, valid)
    }

    /// The first `valid` lanes from `p` on, zero in the others.
    pub fn load_lanes(&self, kind: Kind, lanes: u32, p: V, valid: u32) -> V {
        let of = Elements { ty: self.b.kind(kind, 1), bytes: kind.bits() / 8 };
        if self.b.group.is_some() {
            return self.load_lane(of, lanes, p, valid);
        }
        if valid == lanes {
            return self.b.load(self.b.kind(kind, lanes), p, of.bytes);
        }
        self.masked_load(of, lanes, p, Mask { held: None, lanes: Some(self.b.first_lanes(valid, lanes)) })
    }

    /// One step of k, `u` steps after the base addresses.
    fn rank_one(&self, m: &Mma, a: V, b: V, u: i64, acc: &mut [V]) -> Result<(), LlvmError> {
        if m.distance > 0 && self.b.group.is_none() {
            self.ask_ahead(m, b, u);
        }
        if m.order == Order::Pairs && m.kind == Kind::I32 {
            self.int_pair_steps(m, a, b, u, acc);
            return Ok(());
        }
        if m.order == Order::Pairs {
            return self.pair_steps(m, a, b, u, acc);
        }
        self.rank_one_of(m, 0..m.rows, a, b, u, acc);
        Ok(())
    }

    /// Asks for the lines of the right factor that a later step reads.
    fn ask_ahead(&self, m: &Mma, b: V, u: i64) {
        let bytes = self.element_bytes(&m.b);
        let step = self.at(b, (u + i64::from(m.distance)) * self.stride(m, &m.b), &m.b);
        for line in 0..(m.cols as i64 * bytes).div_euclid(LINE).max(1) {
            self.ask(self.b.offset(step, self.b.i64(line * LINE)), 3);
        }
    }

    /// The same for some rows.
    fn rank_one_of(&self, m: &Mma, rows: Range<u32>, a: V, b: V, u: i64, acc: &mut [V]) {
        let ty = self.b.kind(m.kind, m.lanes);
        let vectors = self.vectors(m);
        let right: Vec<V> = (0..vectors)
            .map(|j| self.load_vector(m, self.at(b, u * m.b.step + (j * m.lanes) as i64, &m.b), self.valid(m, j)))
            .collect();
        for i in rows {
            let p = self.at(a, i as i64 * m.a.row + u * m.a.step, &m.a);
            let scalar = self.b.load(self.b.kind(m.kind, 1), p, m.kind.bits() / 8);
            let left = self.b.splat(scalar, m.lanes);
            for (j, r) in right.iter().enumerate() {
                let c = &mut acc[i as usize * vectors as usize + j];
                *c = match m.kind {
                    Kind::F32 | Kind::F64 => self.b.intrinsic("llvm.fma", &[ty], &[left, *r, *c]),
                    Kind::Bool => self.b.or(self.b.and(left, *r), *c),
                    _ => self.b.add(self.b.mul(left, *r), *c),
                };
                if m.half {
                    *c = self.b.fpext(self.b.fptrunc(*c, self.b.vec(self.b.half(), m.lanes)), ty);
                }
            }
        }
    }

    fn write_back(&self, m: &Mma, c: V, acc: &[V]) {
        for i in 0..m.rows {
            self.write_row(m, self.at(c, i as i64 * m.c.row, &m.c), self.row_of(m, acc, i));
        }
    }

    /// The accumulators of row `i`.
    pub(super) fn row_of<'a>(&self, m: &Mma, acc: &'a [V], i: u32) -> &'a [V] {
        let vectors = self.vectors(m) as usize;
        &acc[i as usize * vectors..][..vectors]
    }

    /// One row of accumulators.
    pub(super) fn write_row(&self, m: &Mma, to: V, acc: &[V]) {
        let align = m.kind.bits() / 8;
        for (j, v) in (0..).zip(acc) {
            let p = self.at(to, i64::from(j * m.lanes), &m.c);
            // Which NaN a sum has become says the conversion program.
            let v = if m.half { self.round_f16(*v, m.lanes) } else { *v };
            if self.b.group.is_some() {
                let of = Elements { ty: self.element_of(m.kind), bytes: align };
                self.store_lane(of, p, v, self.valid(m, j));
                continue;
            }
            if self.valid(m, j) == m.lanes {
                self.b.store(v, p, align, false);
            } else {
                let mask = self.b.first_lanes(self.valid(m, j), m.lanes);
                let of = Elements { ty: self.b.kind(m.kind, 1), bytes: align };
                self.masked_store(of, m.lanes, v, p, Mask { held: None, lanes: Some(mask) });
            }
        }
    }
}

/// Steps of a run of level `level`; one at level 0.
pub(super) fn run_length(m: &Mma, level: usize) -> i64 {
    level.checked_sub(1).and_then(|l| m.hops.get(l)).map_or(1, |(every, _)| *every)
}

/// Elements of the left factor from one run of level `level` to the next.
pub(super) fn run_stride(m: &Mma, level: usize) -> i64 {
    let steps = run_length(m, level) * m.a.step;
    let hops = m.hops.iter().take(level).map(|(every, extra)| run_length(m, level) / every * extra);
    steps + hops.sum::<i64>()
}

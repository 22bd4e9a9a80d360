//! Lanes as threads: a grid point is a group of threads of one warp, and a value of several lanes is one number in each.
//!
//! Everything that combines lanes is stated here once: folds by halves, as vectors do it; squares turned over by exchanges; what one lane leaves in memory for another behind a barrier of the group. All other code is that of vectors,
//! for a builder with a group gives scalars where it would give vectors.

use crate::LlvmError;
use crate::dialect::{Dialect, Whose};
use crate::emit::Emitter;
use crate::instr::{IntPred, T, V};
use crate::masked::Elements;
use crate::memory::By;
use tessera_base::bug;
use tessera_ir::index::Index;
use tessera_ir::tile::{Access, Def, Kernel, LANE, Mma, Op, POINT, Space};
use tessera_ops::prim::{Order, Reduction};
use tessera_ops::scalar::Kind;

/// Threads of a warp: as many as a shuffle reaches.
pub const WARP: u32 = 32;

/// Words of a record of what stopped a group: the launch, the point, the check from 1 on, the position.
pub const RECORD_WORDS: i64 = 4;

/// The threads that are the lanes of a point.
#[derive(Clone, Copy)]
pub struct Group {
    pub dialect: Dialect,
    /// A power of two, at most [`WARP`].
    pub size: u32,
    /// Which of them this one is, i64.
    pub lane: V,
    /// Of NVIDIA's: which of the warp, i32.
    pub in_warp: V,
    /// Of NVIDIA's: the bits of the group's threads among those of the warp, i32.
    pub members: V,
    /// Of others: 8 bytes for each lane that the group shares.
    pub exchange: V,
    /// Which group of the launch, i64: where a point has several warps, which block.
    pub number: V,
    /// Of a point of several warps: which one, and which thread of all, i64.
    pub warp: V,
    pub thread: V,
}

/// The longest vector of a kernel.
pub fn lanes(kernel: &Kernel) -> u32 {
    fn longest(ops: &[Op]) -> u32 {
        let of = |op: &Op| match op {
            Op::Store { lanes, .. } => *lanes,
            Op::Mma(m) => m.lanes,
            Op::Block(_) => WARP,
            Op::For(f) => longest(&f.body),
            Op::Transpose { from, .. } => from.len() as u32,
            Op::Def { .. } | Op::Prefetch { .. } => 1,
        };
        ops.iter().map(of).max().unwrap_or(1)
    }
    let values = kernel.values.iter().map(|t| t.lanes).max().unwrap_or(1);
    values.max(longest(&kernel.body)).next_power_of_two()
}

/// By buffer: whether what one lane writes there another may read, or write after it.
pub fn exchanged(kernel: &Kernel) -> Vec<bool> {
    let n = kernel.bufs.len();
    let (mut read, mut written, mut twice) = (vec![false; n], vec![false; n], vec![false; n]);
    fn walk(ops: &[Op], read: &mut [bool], written: &mut [bool], twice: &mut [bool]) {
        for op in ops {
            match op {
                Op::Def { def: Def::Load(a) | Def::Gather { from: a, .. }, .. } => read[a.buf as usize] = true,
                Op::Def { def: Def::Tree { buf, .. }, .. } => {
                    (read[*buf as usize], written[*buf as usize]) = (true, true);
                }
                Op::Store { to, by, .. } => {
                    written[to.buf as usize] = true;
                    twice[to.buf as usize] |= !by.is_empty();
                }
                Op::For(f) => walk(&f.body, read, written, twice),
                Op::Mma(m) => {
                    [&m.a, &m.b].iter().for_each(|p| read[p.buf as usize] = true);
                    written[m.c.buf as usize] = true;
                    if let Some(f) = &m.fold {
                        (read[f.slots.buf as usize], written[f.slots.buf as usize]) = (true, true);
                    }
                }
                // A block sees to its own memory.
                Op::Def { .. } | Op::Prefetch { .. } | Op::Transpose { .. } | Op::Block(_) => {}
            }
        }
    }
    if kernel.warps > 0 {
        return vec![false; n];
    }
    walk(&kernel.body, &mut read, &mut written, &mut twice);
    // Scratch is written again for the next point.
    let again = |i: usize| kernel.bufs[i].space == Space::Scratch || twice[i] || read[i];
    (0..n).map(|i| written[i] && again(i)).collect()
}

impl Emitter<'_> {
    /// The group of an emitter of threads.
    pub fn group(&self) -> Group {
        match self.b.group {
            Some(group) => group,
            None => bug!("vectors have no group of threads"),
        }
    }

    /// All points of the launch that are this group's: every so many.
    pub fn points_of_group(&mut self, lo: V, hi: V, groups: V) -> Result<(), LlvmError> {
        let first = self.b.add(lo, self.group().number);
        let behind = self.b.sub(self.b.add(self.b.sub(hi, first), groups), self.b.i64(1));
        let some = self.b.icmp(IntPred::LLVMIntSLT, first, hi);
        let turns = self.b.select(some, self.b.udiv(behind, groups), self.b.i64(0));
        let zero = self.b.i64(0);
        self.raw_loop(zero, turns, 1, &[], |e, turn, _| {
            let point = e.b.add(first, e.b.mul(turn, groups));
            e.vars[POINT.0 as usize] = Some(point);
            e.ops(&e.kernel.body)?;
            Ok(vec![])
        })?;
        self.vars[POINT.0 as usize] = None;
        Ok(())
    }

    /// What each lane has written before, every lane sees from here on.
    pub fn meet_at(&self, buf: u32) {
        if self.b.group.is_some() && self.exchanged.get(buf as usize) == Some(&true) {
            self.meet_group();
        }
    }

    // --- lanes

    /// Lanes by halves, as vectors do it; every lane has the result.
    pub fn tree_of_lanes(&self, monoid: Reduction, kind: Kind, v: V, n: u32) -> V {
        let own = self.b.own(n);
        let mut parts: Vec<V> = (0..own).map(|e| self.b.own_of(v, e, own)).collect();
        while parts.len() > 1 {
            let upper = parts.split_off(parts.len() / 2);
            parts = parts.iter().zip(upper).map(|(a, b)| self.combine(monoid, kind, *a, b, 1)).collect();
        }
        let (mut v, mut n) = (parts[0], n / own);
        while n > 1 {
            n /= 2;
            v = self.combine(monoid, kind, v, self.of_lane(v, kind, Whose::After(n)), 1);
        }
        self.of_lane(v, kind, Whose::First)
    }

    /// A square of lanes turned over: rows that are `s` apart exchange blocks of `s` lanes.
    pub fn turned_over(&self, mut rows: Vec<V>, kind: Kind) -> Vec<V> {
        let mut s = rows.len() / 2;
        while s > 0 {
            let upper = self.b.and(self.group().lane, self.b.i64(s as i64));
            let upper = self.b.icmp(IntPred::LLVMIntNE, upper, self.b.i64(0));
            for i in (0..rows.len()).filter(|i| i & s == 0) {
                let (a, b) = (rows[i], rows[i + s]);
                let got = self.of_lane(self.b.select(upper, a, b), kind, Whose::Across(s as u32));
                rows[i] = self.b.select(upper, got, a);
                rows[i + s] = self.b.select(upper, b, got);
            }
            s /= 2;
        }
        rows
    }

    /// Whether this is one of the first `valid` lanes; `None` where all are.
    pub fn is_below(&self, valid: u32) -> Option<V> {
        let below = || self.b.icmp(IntPred::LLVMIntULT, self.group().lane, self.b.i64(i64::from(valid)));
        (valid < self.group().size).then(below)
    }

    // --- memory

    /// Whether this thread takes part in an access, by each of its lanes.
    fn takes_part(&self, access: &Access, lanes: u32, stores: bool) -> Result<Option<V>, LlvmError> {
        let valid = access.valid.min(lanes);
        let lane = match lanes {
            // All threads read one element; one of them writes it.
            1 if stores => self.is_below(1),
            1 => None,
            _ if self.b.own(lanes) > 1 => (valid < lanes).then(|| self.b.first_lanes(valid, lanes)),
            _ => self.is_below(valid),
        };
        let held = self.guards(&access.guards, lanes)?;
        Ok(match (lane, held) {
            (Some(a), Some(b)) => Some(self.b.and(a, b)),
            (a, b) => a.or(b),
        })
    }

    /// The elements in memory of this thread's lanes; zero where it takes no part.
    pub fn load_of_thread(&self, access: &Access, by: &[By], lanes: u32) -> Result<V, LlvmError> {
        let of = self.elements(self.kernel.bufs[access.buf as usize].dtype);
        let (held, at) = (self.takes_part(access, lanes, false)?, self.element_offset(&access.at, by, lanes)?);
        let own = self.b.own(lanes);
        let one = |e: u32| {
            let held = held.map(|h| self.b.own_of(h, e, own));
            self.load_if(held, of, self.address(access.buf, self.b.own_of(at, e, own), 1))
        };
        Ok(self.b.gathered(&(0..own).map(one).collect::<Vec<_>>()))
    }

    pub fn load_if(&self, held: Option<V>, of: Elements, p: V) -> V {
        let Some(held) = held else { return self.b.load(of.ty, p, of.bytes) };
        let (before, read, join) = (self.b.current(), self.b.block(), self.b.block());
        self.b.branch(held, read, join);
        self.b.position(read);
        let v = self.b.load(of.ty, p, of.bytes);
        self.b.jump(join);
        self.b.position(join);
        let out = self.b.phi(of.ty);
        self.b.incoming(out, self.b.zero(of.ty), before);
        self.b.incoming(out, v, read);
        out
    }

    fn store_if(&self, held: Option<V>, of: Elements, p: V, value: V) {
        let Some(held) = held else { return self.b.store(value, p, of.bytes, false) };
        let (write, join) = (self.b.block(), self.b.block());
        self.b.branch(held, write, join);
        self.b.position(write);
        self.b.store(value, p, of.bytes, false);
        self.b.jump(join);
        self.b.position(join);
    }

    /// Stores the elements, as they lie in memory, of this thread's lanes.
    pub fn store_of_thread(&self, to: &Access, by: &[By], value: V, lanes: u32) -> Result<(), LlvmError> {
        let of = self.elements(self.kernel.bufs[to.buf as usize].dtype);
        let (held, at) = (self.takes_part(to, lanes, true)?, self.element_offset(&to.at, by, lanes)?);
        let apart = to.at.stride(LANE).is_some_and(|s| s != 0) && by.iter().all(|(_, n, _)| *n == 1);
        let own = self.b.own(lanes);
        for e in 0..own {
            let at = self.b.own_of(at, e, own);
            let mut held = held.map(|h| self.b.own_of(h, e, own));
            // Of lanes that go to one element the last is kept, as if they went there in order.
            if lanes > 1 && !apart {
                let last = self.last_of_equals(held, at);
                held = Some(held.map_or(last, |h| self.b.and(h, last)));
            }
            if e == 0 || !apart {
                self.meet_at(to.buf);
            }
            self.store_if(held, of, self.address(to.buf, at, 1), self.b.own_of(value, e, own));
        }
        self.meet_at(to.buf);
        Ok(())
    }

    /// Where this thread's lane lies, of a vector of elements of so many bytes that starts at `p`.
    pub fn own_lane(&self, p: V, bytes: u32) -> V {
        self.b.offset(p, self.b.mul(self.group().lane, self.b.i64(i64::from(bytes))))
    }

    /// This thread's lane of a vector at `p`, of which `valid` lanes are read.
    pub fn load_lane(&self, of: Elements, lanes: u32, p: V, valid: u32) -> V {
        let p = if lanes == 1 { p } else { self.own_lane(p, of.bytes) };
        let held = if lanes == 1 { None } else { self.is_below(valid) };
        self.load_if(held, of, p)
    }

    /// Stores this thread's lane of a vector at `p`, of which `valid` lanes are written.
    pub fn store_lane(&self, of: Elements, p: V, value: V, valid: u32) {
        self.store_if(self.is_below(valid), of, self.own_lane(p, of.bytes), value);
    }

    // --- products

    /// A register tile of which each thread has the columns of its lane.
    pub fn mma_of_threads(&mut self, m: &Mma) -> Result<(), LlvmError> {
        if m.order != Order::Chain && m.kind != Kind::I32 {
            return Err(LlvmError::internal("products of pairs are not for threads"));
        }
        let mut touched = vec![m.a.buf, m.b.buf, m.c.buf];
        touched.extend(m.fold.as_ref().map(|f| f.slots.buf));
        // What was left there is read, and what is left there is read by others.
        let quiet = Mma { ahead: vec![], ..m.clone() };
        let meets = touched.into_iter().find(|b| self.exchanged.get(*b as usize) == Some(&true));
        meets.into_iter().for_each(|b| self.meet_at(b));
        self.product(&quiet)?;
        meets.into_iter().for_each(|b| self.meet_at(b));
        Ok(())
    }

    // --- what stops a group

    /// Goes on where no lane is `bad`. Elsewhere the group records check `check` and the position of the first one, unless a
    /// record is there, and ends.
    pub fn stop_group(&self, bad: V, check: u32, position: V) {
        let g = self.group();
        let (any, is_first) = self.first_bad(bad);
        let (stop, record, write, end, go_on) =
            (self.b.block(), self.b.block(), self.b.block(), self.b.block(), self.b.block());
        self.b.branch(any, stop, go_on);
        self.b.position(stop);
        self.b.branch(is_first, record, end);
        self.b.position(record);
        let size = self.b.i64(8 * RECORD_WORDS);
        // The first record is a word that says whether there are others.
        let slot = self.b.offset(self.faults, self.b.mul(self.b.add(g.number, self.b.i64(1)), size));
        let word = |n: i64| self.b.offset(slot, self.b.i64(8 * n));
        let free = self.b.icmp(IntPred::LLVMIntEQ, self.b.load(self.b.int(64), word(0), 8), self.b.i64(0));
        self.b.branch(free, write, end);
        self.b.position(write);
        let point = self.vars[POINT.0 as usize].unwrap_or(self.b.i64(0));
        let words = [self.launch, point, self.b.i64(i64::from(check) + 1), position];
        for (n, value) in (0..).zip(words) {
            self.b.store(value, word(n), 8, false);
        }
        self.b.store(self.b.i64(1), self.faults, 8, false);
        self.b.jump(end);
        self.b.position(end);
        if self.kernel.warps > 0 {
            self.b.jump(go_on)
        } else {
            self.b.ret_void()
        }
        self.b.position(go_on);
    }

    /// The balanced tree over `count` vectors in memory, level by level, each lane its own.
    pub fn tree_of_threads(
        &mut self,
        monoid: Reduction,
        (kind, lanes): (Kind, u32),
        (buf, at): (u32, &Index),
        count: u64,
    ) -> Result<V, LlvmError> {
        let dtype = self.kernel.bufs[buf as usize].dtype;
        let of = self.elements(dtype);
        let first = self.address(buf, self.index(at, 1)?, 1);
        // Threads beyond the vector do what others do, and see that nobody is ahead of them.
        let size = self.group().size;
        let lane = self.b.and(self.group().lane, self.b.i64(i64::from(lanes) - 1));
        let base = self.b.offset(first, self.b.mul(lane, self.b.i64(i64::from(of.bytes))));
        let own = if lanes < size { self.is_below(lanes) } else { None };
        let apart = self.b.i64(i64::from(of.bytes * lanes));
        let element = |e: &Self, k: V| e.b.offset(base, e.b.mul(k, apart));
        let mut n = count as i64;
        self.meet_at(buf);
        while n > 1 {
            let (zero, half) = (self.b.i64(0), self.b.i64(n / 2));
            self.raw_loop(zero, half, 1, &[], |e, i, _| {
                let two = e.b.mul(i, e.b.i64(2));
                let load = |e: &Self, k: V| e.decode(e.b.load(of.ty, element(e, k), of.bytes), dtype, 1);
                let (a, b) = (load(e, two)?, load(e, e.b.add(two, e.b.i64(1)))?);
                let both = e.encode(e.combine(monoid, kind, a, b, 1), dtype, 1)?;
                if lanes < size {
                    e.meet_at(buf);
                }
                e.store_if(own, of, element(e, i), both);
                Ok(vec![])
            })?;
            if n % 2 == 1 {
                let last = self.b.load(of.ty, element(self, self.b.i64(n - 1)), of.bytes);
                if lanes < size {
                    self.meet_at(buf);
                }
                self.store_if(own, of, element(self, self.b.i64(n / 2)), last);
            }
            if lanes < size {
                self.meet_at(buf);
            }
            n = (n + 1) / 2;
        }
        let out = self.decode(self.b.load(of.ty, base, of.bytes), dtype, 1);
        self.meet_at(buf);
        out
    }

    /// The type that a value of a kind has in a thread.
    pub fn element_of(&self, kind: Kind) -> T {
        self.b.kind(kind, 1)
    }
}
